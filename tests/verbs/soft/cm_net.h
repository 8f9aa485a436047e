// Two connection managers, their users and what lies between them, for the simulation and the
// fuzzer. Every output is checked against what a user may rely on; a violation throws.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "verbs/soft/cm_machine.h"

namespace ipoverbs::verbs::soft::test {

inline void require(bool good, const char* what) {
  if (!good) throw std::logic_error(what);
}

// One connection as its user sees it.
struct UserConnection {
  bool incoming = false;
  bool answered = false;  // accepted or rejected
  bool established = false;
  bool disconnecting = false;  // the user has said so
  bool over = false;           // Rejected, Failed or Disconnected
  bool flushed = false;
  std::optional<CmEventKind> end{};
  std::optional<CmQueuePairConnect> qp{};
  TimePoint began{};
  TimePoint established_at{};
};

class CmNode {
 public:
  static constexpr std::uint16_t kPort = 4755;
  CmNode(const IpAddress& address, std::uint64_t seed, CmConfig config = {})
      : machine_((config.local = address, config), seed),
        address_(address),
        limit_(config.max_connections) {
    machine_.listen(kPort);
  }

  // --- The user -----------------------------------------------------------------------------
  std::optional<CommId> dial(const IpAddress& remote, TimePoint now) {
    const auto id = machine_.connect({.remote = remote, .port = kPort, .path_mtu = PathMtu(1024)},
                                     {.number = next_qp()}, now);
    if (id) {
      require(!users.contains(*id), "a communication ID was used twice");
      users[*id].began = now;
    }
    drain(now);
    return id;
  }
  void accept(CommId id, TimePoint now) {
    UserConnection& user = users.at(id);
    user.answered = true;
    const bool accepted = machine_.accept(id, {.number = next_qp()}, {}, now);
    drain(now);
    require(accepted == user.qp.has_value() || user.over, "accept() said something else");
  }
  void reject(CommId id, TimePoint now) {
    users.at(id).answered = true;
    users.at(id).disconnecting = true;
    machine_.reject(id, {}, now);
    drain(now);
  }
  void disconnect(CommId id, TimePoint now) {
    users.at(id).disconnecting = true;
    machine_.disconnect(id, now);
    drain(now);
  }
  void release(CommId id, TimePoint now) {
    machine_.release(id, now);
    released.emplace(id, std::move(users.at(id)));
    users.erase(id);
    drain(now);
  }
  void data(CommId id, TimePoint now) {
    machine_.data_received(id);
    drain(now);
  }

  // --- The wire -----------------------------------------------------------------------------
  void hear(const IpAddress& source, std::span<const std::byte> mad, TimePoint now) {
    machine_.receive(source, mad, now);
    const std::size_t outputs = drain(now);
    require(outputs <= 4, "one message made more than four outputs");
    require(machine_.size() <= limit_, "more connections than there may be");
  }
  void expire(TimePoint now) {
    machine_.expire(now);
    drain(now);
  }

  [[nodiscard]] CmMachine& machine() { return machine_; }
  [[nodiscard]] const IpAddress& address() const { return address_; }

  std::deque<CmSend> wire;                    // sent, not carried away yet
  std::map<CommId, UserConnection> users;     // not released
  std::map<CommId, UserConnection> released;  // how they were then
  std::uint64_t sent = 0;

 private:
  QpNumber next_qp() { return QpNumber(qp_++); }

  std::size_t drain(TimePoint now) {
    std::size_t outputs = 0;
    while (const auto output = machine_.take()) {
      ++outputs;
      std::visit([&](const auto& o) { check(o, now); }, *output);
    }
    return outputs;
  }
  void check(const CmSend& send, TimePoint) {
    ++sent;
    require(parse_cm(send.mad).has_value(), "sent what does not parse");
    wire.push_back(send);
  }
  void check(const CmQueuePairConnect& connect, TimePoint) {
    UserConnection& user = users[connect.connection];  // may have been made by dial() just now
    require(!user.qp, "a queue pair was connected twice");
    require(connect.qp.value() >= 2 && connect.remote_qp.value() >= 2, "queue pair number");
    user.qp = connect;
  }
  void check(const CmQueuePairFlush& flush, TimePoint) {
    const auto found = users.find(flush.connection);
    if (found == users.end()) return;  // released: the user has none any more
    require(found->second.qp && found->second.qp->qp == flush.qp, "flushed before connected");
    require(!found->second.flushed, "flushed twice");
    found->second.flushed = true;
  }
  void check(const CmEvent& event, TimePoint now) {
    require(!released.contains(event.connection), "an event after the release");
    if (event.kind == CmEventKind::ConnectRequest) {
      require(!users.contains(event.connection), "a communication ID was used twice");
      users[event.connection] = {.incoming = true, .began = now};
      return;
    }
    require(users.contains(event.connection), "an event of nobody's");
    UserConnection& user = users.at(event.connection);
    require(!user.over, "an event after the last");
    if (event.kind == CmEventKind::Established) {
      require(!user.established && user.qp.has_value() && !user.flushed, "established");
      user.established = true;
      user.established_at = now;
      return;
    }
    user.over = true;
    user.end = event.kind;
    require(user.flushed == user.qp.has_value(), "over, and the queue pair not flushed");
    switch (event.kind) {
      case CmEventKind::Rejected:
        require(!user.incoming && !user.established, "rejected");
        break;
      case CmEventKind::Failed:
        require(!user.established, "failed after it was established");
        break;
      default:
        require(user.established, "disconnected before it was established");
    }
  }

  CmMachine machine_;
  IpAddress address_;
  std::size_t limit_;
  std::uint32_t qp_ = 100;
};

}  // namespace ipoverbs::verbs::soft::test
