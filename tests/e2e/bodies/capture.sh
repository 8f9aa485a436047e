# shellcheck shell=bash
# limit: 300
# What crosses the underlay is CM and RC SENDs to whoever decodes it, nothing is malformed, and every invariant
# CRC (ICRC) is the one that scapy computes.
capture=$work/underlay.pcap
# A veth pair would show the UDP super-packets of a sender that uses UDP_SEGMENT.
for side in a b; do underlay "$side" ethtool -K "${underlay_interface[$side]}" tx-udp-segmentation off; done
# shellcheck disable=SC2086 # words
(exec ${to_underlay[a]} setpriv --pdeathsig KILL tcpdump -q -U -i "${underlay_interface[a]}" -w "$capture" \
  'udp port 4791') &
tcpdump=$!
expect_within 10 "tcpdump does not start" test -s "$capture"
start_both
expect "ping" ping_from a "${overlay4[b]}" -M 'do' -s 65492 -c 2 -i 0.2
expect "TCP" transfer a "${overlay4[b]}" 1000000
stop a && stop b
sleep 1
for side in a b; do underlay "$side" ethtool -K "${underlay_interface[$side]}" tx-udp-segmentation on; done
kill "$tcpdump"
wait "$tcpdump" || true
decoded=$work/decoded
tshark -r "$capture" -T fields -e infiniband.bth.opcode -e infiniband.mad.attributeid \
  > "$decoded" 2> "$work/tshark.log" || fail "tshark: $(tail -n 1 "$work/tshark.log")"
has() { # WHAT AWK-CONDITION
  awk -F '\t' "$2 { found = 1 } END { exit !found }" "$decoded" || fail "the capture has no $1"
}
# Attributes of the connection manager: 0x0010 request, 0x0013 reply, 0x0014 ready to use, 0x0015 and
# 0x0016 disconnect; opcodes of the reliable connection: 0 first, 1 middle, 2 last, 4 only of a SEND,
# 17 acknowledgement.
has "connect request" '$2 == "0x0010"'
has "connect reply" '$2 == "0x0013"'
has "ready to use" '$2 == "0x0014"'
has "disconnect request" '$2 == "0x0015"'
has "RC SEND first" '$1 == 0'
has "RC SEND last" '$1 == 2'
has "RC SEND only" '$1 == 4'
has "RC acknowledgement" '$1 == 17'
found=$("$project/tests/interop/check_capture.py" "$capture" "${underlay_address[a]}" 2> "$work/checked.log") ||
  fail "${found:-$(tail -n 1 "$work/checked.log")}"
report "$(tail -n 1 "$work/checked.log")"
# SENDs with and without immediate, ACK and UD SEND (the connection manager) only.
others=$(awk -F '\t' '$1 != "" && $1 !~ /^(0|1|2|3|4|5|17|100)$/' "$decoded" | wc -l)
((others == 0)) || fail "$others packets of other opcodes"
