# shellcheck shell=bash
# limit: 90
# The underlay's MTU shrinks below the session's packets. What doesn't fit is counted, the other end misses
# us in the time in which a dead peer is noticed (5 s), and the session that follows fits.
[[ ${rdma_device[a]} == soft ]] || skip "the path MTU is the kernel's business here"
set_mtu() {
  local side
  for side in a b; do underlay "$side" ip link set dev "${underlay_interface[$side]}" mtu "$1"; done
}
trap 'set_mtu "$underlay_mtu"; stop_all' EXIT
path_mtu_is() { status_is a ".peers[0].sessions[0].path_mtu == $1"; }
big_ping() { ping_from a "${overlay4[b]}" -M 'do' -s 60000 -c 1 -W 1; }

start_both
expect "path MTU at the start" path_mtu_is 4096
expect "ping of 60000 bytes at the start" big_ping
set_mtu 1500
refuse "a ping of 60000 bytes crossed in packets of 4096" big_ping
expect "nothing was counted as too long" status_is a '.device_counters.tx_drop_too_long > 0'
expect_within 20 "no ping of 60000 bytes after the MTU shrank" big_ping
expect "path MTU at the end" path_mtu_is 1024
expect "TCP at the smaller path MTU" transfer a "${overlay4[b]}" 10000000
