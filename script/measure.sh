# shellcheck shell=bash
# What the demo measures between the two hosts of a world, and how it shows it. Sourced after world.sh.

# measure OUT SECONDS: writes OUT/result.json, one object; each TCP stream takes SECONDS.
measure() {
  local out=$1 seconds=$2 tool=iperf3
  command -v netperf > /dev/null && tool=netperf
  say "pinging"
  ping_both_ways
  local -A tcp
  local side family
  for side in a b; do
    for family in 4 6; do
      say "TCP over IPv$family from $side, $seconds s, by $tool"
      tcp[$side$family]=$("tcp_$tool" "$side" $family "$seconds")
    done
  done
  local overlay=$(($(tun_bytes a rx) + $(tun_bytes b rx))) wire=$(($(wire_bytes a) + $(wire_bytes b) - wire_before))
  status a --json | jq -c --arg text "$(world_device)" --arg tool $tool \
    --argjson underlay_mtu "$(underlay a ip -j link show dev "${underlay_interface[a]}" | jq '.[0].mtu')" \
    --argjson sent "$ping_sent" --argjson received "$ping_received" --argjson rtt "$rtt_us" \
    --argjson full4 "$full4" --argjson full6 "$full6" \
    --argjson ab4 "${tcp[a4]}" --argjson ba4 "${tcp[b4]}" --argjson ab6 "${tcp[a6]}" --argjson ba6 "${tcp[b6]}" \
    --argjson wire "$wire" --argjson overlay "$overlay" '{
      device: .device.name, device_text: $text, mtu: .mtu, underlay_mtu: $underlay_mtu,
      ping_sent: $sent, ping_loss_percent: (100 * ($sent - $received) / $sent), rtt_us: $rtt,
      full_ping_bytes: $full4, full_ping6_bytes: $full6,
      tcp_tool: $tool, tcp_gbps: $ab4, tcp_back_gbps: $ba4, tcp6_gbps: $ab6, tcp6_back_gbps: $ba6,
      wire_bytes: $wire, overlay_bytes: $overlay}' > "$out/result.json"
}

# Sets ping_sent, ping_received, rtt_us, full4 and full6: the last two are the largest payload that the
# MTU lets through without fragments, or 0 where that ping fails. ICMP's header takes 8 bytes, IP's 20 or 40.
ping_both_ways() {
  local mtu summary
  mtu=$(overlay a ip -j link show dev "$tun" | jq '.[0].mtu')
  overlay a ping -n -q -c 5 -i 0.05 "${overlay4[b]}" > /dev/null || true
  # ping waits for its last answer as long as its interval: a fifth of a second bears a busy machine.
  summary=$(overlay a ping -n -q -c 20 -i 0.2 -W 2 "${overlay4[b]}" || true)
  ping_sent=$(sed -n 's/ packets transmitted.*//p' <<< "$summary")
  ping_received=$(sed -n 's/.* \([0-9]*\) received.*/\1/p' <<< "$summary")
  rtt_us=$(awk -F '[/ ]' '/^rtt/ { print $8 * 1000; found = 1 } END { if (!found) print "null" }' <<< "$summary")
  full4=$((mtu - 28)) full6=$((mtu - 48))
  overlay a ping -n -q -c 3 -i 0.2 -W 2 -M 'do' -s $full4 "${overlay4[b]}" > /dev/null || full4=0
  overlay a ping -n -q -c 3 -i 0.2 -W 2 -M 'do' -s $full6 "${overlay6[b]}" > /dev/null || full6=0
}

overlay_address() { # SIDE FAMILY
  if [[ $2 == 4 ]]; then echo "${overlay4[$1]}"; else echo "${overlay6[$1]}"; fi
}

# tcp_TOOL SIDE FAMILY SECONDS: Gb/s from SIDE to the other, or null.
tcp_iperf3() {
  local to=${other[$1]} server
  # shellcheck disable=SC2086 # words
  (exec ${to_overlay[$to]} setpriv --pdeathsig KILL iperf3 --server --one-off > "$work/server.log" 2>&1) &
  server=$!
  within 5 listening "$to" 5201 || true
  overlay "$1" iperf3 --client "$(overlay_address "$to" "$2")" --time "$3" --json 2> /dev/null |
    jq '.end.sum_received.bits_per_second // null | if . then . / 1e9 * 1000 | round / 1000 else . end' || echo null
  kill $server 2> /dev/null || true
  wait $server 2> /dev/null || true
}

tcp_netperf() {
  local to=${other[$1]} server address
  address=$(overlay_address "$to" "$2")
  # shellcheck disable=SC2086 # words
  (exec ${to_overlay[$to]} setpriv --pdeathsig KILL netserver -D -L "$address" -"$2" > "$work/server.log" 2>&1) &
  server=$!
  within 5 listening "$to" 12865 || true
  overlay "$1" netperf -H "$address" -"$2" -t TCP_STREAM -l "$3" -P 0 2> /dev/null |
    awk 'NF >= 5 { printf "%.3f\n", $5 / 1000; found = 1 } END { if (!found) print "null" }' || echo null
  kill $server 2> /dev/null || true
  wait $server 2> /dev/null || true
}

listening() { overlay "$1" ss -Hltn "sport = :$2" | grep -q .; } # SIDE PORT

# print_table RESULT: for people.
print_table() {
  jq -r '
    def gbps: if . == null then "failed" else "\(.) Gb/s" end;
    def whole: if . > 0 then "\(.) bytes" else "failed" end;
    def mib: "\(. / 1048576 * 10 | round / 10) MiB";
    ["device", "\(.device): \(.device_text)"],
    ["underlay MTU", .underlay_mtu],
    ["overlay MTU", .mtu],
    ["ping", "\(.ping_loss_percent) % of \(.ping_sent) lost, round trip \(if .rtt_us then "\(.rtt_us | round) us" else "unknown" end)"],
    ["ping that fills the MTU, DF", "IPv4 \(.full_ping_bytes | whole), IPv6 \(.full_ping6_bytes | whole)"],
    ["TCP over IPv4, \(.tcp_tool)", "a to b \(.tcp_gbps | gbps), b to a \(.tcp_back_gbps | gbps)"],
    ["TCP over IPv6, \(.tcp_tool)", "a to b \(.tcp6_gbps | gbps), b to a \(.tcp6_back_gbps | gbps)"],
    ["carried", "\(.overlay_bytes | mib) of packets in \(.wire_bytes | mib) on the underlay"]
    | @tsv' "$1" | awk -F '\t' '{ printf "  %-30s %s\n", $1, $2 }'
}

# result_is_good RESULT: nothing in it failed.
result_is_good() {
  jq -e '.ping_loss_percent == 0 and .full_ping_bytes > 0 and .full_ping6_bytes > 0 and
    ([.tcp_gbps, .tcp_back_gbps, .tcp6_gbps, .tcp6_back_gbps] | all(. != null and . > 0)) and
    .wire_bytes >= .overlay_bytes' "$1" > /dev/null
}
