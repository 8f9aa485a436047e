# shellcheck shell=bash
# One of two peers never comes: the other is served, and waiting costs neither descriptors nor memory.
absent=${underlay_address[a]%.*}.99
start a --peer "$absent 10.99.0.99/32"
start b
expect "no ping to the peer that is there" reaches 10 a
refuse "a ping got an answer from nobody" overlay a ping -n -q -c 1 -W 1 10.99.0.99
expect "status does not tell the two apart" status_is a '
  (.peers[] | select(.prefixes == ["10.99.0.99/32"]) | .state != "connected") and
  ([.peers[] | select(.state == "connected")] | length == 1)'
before=$(descriptors a)
sleep 8
after=$(descriptors a)
((after <= before)) || fail "descriptors grew from $before to $after"
expect "ping to the peer that is there" ping_from a "${overlay4[b]}" -c 5 -i 0.2
