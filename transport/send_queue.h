// SendQueue: gathers frames into messages, messages into chains, and keeps their memory until they
// are sent.
//
// Theory of operation. Frames stay where the TUN wrote them. A message is a gather list over slabs;
// frames that lie end to end share one element. Messages wait in a chain until flush() posts them
// with one call, one doorbell. Every posted message has a place in a ring, which holds a reference
// to each slab that it gathers from; the places are given back in order when a signalled work
// request completes.
//
// Signalling. Unsignalled work requests before a signalled one are complete when that one is
// (in-order completion of a send queue). A completion costs both ends something, the software
// device's an acknowledgement; so only such a request is signalled that is
//
//   the signal_interval-th since the last one that was,
//   or the last of a chain, and kUnsignalledBytes are in flight unsignalled, or slabs are short or
//   the queue is at its share of them,
//   or a Control message.
//
// So small messages are, now and then, and large ones always: to have their slabs back while they
// are warm is worth more than the completion (a quarter of a window unsignalled cost a third of
// the throughput of messages of 61440 bytes).
//
// What was sent last before a pause therefore keeps its slab; a worker's tick sends a Control
// message after it.
//
// Shares. A message pins every slab that it gathers from, until it is known to have arrived, and a
// peer that vanished acknowledges nothing: one small message in each slab that another session's
// bulk fills would pin them all. So the queue counts the slabs that it pins, and is at its share
// when they are half as many as are free. A worker with several sessions appends nothing then that
// pins one more: it waits in the session's FrameQueue, as it does without credit. The share needs
// no number of sessions: one that is alone busy may pin a third of all, n that pin what they can
// find an equilibrium at one part in n + 2 each, and while slabs are left, who pins none may pin
// one.
//
// Every work request is marked solicited: a receiver that sleeps has armed its queue for solicited
// completions only, so that its own sends do not wake it.
//
// Data path: nothing here allocates after construction.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/strong.h"
#include "transport/buffers.h"
#include "transport/histogram.h"

namespace ipoverbs::transport {

// Names a session of one incarnation of the device; never reused within it. 31 bits.
using LinkId = Strong<struct LinkIdTag, std::uint32_t>;

class SendQueue {
 public:
  static constexpr std::uint32_t kMaxChain = 32;     // messages a doorbell
  static constexpr std::uint32_t kMaxGather = 16;    // elements a message
  static constexpr std::uint32_t kControlSlots = 4;  // work requests that data leaves free
  static constexpr std::uint32_t kUnsignalledBytes = 16384;

  struct Limits {
    std::uint32_t depth = 128;                // work requests in flight
    std::uint32_t max_gather = 1;             // of the device, at most kMaxGather are used
    std::uint32_t max_message = kMaxMessage;  // bytes, of the receiver
    std::uint32_t packets_per_message = 32;
    std::uint32_t messages_per_doorbell = 16;
    std::uint32_t signal_interval = 16;
    std::uint32_t window_bytes = 1U << 20;
  };

  // The queue pair, the pool and the sizes outlive it; `sizes` is told of every doorbell. `first`
  // is the first message's position, for tests of what happens when positions wrap.
  SendQueue(ibv_qp* queue_pair, LinkId id, const Limits& limits, SlabPool& slabs,
            DoorbellSizes& sizes, std::uint32_t first = 0);
  ~SendQueue();
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  // What the receiver told in its hello.
  void set_max_message(std::uint32_t bytes) noexcept { limits_.max_message = bytes; }

  // Whether one more message with packets may be opened, as far as the send queue is concerned.
  [[nodiscard]] bool has_room() const noexcept;

  enum class Append : std::uint8_t {
    Joined,   // in the message that was open
    Opened,   // in a new message
    Refused,  // it needs a new message, and `may_open` was false or there is no room
    Failed,   // the queue pair refused a chain that had to go first: see failed()
  };
  // Whether append() would take the frame, now.
  [[nodiscard]] bool takes(const Slab& slab, std::span<const std::byte> frame,
                           bool may_open) const noexcept {
    return joins(slab, frame) || (may_open && has_room());
  }
  // Appends a whole frame that lies in `slab`; takes a reference to it if it needs one.
  [[nodiscard]] Append append(Slab& slab, std::span<std::byte> frame, bool may_open) noexcept;
  // Appends a Control frame as a message of its own. False if not even a control slot is free.
  [[nodiscard]] bool append_control(Slab& slab, std::span<std::byte> frame) noexcept;

  // The first frame of the first message that waits, where a grant may be written; empty if none
  // waits or the first is a Control frame.
  [[nodiscard]] std::span<std::byte> grant_place() const noexcept;

