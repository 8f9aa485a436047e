# shellcheck shell=bash
# limit: 600
# 200 reconnects leave nothing over in the daemon that stays: descriptors, memory, queue pairs.
# The first half of them warms up: it touches, once, all of the memory that was set aside at the start.
rounds=${RECONNECTS:-200}
warm_up=$((rounds / 2))
reconnect() { # ROUND: b is killed, or ends well, which takes longer; no ping comes back until it is connected anew
  if (($1 % 4 == 0)); then
    stop b || fail "round $1: b did not end well"
  else
    stop b KILL || true
  fi
  start b
  expect "round $1: not connected again" reaches 5 a
}
start_both
for ((round = 1; round <= warm_up; ++round)); do reconnect $round; done
descriptors_before=$(descriptors a) memory_before=$(resident_kib a) pairs_before=$(queue_pairs a)
for ((; round <= rounds; ++round)); do reconnect $round; done
reaches 2 a || fail "no ping after $rounds reconnects"
# A queue pair may live on in timewait for some seconds.
pairs_are_back() { (($(queue_pairs a) <= pairs_before)); }
descriptors_are_back() { (($(descriptors a) <= descriptors_before)); }
expect_within 10 "queue pairs were left over: $(queue_pairs a), before $pairs_before" pairs_are_back
expect_within 10 "descriptors were left over: $(descriptors a), before $descriptors_before" descriptors_are_back
memory_after=$(resident_kib a)
# A session that goes may meet the one that follows it for the first time: then each worker's receives grow, once,
# by an eighth (1.1 MiB). What a session alone has is 768 KiB in each.
((memory_after <= memory_before + 4096)) ||
  fail "memory grew from $memory_before to $memory_after KiB in $((rounds - warm_up)) reconnects"
