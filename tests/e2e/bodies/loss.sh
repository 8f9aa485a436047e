# shellcheck shell=bash
# limit: 300
# TCP over a line that loses datagrams in each direction: 100 MB each way arrive intact, within 10 s at
# 1 % and 60 s at 5 %. Those bounds are several times what it takes on two busy cores.
[[ ${rdma_device[a]} == soft ]] || skip "this world's device takes no fault plan"
bytes=100000000

lossy() { # PROBABILITY SECONDS
  local probability=$1 bound=$2 side begin took
  start a --device soft --soft-faults "seed=11 out:drop=$probability"
  start b --device soft --soft-faults "seed=12 out:drop=$probability"
  expect "no ping from a to b" reaches 10 a
  for side in a b; do
    begin=$(date +%s%N)
    expect "from $side, $probability lost" transfer "$side" "${overlay4[${other[$side]}]}" $bytes
    took=$((($(date +%s%N) - begin) / 1000000))
    report "100 MB from $side, $probability lost each way: $took ms"
    ((took <= bound * 1000)) || fail "from $side, $probability lost: $took ms, not $bound s"
    expect "$side: the fault plan dropped nothing" status_is "$side" '.device_counters.fault_out_dropped > 100'
  done
  stop_all
}
lossy 0.01 10
lossy 0.05 60
