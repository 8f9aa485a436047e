# shellcheck shell=bash
# limit: 120
# The RDMA device is removed under load and comes back, twice: the daemon lets go of it, stays, says so
# and carries traffic again within 5 s of the return.
declare -F add_rdma_device > /dev/null || skip "the device of this world cannot be removed"
start_both
load_from a 60
for round in 1 2; do
  sleep 2
  timeout 20 rdma link delete "${rdma_device[a]}" || fail "round $round: rdma link delete was blocked"
  expect_within 5 "round $round: status does not say it" status_is a '.device.state != "up"'
  expect "round $round: a went away" running a
  expect "round $round: b went away" running b
  add_rdma_device a
  expect "round $round: the device is back, no ping" reaches 5 a
  expect "round $round: status" status_is a '.device.state == "up"'
done
end_load a
expect "TCP after it" transfer b "${overlay4[a]}" 4000000
