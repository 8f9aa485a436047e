# shellcheck shell=bash
# The underlay goes down for longer than a dead peer is noticed in, and comes back: traffic within 5 s.
start_both
interface=${underlay_interface[a]}
underlay a ip link set "$interface" down
refuse "ping crossed an underlay that is down" reaches 1 a
expect_within 12 "a does not notice" status_is a '.peers[0].state != "connected"'
expect "a went away" running a
expect "b went away" running b
underlay a ip link set "$interface" up
expect "the underlay is up: no ping" reaches 5 a
expect "b does not reach a" reaches 5 b
