// Node: the control path of one ipoverbs daemon, from an opened TUN to connected peers.
//
// It owns the device's current incarnation, the workers and the sessions, and drives them from one
// thread: whoever owns the Node waits until event_fd() is readable or next_deadline() has come,
// then calls process(). Nothing here blocks for long.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "core/clock.h"
#include "core/log.h"
#include "transport/options.h"
#include "transport/status.h"
#include "verbs/device.h"

namespace ipoverbs::transport {

// Opens the device, at start and again after it was removed. Throws SystemError or UsageError.
using DeviceOpener = std::function<std::unique_ptr<verbs::Device>()>;

class Node {
 public:
  // `tun_queues`: nonblocking descriptors of a TUN's queues with the 10-byte little-endian virtio
  // header, one worker each; they stay the caller's and outlive the Node. `node_id` is random, of
  // this start of the process. Opens the device and listens: throws what the opener throws,
  // SystemError if the port is taken.
  Node(Options options, std::span<const int> tun_queues, DeviceOpener opener, std::uint64_t node_id,
       Logger& logger, TimePoint now);
  // Disconnects every session and joins the workers.
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  [[nodiscard]] int event_fd() const;
  [[nodiscard]] TimePoint next_deadline() const;
  void process(TimePoint now);
  [[nodiscard]] Status status(TimePoint now) const;
  // Bits of Capability that every connected peer has: what the TUN may be asked to leave undone.
  // All bits while no peer is connected. Changes in process() only.
  [[nodiscard]] std::uint32_t peer_capabilities() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ipoverbs::transport
