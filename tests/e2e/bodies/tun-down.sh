# shellcheck shell=bash
# The TUN interface is set down and up again under a daemon that carries TCP: while it is down, what comes for it
# is dropped and counted; then its addresses and routes are there again, the packets flow, and TCP goes on.
absent=${underlay_address[a]%.*}.99
start a --peer "$absent 10.98.0.0/24"
start b
expect "no ping from a to b after the start" reaches 10 a
set_tun() { overlay a ip link set "$tun" "$1"; } # up|down
is_complete() {
  local addresses routes
  addresses=$(overlay a ip -o address show dev "$tun")
  routes=$(overlay a ip route show dev "$tun" && overlay a ip -6 route show dev "$tun")
  [[ $addresses == *" ${overlay4[a]}/24 "* && $addresses == *" ${overlay6[a]}/64 "* &&
    $routes == *"10.98.0.0/24 "* && $routes == *"fd99::/64 "* ]]
}
carries() { # BYTES: the interface of a has taken in more of them
  (($(tun_bytes a rx) > $1))
}
dropped() { status_value a .counters.rx_drop_tun_down; }
expect "the interface is not as configured" is_complete
load_from b 60
for round in 1 2; do
  expect_within 5 "round $round: no load" carries $(($(tun_bytes a rx) + 100000))
  before=$(dropped)
  set_tun down
  expect_within 2 "round $round: status does not say it" status_is a '.tun.state == "down"'
  refuse "round $round: its routes survive, there is nothing to put back" is_complete
  refuse "round $round: ping reached an interface that is down" reaches 1 b
  (($(dropped) > before)) || fail "round $round: drops are not counted"
  set_tun up
  expect_within 2 "round $round: addresses or routes are missing" is_complete
  expect "round $round: status" status_is a '.tun.state == "up"'
  expect "round $round: no ping from a" reaches 2 a
  expect "round $round: no ping to a" reaches 2 b
  expect "round $round: no ping over IPv6" ping_from b "${overlay6[a]}" -c 1
  expect_within 10 "round $round: TCP does not go on" carries $(($(tun_bytes a rx) + 100000))
done
end_load b
# Faster than anybody could follow.
for ((i = 0; i < 20; ++i)); do set_tun down && set_tun up; done
expect_within 2 "addresses or routes are missing after many changes" is_complete
expect "the session was lost" status_is a '.peers[0].sessions[0].established_count == 1'
for side in a b; do expect "TCP from $side" transfer "$side" "${overlay4[${other[$side]}]}" 1000000; done
