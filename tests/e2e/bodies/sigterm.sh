# shellcheck shell=bash
# SIGTERM and SIGINT under load: exit status 0 within 3 s, and nothing stays: no interface, no socket, no
# queue pair, while the peer notices at once.
for signal in TERM INT; do
  start_both
  load_from b 20
  sleep 1
  begin=$(date +%s%N)
  stop a $signal || fail "SIG$signal: a ended badly"
  (($(date +%s%N) - begin < 3000000000)) || fail "SIG$signal: a took more than 3 s"
  refuse "SIG$signal: the interface is still there" overlay a ip link show dev "$tun"
  refuse "SIG$signal: the control socket is still there" test -e "$work/a.sock"
  if declare -F add_rdma_device > /dev/null; then
    pairs=$(queue_pairs a)
    ((pairs == 0)) || fail "SIG$signal: $pairs queue pairs are still there"
  fi
  expect_within 2 "SIG$signal: b does not notice" status_is b '.peers[0].state != "connected"'
  end_load b
  stop b || fail "b ended badly"
done
