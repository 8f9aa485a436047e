# shellcheck shell=bash
# With a session that stands and nothing to carry, a daemon uses less than a hundredth of a processor; and the
# first ping after that is answered.
ticks() { # SIDE: user and system time of the daemon; the name in parentheses may hold blanks
  sed 's/.*) //' "/proc/${daemon_pid[$1]}/stat" | awk '{ print $12 + $13 }'
}
seconds=5
start_both
sleep 0.5
declare -A before
for side in a b; do before[$side]=$(ticks "$side"); done
sleep $seconds
for side in a b; do
  used=$(($(ticks "$side") - ${before[$side]}))
  percent=$(awk "BEGIN { printf \"%.1f\", 100 * $used / $(getconf CLK_TCK) / $seconds }")
  report "$side: $percent % of a processor"
  # A tick is a hundredth of a second: five are a hundredth of these five seconds.
  ((used * 100 < $(getconf CLK_TCK) * seconds)) || fail "$side used $percent % of a processor"
  peer_is "$side" connected || fail "$side lost its session"
done
expect "no ping after idling" ping_from a "${overlay4[b]}" -c 1
