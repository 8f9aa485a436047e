// Two live connection managers whose messages are bent on the way, and whose users do as the input
// says. Whatever comes, what a user relies on holds (cm_net.h), memory is bounded, and in the end
// nothing is left behind.

#include <array>

#include "tests/verbs/soft/cm_net.h"

namespace {

using namespace ipoverbs;
using namespace ipoverbs::verbs::soft;
using namespace std::chrono_literals;

class Input {
 public:
  explicit Input(std::span<const std::byte> bytes) : rest_(bytes) {}
  [[nodiscard]] bool empty() const { return rest_.empty(); }
  unsigned byte() {
    if (rest_.empty()) return 0;
    const auto value = std::to_integer<unsigned>(rest_.front());
    rest_ = rest_.subspan(1);
    return value;
  }
  std::span<const std::byte> bytes(std::size_t most) {
    const auto taken = rest_.first(std::min(most, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const std::byte> rest_;
};

class Game {
 public:
  explicit Game(std::span<const std::byte> bytes)
      : input_(bytes),
        nodes_{test::CmNode(*IpAddress::parse("192.0.2.1"), 1, config()),
               test::CmNode(*IpAddress::parse("192.0.2.2"), 2, config())} {}

  void play() {
    while (!input_.empty()) turn();
    for (auto& node : nodes_) {
      while (!node.users.empty()) node.release(node.users.begin()->first, now_);
    }
    for (int i = 0; i < 100; ++i) {
      now_ += 1s;
      for (auto& node : nodes_) node.expire(now_);
    }
    for (auto& node : nodes_) test::require(node.machine().size() == 0, "left behind");
  }

 private:
  static CmConfig config() {
    CmConfig config;
    config.max_connections = 12;
    config.max_pending = 4;
    return config;
  }

  void turn() {
    const unsigned op = input_.byte();
    test::CmNode& node = nodes_.at(op >> 7U);
    test::CmNode& other = nodes_.at(1 - (op >> 7U));
    switch (op & 15U) {
      case 0:
        node.dial(other.address(), now_);
        break;
      case 1:
        with_user(node, [&](CommId id, test::UserConnection& user) {
          if (user.incoming && !user.answered) node.accept(id, now_);
        });
        break;
      case 2:
        with_user(node, [&](CommId id, test::UserConnection& user) {
          if (user.incoming && !user.answered) node.reject(id, now_);
        });
        break;
      case 3:
        with_user(node, [&](CommId id, auto&) { node.disconnect(id, now_); });
        break;
      case 4:
        with_user(node, [&](CommId id, auto&) { node.release(id, now_); });
        break;
      case 5:
        with_user(node, [&](CommId id, auto&) { node.data(id, now_); });
        break;
      case 6:
        if (!node.wire.empty()) node.wire.pop_front();
        break;
      case 7:
        now_ += std::chrono::milliseconds(1U << (input_.byte() & 15U));
        for (auto& n : nodes_) n.expire(now_);
        break;
      case 8:
        other.hear(node.address(), input_.bytes(kMadSize), now_);
        break;
      default:
        deliver(node, other, op);
    }
  }

  template <class F>
  void with_user(test::CmNode& node, F&& function) {
    if (node.users.empty()) return;
    auto it = node.users.begin();
    std::advance(it, input_.byte() % node.users.size());
    function(it->first, it->second);
  }

  // Bits of the operation: keep the message for another time; change some bytes of its body.
  void deliver(test::CmNode& from, test::CmNode& to, unsigned op) {
    if (from.wire.empty()) return;
    const CmSend send = from.wire.front();
    if ((op & 0x10U) == 0) from.wire.pop_front();
    Mad mad = send.mad;
    if ((op & 0x20U) != 0) {
      for (unsigned i = input_.byte() & 3U; i > 0; --i) {
        // Mostly where the fields are: private data begins after 164 bytes at the latest.
        mad.at(8 + input_.byte() % 170) = static_cast<std::byte>(input_.byte());
      }
    }
    to.hear(from.address(), mad, now_);
  }

  Input input_;
  std::array<test::CmNode, 2> nodes_;
  TimePoint now_{1000s};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Game(std::as_bytes(std::span(data, size))).play();
  return 0;
}
