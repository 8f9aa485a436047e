# shellcheck shell=bash
# The peer's MTU is the smaller one: a packet that it cannot take is answered (fragmentation needed, packet too
# big), the kernel remembers its MTU, and what is made to fit arrives.
start a
start b --mtu 4000
expect "no ping" reaches 10 a
expect "a ping that is fragmented on the way" ping_from a "${overlay4[b]}" -M dont -s 8000 -c 2 -i 0.2
expect "a counts fragments" status_is a '.counters.tx_fragments == 4'
remembers() { overlay a ip route get "$1" | grep -qw 'mtu 4000'; } # ADDRESS
for address in "${overlay4[b]}" "${overlay6[b]}"; do
  refuse "$address: a ping of more than b's MTU was answered" ping_from a "$address" -M 'do' -s 8000 -c 1
  expect_within 2 "$address: the kernel did not learn b's MTU" remembers "$address"
done
expect "a counts no answers" status_is a '.counters.tx_too_big_told >= 2'
expect "IPv4 of 4000 bytes" ping_from a "${overlay4[b]}" -M 'do' -s 3972 -c 2 -i 0.2
expect "IPv6 of 4000 bytes" ping_from a "${overlay6[b]}" -M 'do' -s 3952 -c 2 -i 0.2
expect "a ping that the kernel may fragment" ping_from a "${overlay4[b]}" -s 8000 -c 2 -i 0.2
expect "TCP" transfer a "${overlay4[b]}" 4000000
expect "TCP over IPv6" transfer b "${overlay6[a]}" 4000000
