// What the connection manager remembers of one connection.
#pragma once

#include <cstdint>
#include <optional>

#include "core/clock.h"
#include "core/ip.h"
#include "verbs/device.h"
#include "verbs/soft/cm_message.h"
#include "verbs/soft/cm_types.h"
#include "verbs/soft/psn.h"

namespace ipoverbs::verbs::soft {

// The specification's states (12.9), of both roles.
enum class CmState : std::uint8_t {
  RequestSent,      // active: REQ out, waiting for REP, REJ or MRA
  RequestHeld,      // active: MRA came, waiting longer
  RequestReceived,  // passive: the user has not answered yet
  ReplySent,        // passive: REP out, waiting for RTU, data or MRA
  ReplyHeld,        // passive: MRA came, waiting longer
  Established,
  DisconnectSent,  // DREQ out, waiting for DREP
  TimeWait,        // over, remembered so that late messages get their answer
  Closed,          // over, nothing is known to the other side; the user still has it
};

struct CmConnection {
  CommId local_id;
  CmState state = CmState::Closed;
  bool owned = true;      // the user has not released it
  bool reported = false;  // its end has been told to the user

  IpAddress remote;
  std::uint16_t remote_port = 0;  // of IP addressing (CMA), not of UDP
  CommId remote_id;               // meaningful once remote_guid is
  std::optional<CaGuid> remote_guid;
  QpNumber remote_qp;

  TransactionId transaction;  // of the REQ
  QpNumber local_qp;
  Psn receive_psn;  // ours, told in REQ or REP
  Psn send_psn;     // theirs
  PathMtu path_mtu;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry = 0;
  std::uint8_t ack_timeout = 0;
  std::uint8_t traffic_class = 0;

  // What goes out again when `due` comes (REQ, REP, DREQ), or is the answer to late duplicates in
  // TimeWait (REJ).
  CmMessage message;
  std::optional<TimePoint> due;  // kept by CmTable
  Duration wait{};               // until the next resend but one
  unsigned resends_left = 0;
};

}  // namespace ipoverbs::verbs::soft
