# shellcheck shell=bash
# Pings in both directions, IPv4 and IPv6, lose nothing once the peers are connected.
start_both
for side in a b; do
  for address in "${overlay4[${other[$side]}]}" "${overlay6[${other[$side]}]}"; do
    expect "from $side, $address lost packets" ping_from "$side" "$address" -c 5 -i 0.2
  done
done
