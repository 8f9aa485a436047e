# shellcheck shell=bash
# A kernel that takes super-packets at the start and refuses them later: nothing is lost, after a few refusals
# that is withdrawn, status shows it at both ends, and no more is refused.
start a --mtu 1500
plain=("${daemon_wrapper[@]}")
# What is tried at the start has 2,550 bytes.
daemon_wrapper+=(python3 "$project/tests/e2e/refuse_writes.py" 4000)
start b --mtu 1500
daemon_wrapper=("${plain[@]}")
expect "no ping" reaches 10 a
status_is b '.tun.write_offloads.tso4' || skip "this kernel takes no TCP super-packets from a TUN"
expect "a does not ask its kernel for TCP super-packets" status_is a '.tun.read_offloads.tso4'
expect "TCP over super-packets that are refused" transfer a "${overlay4[b]}" 8000000
expect "b counts no refusals" status_is b '.counters.rx_offload_refused >= 8'
expect "b dropped" status_is b '.counters.rx_drop_tun_refused == 0'
expect_within 3 "b does not withdraw them" status_is b '.tun.withdrawn_offloads.tso4 and (.tun.write_offloads.tso4 | not)'
expect "status does not say so to people" grep -q '^withdrawn.*tso4' <(status b)
expect_within 3 "a still asks its kernel for them" status_is a '.tun.read_offloads.tso4 | not'
refused=$(status_value b '.counters.rx_offload_refused')
expect "TCP without them" transfer a "${overlay4[b]}" 8000000
expect "IPv6, of which nothing was said" transfer a "${overlay6[b]}" 8000000
expect "more were refused" status_is b ".counters.rx_offload_refused <= $refused + 8"
report "$refused refusals of TCP over IPv4, $(status_value b '.counters.rx_offload_software') packets cut"
