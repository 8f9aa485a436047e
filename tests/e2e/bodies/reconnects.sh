# shellcheck shell=bash
# limit: 300
# 200 reconnects leave nothing over in the daemon that stays: descriptors, memory, queue pairs.
rounds=${RECONNECTS:-200} warm_up=20
reconnect() {
  local before
  before=$(status_value a '[.peers[].sessions[].established_count] | add')
  stop b || fail "b did not end well"
  start b
  expect_within 5 "round $1: not connected again" \
    status_is a "([.peers[].sessions[].established_count] | add) > $before and .peers[0].state == \"connected\""
}
start_both
for ((round = 1; round <= warm_up; ++round)); do reconnect $round; done
descriptors_before=$(descriptors a) memory_before=$(resident_kib a) pairs_before=$(queue_pairs a)
for ((; round <= rounds; ++round)); do reconnect $round; done
reaches a || fail "no ping after $rounds reconnects"
# A queue pair may live on in timewait for some seconds.
pairs_are_back() { (($(queue_pairs a) <= pairs_before)); }
descriptors_are_back() { (($(descriptors a) <= descriptors_before)); }
expect_within 10 "queue pairs were left over: $(queue_pairs a), before $pairs_before" pairs_are_back
expect_within 10 "descriptors were left over: $(descriptors a), before $descriptors_before" descriptors_are_back
memory_after=$(resident_kib a)
((memory_after <= memory_before + 1024)) ||
  fail "memory grew from $memory_before to $memory_after KiB in $((rounds - warm_up)) reconnects"
