#!/usr/bin/env bash
# Records the captures of tests/verbs/soft. Runs as root in a guest whose kernel has rdma_rxe: two
# devices on the two ends of one veth pair.
#
#   record.sh CASES OUT    CASES: the program built from cases.cc; OUT: where the captures go
set -euo pipefail
cases=$1
out=$2
ulimit -l unlimited

# Packets from one end of the pair to the other go over the pair, not over lo: what is sent here
# looks into the main table first, and only what arrives on the pair finds the local addresses.
sysctl -qw net.ipv4.conf.{all,default}.accept_local=1 net.ipv4.conf.{all,default}.rp_filter=0
sysctl -qw net.ipv6.conf.{all,default}.accept_dad=0
ip link set lo up
ip link add v0 mtu 1500 type veth peer name v1 mtu 1500
ip addr add 10.77.0.1/24 dev v0
ip addr add 10.77.0.2/24 dev v1
ip addr add fd00:77::1/64 dev v0 nodad
ip addr add fd00:77::2/64 dev v1 nodad
ip link set v0 up
ip link set v1 up
for family in -4 -6; do
  ip $family rule add pref 10 iif v0 lookup local
  ip $family rule add pref 11 iif v1 lookup local
  ip $family rule add pref 12 lookup 100
  ip $family rule add pref 13 lookup local
  ip $family rule del pref 0
done
ip route add 10.77.0.1/32 dev v1 src 10.77.0.2 table 100
ip route add 10.77.0.2/32 dev v0 src 10.77.0.1 table 100
ip -6 route add fd00:77::1/128 dev v1 src fd00:77::2 table 100
ip -6 route add fd00:77::2/128 dev v0 src fd00:77::1 table 100
rdma link add rxe0 type rxe netdev v0
rdma link add rxe1 type rxe netdev v1
rdma link

# record CAPTURE COMMAND...: what crosses the pair while the command runs.
record() {
  local capture=$1
  shift
  tcpdump --immediate-mode -U -i v0 -w "$out/$capture.pcap" udp port 4791 2> "$out/$capture.log" &
  local pid=$!
  until grep -q 'listening on' "$out/$capture.log"; do sleep 0.05; done
  timeout 20 "$@" || echo "$capture: exit status $?"
  sleep 0.3
  kill "$pid"
  wait "$pid" || true
  cat "$out/$capture.log"
  rm "$out/$capture.log"
}

for scenario in ${SCENARIOS:-talk rej-no-listener rej-consumer rej-timeout rej-rep rej-stale mra-req \
    mra-rep drep-unknown nak-sequence nak-invalid nak-access nak-length nak-rnr}; do
  record "$scenario" "$cases" "$scenario" 10.77.0.1 10.77.0.2 v0 v1
done
for scenario in ${SCENARIOS6:-talk rej-no-listener}; do
  record "ipv6-$scenario" "$cases" "$scenario" fd00:77::1 fd00:77::2
done
