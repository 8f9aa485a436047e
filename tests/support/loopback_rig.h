// The rig of the loopback network's own tests: a host with everything that one end needs, and the
// events it has seen, as lines to compare.
#pragma once

#include <poll.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/ip.h"
#include "tests/support/loopback_device.h"
#include "verbs/device.h"

namespace ipoverbs::support {

inline const IpAddress kA = *IpAddress::parse("192.0.2.1");
inline const IpAddress kB = *IpAddress::parse("192.0.2.2");
inline constexpr std::uint16_t kPort = 4755;

inline std::span<const std::byte> as_data(std::string_view text) {
  return std::as_bytes(std::span(text));
}

[[nodiscard]] inline bool readable(int fd) {
  pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, 0) == 1;
}

// The errno that `action` throws as SystemError; 0 if it does not throw.
template <class Action>
[[nodiscard]] int error_of(Action action) {
  try {
    action();
  } catch (const SystemError& error) {
    return error.code().value();
  }
  return 0;
}

// One end: a device, a completion queue, 64 slots of memory of 1024 bytes and, if the device has
// them, shared receives. It keeps what connections come in and writes down the events.
class Host : public verbs::EventHandler {
 public:
  static constexpr std::size_t kSlot = 1024;

  Host(LoopbackNetwork& network, IpAddress address, const LoopbackOptions& options = {})
      : underlay(address),
        device(network.open(address, options)),
        region(device->register_memory(memory)),
        completions(device->create_completion_queue(256)) {
    if (device->capabilities().has_srq()) shared = device->create_shared_receive_queue(64);
  }

  void on_event(verbs::Event& event) override {
    // to_string() of the seam gives the words that the log shows.
    std::string line = verbs::to_string(event.kind);
    if (event.status != 0) line += fmt::format(" {}", event.status);
    events.push_back(line);
    data.assign(event.private_data.begin(), event.private_data.end());
    if (event.incoming) connection = std::move(event.incoming);
  }
  // Handles what is pending and gives the events, as lines.
  std::vector<std::string> process() {
    events.clear();
    device->process_events(*this);
    return events;
  }

  void dial(const IpAddress& to, std::uint16_t port = kPort) {
    connection = device->dial({.endpoint = {to, port, 0}}, {});
  }
  void create_queue_pair(std::uint32_t send_depth = 16, std::uint32_t receive_depth = 16,
                         std::uint32_t send_sge = 4) {
    connection->create_queue_pair({.completion_queue = completions.get(),
                                   .shared_receive_queue = shared.get(),
                                   .send_depth = send_depth,
                                   .receive_depth = receive_depth,
                                   .send_sge = send_sge});
  }
  [[nodiscard]] ibv_qp* qp() const { return connection->queue_pair(); }
  [[nodiscard]] std::uint32_t key() const { return region->local_key().value(); }

  [[nodiscard]] std::span<std::byte> slot(std::size_t i) {
    return std::span(memory).subspan(i * kSlot, kSlot);
  }
  void write(std::size_t i, std::string_view text) {
    std::ranges::copy(as_data(text), slot(i).begin());
  }
  [[nodiscard]] std::string read(std::size_t i, std::size_t length) {
    return {reinterpret_cast<const char*>(slot(i).data()), length};
  }
  [[nodiscard]] ibv_sge sge(std::size_t i, std::size_t length) {
    return {reinterpret_cast<std::uintptr_t>(slot(i).data()), static_cast<std::uint32_t>(length),
            key()};
  }

  // Posts the slot `i`, wr_id `i`; the error of the post.
  int receive(std::size_t i, std::size_t length = kSlot) { return receive(i, sge(i, length)); }
  int receive(std::size_t wr_id, ibv_sge into) {
    ibv_recv_wr request{.wr_id = wr_id, .next = nullptr, .sg_list = &into, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    return shared ? ibv_post_srq_recv(shared->raw(), &request, &bad)
                  : ibv_post_recv(qp(), &request, &bad);
  }
  int send(std::size_t wr_id, std::vector<ibv_sge> gather, unsigned int flags = IBV_SEND_SIGNALED) {
    ibv_send_wr request{};
    request.wr_id = wr_id;
    request.sg_list = gather.data();
    request.num_sge = static_cast<int>(gather.size());
    request.opcode = IBV_WR_SEND;
    request.send_flags = flags;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp(), &request, &bad);
  }
  // Writes `text` into the slot `i` and sends it with wr_id `i`.
  int send(std::size_t i, std::string_view text, unsigned int flags = IBV_SEND_SIGNALED) {
    write(i, text);
    return send(i, std::vector{sge(i, text.size())}, flags);
  }
  // Polls all completions: "send 3", "receive 2 of 11 bytes", or "5: <status>".
  std::vector<std::string> poll() {
    std::vector<std::string> lines;
    ibv_wc wc{};
    while (ibv_poll_cq(completions->raw(), 1, &wc) == 1) {
      if (wc.status != IBV_WC_SUCCESS) {
        lines.push_back(fmt::format("{}: status {}", wc.wr_id, static_cast<int>(wc.status)));
      } else if (wc.opcode == IBV_WC_RECV) {
        lines.push_back(fmt::format("receive {} of {} bytes", wc.wr_id, wc.byte_len));
      } else {
        lines.push_back(fmt::format("send {}", wc.wr_id));
      }
    }
    return lines;
  }

  IpAddress underlay;
  std::array<std::byte, 64 * kSlot> memory{};
  std::unique_ptr<verbs::Device> device;
  std::unique_ptr<verbs::MemoryRegion> region;
  std::unique_ptr<verbs::CompletionQueue> completions;
  std::unique_ptr<verbs::SharedReceiveQueue> shared;
  std::unique_ptr<verbs::Connection> connection;
  std::vector<std::string> events;  // of the last process()
  std::vector<std::byte> data;      // private data of the last event
};

using Lines = std::vector<std::string>;

// A dials B; both are established and have handled their events.
inline void reconnect(Host& a, Host& b) {
  a.dial(b.underlay);
  ASSERT_EQ(a.process(), Lines{"route resolved"});
  a.create_queue_pair();
  a.connection->connect({});
  ASSERT_EQ(b.process(), Lines{"connect request"});
  b.create_queue_pair();
  b.connection->accept({});
  ASSERT_EQ(a.process(), Lines{"established"});
  ASSERT_EQ(b.process(), Lines{"established"});
}

// The same when B does not listen yet.
inline void establish(Host& a, Host& b) {
  b.device->listen(kPort);
  reconnect(a, b);
}

}  // namespace ipoverbs::support
