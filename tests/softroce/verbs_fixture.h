// Two ends of a link on rdma_rxe, for tests that run as root in the guest: two SoftRoCE devices on
// the two ends of one veth pair, both in the initial network namespace (rxe of Linux 6.1 knows no
// other), and a Side on each with a Device, a completion queue, buffers and a record of its events.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/log.h"
#include "core/memory.h"
#include "verbs/device.h"
#include "verbs/open.h"

namespace ipoverbs::verbs::test {

inline constexpr std::uint16_t kPort = 4755;
inline constexpr std::size_t kMessage = std::size_t{64} << 10;

// Runs a shell command; a failure fails the test.
void run(const std::string& command);

// What a shell command prints.
[[nodiscard]] std::string output_of(const std::string& command);

// Makes the link; where it cannot be made, every test is skipped with the reason. The link stays:
// it goes with the guest.
class Link : public ::testing::Environment {
 public:
  void SetUp() override;
};

struct Recorded {
  EventKind kind{};
  Connection* connection = nullptr;
  std::vector<std::byte> private_data;
  std::string detail;
  int status = 0;
};

// What happens to a connect request.
enum class Answer { Keep, Drop };

class Side : public EventHandler {
 public:
  explicit Side(const std::string& address, ConnectionTimers timers = {});

  void on_event(Event& event) override;
  [[nodiscard]] bool saw(EventKind kind) const { return count(kind) > 0; }
  [[nodiscard]] int count(EventKind kind) const;
  // The last event of that kind; fails the test if there is none.
  [[nodiscard]] const Recorded& last(EventKind kind) const;

  [[nodiscard]] QueuePairConfig queues(bool shared) const;
  // Posts buffers [first, first + count) to the connection or the shared receive queue.
  void post_receives(Connection* connection, std::size_t first, std::size_t count);
  // Posts a chain of sends of the same buffers, the last one signalled.
  void post_sends(const Connection& connection, std::size_t first, std::size_t count) const;
  [[nodiscard]] std::span<std::byte> buffer(std::size_t index) const {
    return memory.bytes().subspan(index * kMessage, kMessage);
  }
  [[nodiscard]] ibv_sge sge(std::size_t index, std::size_t size = kMessage) const;

  Endpoint address;
  std::shared_ptr<Logger> logger = make_stderr_logger("debug");
  MappedMemory memory{kMessage * 32};
  std::unique_ptr<Device> device;
  std::unique_ptr<MemoryRegion> region;
  std::unique_ptr<CompletionQueue> completions;
  std::unique_ptr<SharedReceiveQueue> shared_receives;
  std::vector<Recorded> events;
  std::vector<std::unique_ptr<Connection>> incoming;
  Answer answer = Answer::Keep;
  std::function<void(Event&)> hook;  // called first
};

// After each test the kernel must hold what it held before.
class LeavesNothing : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

 private:
  std::string untouched_;  // rdma_resources() before the test
};

class TwoSides : public LeavesNothing {
 protected:
  void SetUp() override;
  void TearDown() override;
  // Opens both ends.
  void open();
  // Handles events of both ends until `done`; false if that takes longer than `limit`.
  [[nodiscard]] bool until(const std::function<bool()>& done,
                           std::chrono::milliseconds limit = std::chrono::seconds(5));
  [[nodiscard]] std::unique_ptr<Connection> dial();
  // Connects dialler to listener with queue pairs and, without a shared queue, posted receives.
  void connect(bool shared = true, std::span<const std::byte> hello = {},
               std::span<const std::byte> answer = {});
  // Polls `side` until `count` completions came, each successful.
  [[nodiscard]] std::vector<ibv_wc> completions(Side& side, std::size_t count);

  std::unique_ptr<Side> dialler;
  std::unique_ptr<Side> listener;
  std::unique_ptr<Connection> out;  // the dialler's
  std::unique_ptr<Connection> in;   // the listener's
};

// What the test program does instead of testing, for its own tests: "--refusal ADDRESS" prints why
// opening is refused, "--locked-memory" why registering is, "--list" one line for each port.
int run_child(const std::string& what, const std::string& argument);

[[nodiscard]] std::vector<std::byte> bytes(std::size_t size, unsigned seed);
[[nodiscard]] std::size_t open_descriptors();
// How many objects of each kind the kernel holds on each RDMA device, contexts excepted: librdmacm
// keeps those.
[[nodiscard]] std::string rdma_resources();
[[nodiscard]] bool readable(int fd, std::chrono::milliseconds limit);

}  // namespace ipoverbs::verbs::test