  // Slabs that messages gather from, posted or waiting.
  [[nodiscard]] std::uint32_t pinned_slabs() const noexcept { return pinned_slabs_; }
  [[nodiscard]] bool pins(const Slab& slab) const noexcept { return pins_[slab.index] > 0; }
  [[nodiscard]] bool at_share() const noexcept { return 2 * pinned_slabs_ >= slabs_.free_count(); }

  // Posts what waits. False if the queue pair refused: what it refused is gone, failed() says so.
  bool flush() noexcept;
  [[nodiscard]] bool failed() const noexcept { return failed_; }

  // A signalled work request completed: gives back all places up to `position` (part of its wr_id).
  void complete(std::uint32_t position) noexcept;
  // Gives back every place: the queue pair is destroyed and reads no more.
  void abandon() noexcept;

  [[nodiscard]] std::uint32_t in_flight() const noexcept { return head_ - tail_; }
  // Messages posted since the last that was signalled.
  [[nodiscard]] std::uint32_t unsignalled() const noexcept { return unsignalled_; }
  // Whether a message that was posted signalled is in flight.
  [[nodiscard]] bool awaits_completion() const noexcept { return in_flight() > unsignalled_; }
  [[nodiscard]] std::uint32_t bytes_in_flight() const noexcept { return bytes_in_flight_; }
  // Since construction.
  struct Totals {
    std::uint64_t messages = 0;  // posted, with packets
    std::uint64_t controls = 0;  // posted, Control
    std::uint64_t packets = 0;   // in posted messages
    std::uint64_t bytes = 0;     // of IP packets, in posted messages
    std::uint64_t doorbells = 0;
    std::uint64_t lost_packets = 0;  // refused by the queue pair
  };
  [[nodiscard]] const Totals& totals() const noexcept { return totals_; }

  // The work request id of a send: top bit clear, then the link, then the position.
  [[nodiscard]] static constexpr std::uint64_t work_request_id(LinkId id, std::uint32_t position) {
    return std::uint64_t{id.value()} << 32 | position;
  }
  [[nodiscard]] static constexpr LinkId link_of(std::uint64_t wr_id) {
    return LinkId(static_cast<std::uint32_t>(wr_id >> 32));
  }
  [[nodiscard]] static constexpr std::uint32_t position_of(std::uint64_t wr_id) {
    return static_cast<std::uint32_t>(wr_id);
  }

 private:
  struct Message {
    std::array<Slab*, kMaxGather> slabs{};  // one reference each, no two neighbours equal
    std::uint32_t slab_count = 0;
    std::uint32_t bytes = 0;
    std::uint32_t packets = 0;  // 0: Control
    std::uint32_t packet_bytes = 0;
  };
  struct Staged {
    std::array<ibv_sge, kMaxGather> gather{};
    int gather_count = 0;
    std::byte* first_frame = nullptr;
  };

  [[nodiscard]] Message& place(std::uint32_t position) noexcept {
    return ring_[position & (ring_.size() - 1)];
  }
  [[nodiscard]] bool joins(const Slab& slab, std::span<const std::byte> frame) const noexcept;
  void begin_message(Slab& slab, std::span<std::byte> frame, bool control) noexcept;
  void extend(Slab& slab, std::span<std::byte> frame) noexcept;
  void add_element(Slab& slab, std::span<std::byte> frame) noexcept;
  void pin(Slab& slab) noexcept;
  void unpin(Slab& slab) noexcept;
  void prepare(std::uint32_t index) noexcept;
  [[nodiscard]] bool wants_signal(const Message& message, bool last) const noexcept;
  void give_back(Message& message) noexcept;
  void count_posted(std::uint32_t posted) noexcept;
  [[gnu::cold]] void drop_refused(std::uint32_t posted) noexcept;

  ibv_qp* queue_pair_;
  LinkId id_;
  Limits limits_;
  SlabPool& slabs_;
  DoorbellSizes& sizes_;
  // A power of two, so that positions keep their places when they wrap at 2^32.
  std::vector<Message> ring_;
  std::vector<std::uint32_t> pins_;  // references to each slab of the pool
  std::uint32_t pinned_slabs_ = 0;   // of which there is one
  // Positions run freely and wrap: [tail_, head_ - staged_) are posted, the last staged_ wait.
  std::uint32_t head_;
  std::uint32_t tail_;
  std::uint32_t staged_ = 0;
  bool open_ = false;  // the last staged message takes more frames
  bool failed_ = false;
  std::uint32_t unsignalled_ = 0;
  std::uint32_t bytes_unsignalled_ = 0;
  std::uint32_t bytes_in_flight_ = 0;
  std::array<ibv_send_wr, kMaxChain> requests_{};
  std::array<Staged, kMaxChain> chain_{};
  Totals totals_;
};

}  // namespace ipoverbs::transport
