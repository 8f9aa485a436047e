# shellcheck shell=bash
# limit: 120
# Beside one TCP flow (cubic) on an underlay of 1 Gb/s, whose queue drops what it can't hold, the overlay's
# TCP and that flow each get at least a quarter of what crosses. So slow a line is what both wait for, and not
# the processors.
[[ ${rdma_device[a]} == soft ]] || skip "hardware has congestion control of its own"
interface=${underlay_interface[a]}
seconds=5

# serve NAME SIDE-WORDS... ADDRESS: an iperf3 that serves once.
serve() {
  (exec "${@:2:$#-2}" setpriv --pdeathsig KILL iperf3 --server --one-off --bind "${!#}" \
    > "$work/$1-server.log" 2>&1) &
}
# received NAME: Mb/s that arrived.
received() { jq -er '.end.sum_received.bits_per_second / 1e6 | round' "$work/$1.json"; }

start_both
# At most 4 ms of queue.
underlay a tc qdisc replace dev "$interface" root tbf rate 1gbit burst 128kb limit 500kb 2> "$work/tc.log" ||
  fail "tc: $(tail -n 1 "$work/tc.log")"
trap 'underlay a tc qdisc delete dev "$interface" root || true; stop_all' EXIT
# shellcheck disable=SC2086 # words
{
  serve beside ${to_underlay[b]} "${underlay_address[b]}"
  serve overlay ${to_overlay[b]} "${overlay4[b]}"
}
listen_both() { (($(overlay b ss -Hltn 'sport = :5201' | wc -l) == 2)); }
expect_within 5 "iperf3 does not listen" listen_both
flow=(--congestion cubic --omit 1 --time "$seconds" --json)
underlay a iperf3 --client "${underlay_address[b]}" "${flow[@]}" > "$work/beside.json" &
beside=$!
overlay a iperf3 --client "${overlay4[b]}" "${flow[@]}" > "$work/overlay.json" &
overlay=$!
for client in $beside $overlay; do
  wait "$client" || fail "iperf3: $(jq -r '.error // empty' "$work"/{beside,overlay}.json)"
done
ours=$(received overlay) theirs=$(received beside)
report "overlay $ours Mb/s, TCP beside it $theirs Mb/s"
expect "the shaped line carried $((ours + theirs)) Mb/s of 1000" test $((ours + theirs)) -le 1000
expect "the overlay got $ours of $((ours + theirs)) Mb/s" test $((4 * ours)) -ge $((ours + theirs))
expect "TCP beside it got $theirs of $((ours + theirs)) Mb/s" test $((4 * theirs)) -ge $((ours + theirs))
