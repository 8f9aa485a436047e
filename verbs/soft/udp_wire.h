// UdpWire: one worker's share of port 4791.
//
// Theory of operation. Two sockets: one of the port's group receives what is steered to it
// (verbs/soft/port_group.h), another has a source port of its own to send from. That keeps the
// kernel's UDP_GRO from merging what two workers send, which would be handed to one of the
// receiver's workers; the far end does not look at source ports.
//
// Sending copies nothing in user space: a burst becomes one sendmmsg(2), each run of segments of
// one size in it one UDP_SEGMENT send, its list of pieces being headers, the poster's memory, pad
// and ICRC. The segments of a run leave with IPv4 identifications 0, 1, 2, ... A run that the
// kernel refuses as such (no checksum offload on the way) leaves datagram by datagram, each with 0;
// after kRefusals of those with none between that was taken, all do, for good. A datagram that the
// kernel does not take is lost, as on any wire, and counted by the reason.
//
// Receiving is one recvmmsg(2) of up to kBatch buffers of 64 KiB, the first of which stay hot.
//
// Set-up throws; send() and receive() are the worker's alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/fd.h"
#include "core/gauge.h"
#include "core/ip.h"
#include "verbs/soft/wire.h"

namespace ipoverbs::verbs::soft {

// Written by the wire's user, read by any thread.
struct UdpCounters {
  Gauge sends;     // handed to the kernel, a run counting as one
  Gauge segments;  // datagrams in those
  // Datagrams lost because of EMSGSIZE (the path's MTU is less than it was); EAGAIN, ENOBUFS and
  // ENOMEM (a full send buffer or queue); no route, or an interface that is down; EPERM and EACCES
  // (a firewall); anything else.
  Gauge too_long;
  Gauge no_room;
  Gauge unreachable;
  Gauge forbidden;
  Gauge send_errors;
  Gauge refused_runs;      // UDP_SEGMENT refused, its datagrams sent one by one
  Gauge segmentation_off;  // 1: given up for good
  Gauge refused_classes;   // traffic class not taken, sent with another
  Gauge receives;          // buffers filled
  Gauge receive_errors;
};

class UdpWire : public Wire {
 public:
  static constexpr std::size_t kBatch = 16;
  static constexpr std::size_t kBuffer = 65536;
  static constexpr unsigned kRefusals = 8;

  // Sends from `local`'s address, its source port chosen by `random`, and receives from `receive`,
  // a socket that outlives the wire. Throws SystemError.
  UdpWire(int receive, const Endpoint& local, std::uint64_t random);
  UdpWire(const UdpWire&) = delete;
  UdpWire& operator=(const UdpWire&) = delete;
  ~UdpWire() override;

  void send(const Burst& burst, TimePoint now) noexcept override;
  void send_one(const Path& path, std::span<const std::byte> datagram,
                TimePoint now) noexcept override;
  [[nodiscard]] std::span<const Received> receive(TimePoint now) noexcept override;

  // The address and port that is sent from.
  [[nodiscard]] const Endpoint& local() const { return local_; }
  [[nodiscard]] const UdpCounters& counters() const { return counters_; }
  // As if the kernel had refused UDP_SEGMENT so often.
  void disable_segmentation() noexcept;

 private:
  struct Outgoing;  // what one sendmmsg(2) is given
  struct Incoming;  // what one recvmmsg(2) is given

  [[nodiscard]] std::size_t send_from(const Burst& burst, std::size_t first) noexcept;
  [[nodiscard]] std::size_t build(const Burst& burst, std::size_t first) noexcept;
  [[nodiscard]] std::size_t flush() noexcept;
  void send_singly(const Burst& burst, std::size_t first, std::size_t count) noexcept;
  void build_run(const Burst& burst, std::size_t first, std::size_t count) noexcept;
  [[nodiscard]] bool refuses_segmentation(int error, std::size_t run) const noexcept;
  void count_error(int error, std::size_t datagrams) noexcept;
  void set_class(const Path& path) noexcept;

  int receive_;
  Endpoint local_;
  Fd send_;
  bool segmentation_ = true;
  unsigned refusals_ = 0;           // runs, since one was taken
  std::uint8_t traffic_class_ = 0;  // of send_, now
  std::unique_ptr<Outgoing> outgoing_;
  std::unique_ptr<Incoming> incoming_;
  std::array<Received, kBatch> received_;
  UdpCounters counters_;
};

}  // namespace ipoverbs::verbs::soft
