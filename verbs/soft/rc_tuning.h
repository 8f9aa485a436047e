// Numbers of the reliable connection that no peer prescribes, and what is counted about it.
#pragma once

#include <chrono>
#include <cstdint>

#include "core/clock.h"

namespace ipoverbs::verbs::soft {

struct RcTuning {
  // An acknowledgement is asked for (AckReq) at the end of every so many messages: one for each
  // costs a tenth of the throughput and as much of the latency.
  std::uint32_t ask_messages = 8;
  // ... and when there is nothing more to send, but only so often, and for a signalled request.
  Duration ask_idle = std::chrono::milliseconds(4);
  // The receiver keeps back the first acknowledgement that is asked for, in case that a request is
  // sent the other way: then both leave as one (as the delayed ACK of RFC 1122, section 4.2.3.2).
  // Below `probe`, or the other side would ask again.
  Duration ack_delay = std::chrono::milliseconds(4);
  // Nothing sent for so long, or for two round trips if that is longer, with packets unanswered:
  // the last of them is sent again, asking (as RFC 8985's tail loss probe). Doubles with the
  // timeout; not before a round trip was measured, which it would spoil.
  Duration probe = std::chrono::milliseconds(8);
  // Least time beyond a round trip to wait for an answer before everything unanswered is sent
  // again: a busy host may not schedule the other side for some milliseconds. Doubles each time,
  // until a round trip has been measured again: an answer to what was sent twice says nothing of it
  // (Karn's rule; RFC 6298, section 5).
  Duration min_timeout = std::chrono::milliseconds(12);
  // The same before a round trip was measured.
  Duration first_timeout = std::chrono::milliseconds(20);
  // Congestion is told of (CNP) so often at most for one queue pair: the requester reacts once a
  // round trip anyway. 50 us is DCQCN's (Zhu et al., Congestion Control for Large-Scale RDMA
  // Deployments, SIGCOMM 2015, section 3.1).
  Duration notify = std::chrono::microseconds(50);
  // Longest time to wait, where the connection's ACK timeout is endless.
  Duration max_timeout = std::chrono::seconds(1);
};

struct RequesterCounters {
  std::uint64_t messages = 0;  // acknowledged
  std::uint64_t packets = 0;   // sent, those sent again included
  std::uint64_t resent = 0;    // packets sent again after a loss
  std::uint64_t probes = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t sequence_naks = 0;  // heard
  std::uint64_t rnr_naks = 0;       // heard
  std::uint64_t stale_answers = 0;  // about packets long acknowledged, or never sent
  std::uint64_t notifications = 0;  // of congestion, heard
};

struct ResponderCounters {
  std::uint64_t messages = 0;  // received whole
  std::uint64_t packets = 0;   // in order
  std::uint64_t duplicates = 0;
  std::uint64_t out_of_sequence = 0;
  std::uint64_t acks = 0;  // sent
  std::uint64_t sequence_naks = 0;
  std::uint64_t rnr_naks = 0;
  std::uint64_t fatal_naks = 0;
  std::uint64_t notifications = 0;  // of congestion
};

}  // namespace ipoverbs::verbs::soft
