// The connections that a connection manager knows, found by what messages name them by, and by
// which of them has a timer due.
//
// Bounded: when it is full, the connection longest in TimeWait makes room; if there is none,
// nothing is added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/clock.h"
#include "verbs/soft/cm_connection.h"

namespace ipoverbs::verbs::soft {

class CmTable {
 public:
  // `first` is where communication IDs start to count; `limit` is how many connections there may
  // be.
  CmTable(CommId first, std::size_t limit) : next_id_(first), limit_(limit) {}

  // A new connection with an ID that has not been used for 2^32 others; nullptr when full. Lives
  // until erase().
  [[nodiscard]] CmConnection* add();
  void erase(CmConnection& connection);

  // nullptr: none.
  [[nodiscard]] CmConnection* find(CommId local) const;
  // By the other side's adapter and its communication ID, or its queue pair.
  [[nodiscard]] CmConnection* find_remote(CaGuid guid, CommId remote) const;
  [[nodiscard]] CmConnection* find_remote_qp(CaGuid guid, QpNumber qp) const;

  // Makes a connection whose remote_guid, remote_id and remote_qp are set findable by them. False,
  // and nothing is changed, if another connection has the same remote ID or queue pair.
  [[nodiscard]] bool index(const CmConnection& connection);
  // No longer findable by its queue pair: the number may be used again.
  void forget_remote_qp(const CmConnection& connection);
  // No longer findable by anything but our own ID.
  void forget_remote(const CmConnection& connection);

  void set_due(CmConnection& connection, std::optional<TimePoint> due);
  [[nodiscard]] std::optional<TimePoint> next_due() const;
  // The connection that has been due longest at `now`; nullptr: none is.
  [[nodiscard]] CmConnection* due_at(TimePoint now) const;

  [[nodiscard]] std::size_t size() const { return connections_.size(); }
  // How many came from outside and are not established yet.
  [[nodiscard]] std::size_t pending() const;

  template <class F>
  void for_each(F&& function) const {
    for (const auto& [id, connection] : connections_) function(*connection);
  }

 private:
  bool make_room();

  CommId next_id_;
  std::size_t limit_;
  std::unordered_map<CommId, std::unique_ptr<CmConnection>> connections_;
  std::map<std::pair<CaGuid, CommId>, CommId> by_remote_id_;
  std::map<std::pair<CaGuid, QpNumber>, CommId> by_remote_qp_;
  std::set<std::pair<TimePoint, CommId>> timers_;
};

}  // namespace ipoverbs::verbs::soft
