# shellcheck shell=bash
# Multicast packets reach the peer where both ends say `--multicast all`; by default each end drops and counts
# them.
many=3
# Echo requests from SIDE to all hosts; with -L it hears none of its own.
multicast4() { ping_from "$1" 224.0.0.1 -L -I "$tun" -c $many -i 0.2; }
multicast6() { ping_from "$1" "ff02::1%$tun" -L -c $many -i 0.2; }
# dropped SIDE tx|rx
dropped() { status_value "$1" ".counters.$2_drop_multicast"; }

answers_all() { for side in a b; do overlay "$side" sysctl -qw "net.ipv4.icmp_echo_ignore_broadcasts=$1"; done; }
trap 'answers_all 1; stop_all' EXIT
answers_all 0

start_both --multicast all
for side in a b; do
  expect "multicast from $side is not answered" multicast4 "$side"
  expect "IPv6 multicast from $side is not answered" multicast6 "$side"
done
for side in a b; do
  for way in tx rx; do (($(dropped "$side" $way) == 0)) || fail "$side: ${way}_drop_multicast"; done
done

# b drops what comes.
stop b
start b
expect "no ping to b without multicast" reaches 5 a
before=$(dropped b rx)
refuse "b answered multicast" multicast6 a
(($(dropped b rx) >= before + many)) || fail "b: $(dropped b rx) counted of $((before + many))"

# a drops what it would send.
stop a
start a
expect "no ping from a without multicast" reaches 5 a
before=$(dropped a tx)
refuse "multicast from a was answered" multicast6 a
(($(dropped a tx) >= before + many)) || fail "a: $(dropped a tx) counted of $((before + many))"
