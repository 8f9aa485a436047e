#include "verbs/soft/cm_table.h"

#include <algorithm>
#include <cassert>

namespace ipoverbs::verbs::soft {

CmConnection* CmTable::add() {
  if (connections_.size() >= limit_ && !make_room()) {
    return nullptr;
  }
  while (next_id_ == CommId(0) || connections_.contains(next_id_)) {
    next_id_ = CommId(next_id_.value() + 1);
  }
  auto connection = std::make_unique<CmConnection>();
  connection->local_id = next_id_;
  next_id_ = CommId(next_id_.value() + 1);
  return connections_.emplace(connection->local_id, std::move(connection)).first->second.get();
}

// Only what the user has let go of.
bool CmTable::make_room() {
  for (const auto& [due, id] : timers_) {
    CmConnection* connection = find(id);
    if (connection->state == CmState::TimeWait && !connection->owned) {
      erase(*connection);
      return true;
    }
  }
  return false;
}

void CmTable::erase(CmConnection& connection) {
  set_due(connection, std::nullopt);
  forget_remote(connection);
  connections_.erase(connection.local_id);
}

CmConnection* CmTable::find(CommId local) const {
  const auto found = connections_.find(local);
  return found == connections_.end() ? nullptr : found->second.get();
}

CmConnection* CmTable::find_remote(CaGuid guid, CommId remote) const {
  const auto found = by_remote_id_.find({guid, remote});
  return found == by_remote_id_.end() ? nullptr : find(found->second);
}

CmConnection* CmTable::find_remote_qp(CaGuid guid, QpNumber qp) const {
  const auto found = by_remote_qp_.find({guid, qp});
  return found == by_remote_qp_.end() ? nullptr : find(found->second);
}

bool CmTable::index(const CmConnection& connection) {
  assert(connection.remote_guid);
  const std::pair id(*connection.remote_guid, connection.remote_id);
  const std::pair qp(*connection.remote_guid, connection.remote_qp);
  if (by_remote_id_.contains(id) || by_remote_qp_.contains(qp)) {
    return false;
  }
  by_remote_id_.emplace(id, connection.local_id);
  by_remote_qp_.emplace(qp, connection.local_id);
  return true;
}

void CmTable::forget_remote_qp(const CmConnection& connection) {
  if (!connection.remote_guid) {
    return;
  }
  const auto found = by_remote_qp_.find({*connection.remote_guid, connection.remote_qp});
  if (found != by_remote_qp_.end() && found->second == connection.local_id) {
    by_remote_qp_.erase(found);
  }
}

void CmTable::forget_remote(const CmConnection& connection) {
  forget_remote_qp(connection);
  if (!connection.remote_guid) {
    return;
  }
  const auto found = by_remote_id_.find({*connection.remote_guid, connection.remote_id});
  if (found != by_remote_id_.end() && found->second == connection.local_id) {
    by_remote_id_.erase(found);
  }
}

void CmTable::set_due(CmConnection& connection, std::optional<TimePoint> due) {
  if (connection.due) {
    timers_.erase({*connection.due, connection.local_id});
  }
  connection.due = due;
  if (due) {
    timers_.emplace(*due, connection.local_id);
  }
}

std::optional<TimePoint> CmTable::next_due() const {
  return timers_.empty() ? std::nullopt : std::optional(timers_.begin()->first);
}

CmConnection* CmTable::due_at(TimePoint now) const {
  if (timers_.empty() || timers_.begin()->first > now) {
    return nullptr;
  }
  return find(timers_.begin()->second);
}

std::size_t CmTable::pending() const {
  return static_cast<std::size_t>(std::ranges::count_if(connections_, [](const auto& entry) {
    const CmState state = entry.second->state;
    return state == CmState::RequestReceived || state == CmState::ReplySent ||
           state == CmState::ReplyHeld;
  }));
}

}  // namespace ipoverbs::verbs::soft
