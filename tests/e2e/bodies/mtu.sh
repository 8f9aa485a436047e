# shellcheck shell=bash
# A ping that fills the MTU crosses whole, one byte more does not leave: at the largest MTU and at 1500.
# Echo payload = MTU - 20 (IPv4) or 40 (IPv6) - 8.
fill() { # MTU
  for side in a b; do
    to=${other[$side]}
    expect "IPv4 of $1 bytes from $side" ping_from "$side" "${overlay4[$to]}" -M 'do' -s $(($1 - 28)) -c 3 -i 0.2
    expect "IPv6 of $1 bytes from $side" ping_from "$side" "${overlay6[$to]}" -M 'do' -s $(($1 - 48)) -c 3 -i 0.2
  done
  refuse "IPv4 of $1 + 1 bytes was sent" ping_from a "${overlay4[b]}" -M 'do' -s $(($1 - 27)) -c 1
  refuse "IPv6 of $1 + 1 bytes was sent" ping_from a "${overlay6[b]}" -M 'do' -s $(($1 - 47)) -c 1
}
start_both
fill 65520
stop a && stop b
start_both --mtu 1500
fill 1500
