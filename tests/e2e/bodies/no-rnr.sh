# shellcheck shell=bash
# limit: 120
# Credits: no receiver is ever found not ready under full load in both directions (LOAD_SECONDS of it).
rnr() { # SIDE: RNR NAKs that it sent or received; of the software device, received
  if declare -F add_rdma_device > /dev/null; then
    local counters=/sys/class/infiniband/${rdma_device[$1]}/ports/1/hw_counters
    echo $(($(< "$counters/send_rnr_err") + $(< "$counters/rcvd_rnr_err")))
  else
    status_value "$1" .device_counters.rcvd_rnr_err
  fi
}
start_both
declare -A before
for side in a b; do before[$side]=$(rnr "$side"); done
load_from a "${LOAD_SECONDS:-10}"
load_from b "${LOAD_SECONDS:-10}"
load_is_over a
load_is_over b
for side in a b; do
  after=$(rnr "$side")
  ((after == before[$side])) || fail "$side: $((after - before[$side])) RNR NAKs"
done
