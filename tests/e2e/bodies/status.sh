# shellcheck shell=bash
# status says, for people and as JSON, which device is in use, to whom it is connected and what crossed.
start_both
expect "ping" ping_from a "${overlay4[b]}" -c 3 -i 0.2
for side in a b; do
  text=$(status "$side")
  json=$(status "$side" --json)
  expect "$side: status does not name the device" grep -qw "${rdma_device[$side]}" <<< "$text"
  expect "$side: status --json does not name the device" \
    jq -e --arg name "${rdma_device[$side]}" '.device.name == $name' <<< "$json"
  expect "$side: status --json has another MTU" jq -e '.mtu == 65520' <<< "$json"
  expect "$side: peer not connected" jq -e '.peers | length == 1 and .[0].state == "connected"' <<< "$json"
  expect "$side: no packets counted" jq -e '.peers[0] | .tx_packets >= 3 and .rx_packets >= 3' <<< "$json"
done
refuse "status of a daemon that is not there" "$program" status --control "$work/nobody.sock"
