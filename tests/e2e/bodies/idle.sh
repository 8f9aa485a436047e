# shellcheck shell=bash
# A daemon with nothing to carry uses less than a hundredth of a processor (in a guest, 30), with a session that stands
# and a peer that never comes beside it, and less than three while it also dials one that was killed, once a second
# for each worker. The first ping after idling is answered.
ticks() { # SIDE: user and system time of the daemon; the name in parentheses may hold blanks
  sed 's/.*) //' "/proc/${daemon_pid[$1]}/stat" | awk '{ print $12 + $13 }'
}
seconds=5
# A guest's emulated processor takes ten times as long for the same, and dialling is the work of librdmacm and the
# kernel's connection manager there: it is to show that nothing spins.
most=1
! declare -F add_rdma_device > /dev/null || most=30
idles() { # WHAT SIDE...
  local what=$1 side used percent
  local -A before
  shift
  for side in "$@"; do before[$side]=$(ticks "$side"); done
  sleep $seconds
  for side in "$@"; do
    used=$(($(ticks "$side") - ${before[$side]}))
    percent=$(awk "BEGIN { printf \"%.1f\", 100 * $used / $(getconf CLK_TCK) / $seconds }")
    report "$side, $what: $percent % of a processor"
    ((used * 100 < most * $(getconf CLK_TCK) * seconds)) || fail "$side, $what, used $percent % of a processor"
  done
}
absent=${underlay_address[a]%.*}.99
start a --peer "$absent 10.98.0.0/24"
start b
expect "no ping from a to b after the start" reaches 10 a
sleep 0.5
idles "connected" a b
for side in a b; do peer_is "$side" connected || fail "$side lost its session"; done
expect "no ping after idling" ping_from a "${overlay4[b]}" -c 1
stop b KILL || true
most=$((3 * most))
idles "its peer killed" a
