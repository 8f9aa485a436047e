# shellcheck shell=bash
# limit: 120
# A bit flipped on the way is found by the invariant CRC (ICRC): such a packet is dropped and counted, and
# never delivered: TCP gets what was sent, and no checksum behind the ICRC has anything to find.
[[ ${rdma_device[a]} == soft ]] || skip "this world's device takes no fault plan"
start a --device soft --soft-faults 'seed=21 out:corrupt=0.01'
start b --device soft --soft-faults 'seed=22 out:corrupt=0.01'
expect "no ping from a to b" reaches 10 a
for side in a b; do
  expect "from $side" transfer "$side" "${overlay4[${other[$side]}]}" 50000000
done
for side in a b; do
  damaged=$(status_value "${other[$side]}" .device_counters.fault_out_corrupted)
  dropped=$(status_value "$side" .device_counters.rx_drop_bad_icrc)
  report "$side: $dropped with a bad ICRC, of $damaged that the other side damaged"
  expect "$side: nothing was damaged" test "$damaged" -gt 100
  # The rest had the flipped bit in their BTH: an opcode, a version or a queue pair that is not there.
  expect "$side: $dropped of $damaged damaged packets dropped for their ICRC" test "$dropped" -gt $((damaged / 2))
  expect "$side: damaged packets were delivered" status_is "$side" \
    '.counters | [to_entries[] | select(.key | test("^rx_drop|^rx_error")) | .value] | add == 0'
done
