# shellcheck shell=bash
# TCP arrives as it was sent: both directions, IPv4 and IPv6.
start_both
for side in a b; do
  expect "IPv4 from $side" transfer "$side" "${overlay4[${other[$side]}]}" 33554433
  expect "IPv6 from $side" transfer "$side" "${overlay6[${other[$side]}]}" 33554433
done
