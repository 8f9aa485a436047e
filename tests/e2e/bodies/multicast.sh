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

# drops SIDE tx|rx: with the default, SIDE drops and counts what a sends, as it leaves or as it comes.
drops() {
  local side=$1 way=$2 before
  stop "$side"
  start "$side"
  expect "no ping once $side is without multicast" reaches 5 a
  before=$(dropped "$side" "$way")
  refuse "multicast was answered although $side drops it" multicast6 a
  (($(dropped "$side" "$way") >= before + many)) ||
    fail "$side: $(dropped "$side" "$way") counted of $((before + many))"
}
drops b rx
drops a tx
