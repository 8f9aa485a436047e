# shellcheck shell=bash
# limit: 180
# Numbered UDP datagrams: within a flow none is late, doubled or changed, whatever the offloads, checksums,
# workers and packing; what is missing has been counted as dropped, by somebody; and neither kernel finds a wrong
# checksum, in TCP either.
configurations=(
  ''
  '--checksum auto'
  '--offloads off'
  '--workers 1'
  '--workers 2 --checksum auto --mtu 1500'
  '--packets-per-message 1 --messages-per-doorbell 1'
)
# A guest whose processors are emulated is slow.
! declare -F add_rdma_device > /dev/null || configurations=('' '--workers 2 --checksum auto')

checksum_errors() { # SIDE: of every protocol
  # Lines of /proc/net/snmp come in pairs, names and values; snmp6 has a name and a value on each.
  overlay "$1" awk '
    FILENAME ~ /snmp$/ && FNR % 2 { for (i = 2; i <= NF; ++i) name[i] = $i; next }
    FILENAME ~ /snmp$/ { for (i = 2; i <= NF; ++i) if (name[i] == "InCsumErrors") sum += $i; next }
    $1 ~ /InCsumErrors$/ { sum += $2 }
    END { print sum + 0 }' /proc/net/snmp /proc/net/snmp6
}

# All that a and b know to have dropped of what went from a to b. Multicast is the kernels' own chatter.
drops() {
  local sockets
  sockets=$(overlay b awk '
    FILENAME ~ /snmp$/ && $1 == "Udp:" && !n { n = split($0, name); next }
    FILENAME ~ /snmp$/ && $1 == "Udp:" { for (i = 2; i <= n; ++i) if (name[i] == "RcvbufErrors") sum += $i }
    $1 == "Udp6RcvbufErrors" { sum += $2 }
    END { print sum + 0 }' /proc/net/snmp /proc/net/snmp6)
  jq -n --argjson a "$(status a --json)" --argjson b "$(status b --json)" --argjson sockets "$sockets" '
    def dropped(way): [.counters | to_entries[]
      | select((.key | startswith(way + "_drop_")) and (.key | endswith("multicast") | not)) | .value] | add;
    $sockets + $a.tun.kernel.tx_dropped + ($a | dropped("tx")) + $b.tun.kernel.rx_dropped + ($b | dropped("rx"))'
}

# flows WHAT ADDRESS MOST FLOWS COUNT SIZE [OPTION...]: MOST datagrams are lost with one that is counted.
flows() {
  local what="$1" address=$2 most=$3 before=$dropped receiver findings lost counted ends
  overlay b python3 "$project/tests/e2e/flows.py" receive "$address" 6001 --answer &
  receiver=$!
  expect_within 5 "no receiver" binds b 6001
  findings=$(overlay a python3 "$project/tests/e2e/flows.py" send "$address" 6001 "${@:4}") ||
    fail "$what: $findings"
  wait "$receiver"
  dropped=$(drops)
  lost=$(jq '.sent - .received' <<< "$findings")
  counted=$((dropped - before))
  ends=$(jq .unanswered <<< "$findings")
  ((counted <= lost + ends && lost <= most * counted)) ||
    fail "$what: $lost datagrams are missing, $counted were counted as dropped ($findings)"
  total_sent=$((total_sent + $(jq .sent <<< "$findings")))
  total_lost=$((total_lost + lost))
}

binds() { overlay "$1" ss -Hlun "sport = :$2" | grep -q .; } # SIDE PORT

total_sent=0 total_lost=0
wrong=$(($(checksum_errors a) + $(checksum_errors b)))
few=${overlay4[b]} many=${overlay6[b]}
for configuration in "${configurations[@]}"; do
  # shellcheck disable=SC2086 # words
  start_both $configuration
  what=${configuration:-defaults}
  dropped=$(drops)
  flows "$what, one flow of super-packets" "$few" 40 1 2000 1200 --segment --rate 30000
  flows "$what, 16 flows" "$many" 1 16 250 ..1400
  expect "$what: TCP" transfer a "$few" 1000000
  now_wrong=$(($(checksum_errors a) + $(checksum_errors b)))
  ((now_wrong == wrong)) || fail "$what: the kernels found $((now_wrong - wrong)) wrong checksums"
  # IPv4 and IPv6 by turns.
  read -r few many <<< "$many $few"
  [[ $configuration == "${configurations[-1]}" ]] || { stop a && stop b; }
done
flows "$what, one flow" "$few" 1 1 4000 ..1400
flows "$what, 8 flows of super-packets" "$many" 40 8 400 1200 --segment --rate 30000
report "$total_sent datagrams, $total_lost of them dropped and counted"
