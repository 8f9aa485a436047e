# shellcheck shell=bash
# limit: 120
# Credits: no receiver is ever found not ready under full load in both directions (LOAD_SECONDS of it).
declare -F add_rdma_device > /dev/null || skip "this world's device has no hardware counters"
rnr() { # SIDE
  local counters=/sys/class/infiniband/${rdma_device[$1]}/ports/1/hw_counters
  echo $(($(< "$counters/send_rnr_err") + $(< "$counters/rcvd_rnr_err")))
}
start_both
before=$(($(rnr a) + $(rnr b)))
load_from a "${LOAD_SECONDS:-10}"
load_from b "${LOAD_SECONDS:-10}"
load_is_over a
load_is_over b
after=$(($(rnr a) + $(rnr b)))
((after == before)) || fail "$((after - before)) RNR NAKs"
