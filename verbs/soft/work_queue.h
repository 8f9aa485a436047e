// Posted work: rings of send and receive requests, with their scatter/gather lists beside them.
//
// Everything is allocated when a queue is made; posting copies the request and its list, and, where
// IBV_SEND_INLINE asks for it, the data. Posts fail with what rdma-core's providers return: EINVAL
// for what can never be (too many SGEs, too much inline data, an opcode that this device has not),
// ENOMEM for a full queue. Memory that is not registered is found out when posting and reported as
// hardware does, by a completion with IBV_WC_LOC_PROT_ERR when its turn comes.
//
// Requests are named by a number that counts up for ever; its place in the ring is the remainder.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "verbs/soft/memory_table.h"
#include "verbs/soft/psn.h"
#include "verbs/soft/roce.h"

namespace ipoverbs::verbs::soft {

inline constexpr std::uint32_t kMaxSendSge = 32;
inline constexpr std::uint32_t kMaxReceiveSge = 4;
inline constexpr std::uint32_t kMaxInline = 512;                      // bytes
inline constexpr std::uint64_t kMaxMessage = std::uint64_t{1} << 30;  // bytes: below 2^23 PSNs

// A counter of requests; compares by !=, lies in the ring at index % capacity.
using RequestIndex = std::uint64_t;

struct SendRequest {
  std::uint64_t id = 0;       // wr_id
  std::uint32_t length = 0;   // bytes of the message
  Psn first;                  // set when its first packet is sent
  std::uint32_t packets = 0;  // at the connection's path MTU; set with `first`
  std::uint32_t sges = 0;
  std::array<std::byte, kImmediateSize> immediate{};
  bool with_immediate = false;
  bool signaled = false;
  bool solicited = false;
  ibv_wc_status defect = IBV_WC_SUCCESS;  // else: completes with it instead of being sent

  [[nodiscard]] Psn last() const { return first.plus(packets - 1); }
};

class SendQueue {
 public:
  // `depth` in requests, at most `max_sge` SGEs and `max_inline` bytes each. `signal_all`: every
  // request is signalled (sq_sig_all).
  SendQueue(std::uint32_t depth, std::uint32_t max_sge, std::uint32_t max_inline, bool signal_all);

  // 0 or an errno value.
  [[nodiscard]] int post(const ibv_send_wr& request, const MemoryTable& memory) noexcept;
  [[nodiscard]] RequestIndex head() const noexcept { return head_; }
  [[nodiscard]] RequestIndex tail() const noexcept { return tail_; }
  [[nodiscard]] bool empty() const noexcept { return head_ == tail_; }
  [[nodiscard]] std::uint32_t depth() const noexcept { return depth_; }
  // head() <= index < tail().
  [[nodiscard]] SendRequest& operator[](RequestIndex index) noexcept;
  [[nodiscard]] std::span<const ibv_sge> sges(RequestIndex index) const noexcept;
  // Takes the oldest out.
  void pop() noexcept { ++head_; }

 private:
  void take_data(const ibv_send_wr& request, SendRequest& slot, const MemoryTable& memory) noexcept;
  void take_inline(const ibv_send_wr& request) noexcept;

  std::uint32_t depth_;
  std::uint32_t max_sge_;
  std::uint32_t max_inline_;
  bool signal_all_;
  RequestIndex head_ = 0;
  RequestIndex tail_ = 0;
  std::vector<SendRequest> requests_;
  std::vector<ibv_sge> sges_;      // max_sge_ for each request
  std::vector<std::byte> inline_;  // max_inline_ for each request
};

struct ReceiveRequest {
  std::uint64_t id = 0;
  std::uint64_t capacity = 0;  // bytes
  std::uint32_t sges = 0;
  bool registered = true;
  std::array<ibv_sge, kMaxReceiveSge> sge{};
};

// Of one queue pair, or shared by several: those of a completion queue, so that one thread uses it.
class ReceiveQueue {
 public:
  // Which request is taken next. A queue pair's own are taken in the order of posting. Those of a
  // shared queue go to whichever queue pair needs one, so that their owner knows them by wr_id
  // alone: there the one posted last is taken, whose memory is still in the cache.
  enum class Order : std::uint8_t { OldestFirst, NewestFirst };
  ReceiveQueue(std::uint32_t depth, std::uint32_t max_sge, Order order = Order::OldestFirst);

  // 0 or an errno value.
  [[nodiscard]] int post(const ibv_recv_wr& request, const MemoryTable& memory) noexcept;
  [[nodiscard]] bool empty() const noexcept { return head_ == tail_; }
  // The next to be taken; not empty.
  [[nodiscard]] const ReceiveRequest& front() const noexcept {
    return requests_[(newest_first() ? tail_ - 1 : head_) % depth_];
  }
  void pop() noexcept { newest_first() ? --tail_ : ++head_; }

 private:
  [[nodiscard]] bool newest_first() const noexcept { return order_ == Order::NewestFirst; }

  std::uint32_t depth_;
  std::uint32_t max_sge_;
  Order order_;
  RequestIndex head_ = 0;
  RequestIndex tail_ = 0;
  std::vector<ReceiveRequest> requests_;
};

}  // namespace ipoverbs::verbs::soft
