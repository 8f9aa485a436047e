# shellcheck shell=bash
# limit: 120
# What the user got wrong is told in one line that names the option, or file and line, with exit status 2,
# and nothing is half-started.

# shellcheck disable=SC2086 # $here is words
here=${to_underlay[a]}
address=${overlay4[a]}/24
peer="${underlay_address[b]} ${overlay4[b]}/32"
usual=(--underlay "${underlay_address[a]}" --tun "$tun" --tun-netns "${netns[a]}" --control "$work/a.sock")

# refused WHAT PATTERN COMMAND...: COMMAND ends with exit status 2 and one line that PATTERN matches.
refused() {
  local what=$1 pattern=$2 status=0
  shift 2
  timeout 20 "$@" > "$work/refused.out" 2> "$work/refused.err" || status=$?
  ((status == 2)) || fail "$what: exit status $status; said: $(head -n 3 "$work/refused.err")"
  (($(wc -l < "$work/refused.err") == 1)) || fail "$what: not one line but: $(< "$work/refused.err")"
  grep -qE -e "$pattern" "$work/refused.err" || fail "$what: does not name $pattern: $(< "$work/refused.err")"
  ! overlay a ip link show dev "$tun" 2> /dev/null || fail "$what: left an interface"
  [[ ! -e $work/a.sock ]] || fail "$what: left a control socket"
}

refused_up() { # WHAT PATTERN OPTION...
  refused "$1" "$2" $here "$program" up "${@:3}"
}

refused "no command" 'up' "$program"
refused "unknown command" 'sideways' "$program" sideways
refused_up "no underlay" 'underlay' --tun "$tun" --address "$address" --peer "$peer"
refused_up "unknown option" 'adress' "${usual[@]}" --adress "$address" --peer "$peer"
refused_up "abbreviated option" 'addr' "${usual[@]}" --addr "$address" --peer "$peer"
refused_up "prefix too long" '/33' "${usual[@]}" --address "$address" --peer "${underlay_address[b]} 10.99.0.2/33"
refused_up "no prefix" 'peer' "${usual[@]}" --address "$address" --peer "${underlay_address[b]}"
refused_up "not an address" '10\.99\.0' "${usual[@]}" --address 10.99.0 --peer "$peer"
refused_up "two peers with one prefix" '10\.99\.0\.2' "${usual[@]}" --address "$address" --peer "$peer" \
  --peer "${underlay_address[b]%.*}.3 ${overlay4[b]}/32"
refused_up "underlay inside the overlay" 'underlay|overlap' "${usual[@]}" --address "$address" \
  --peer "${underlay_address[b]} ${underlay_address[b]%.*}.0/24"
for mtu in 67 65521 -1 1e3 ''; do
  refused_up "MTU '$mtu'" 'mtu' "${usual[@]}" --address "$address" --peer "$peer" --mtu "$mtu"
done
refused_up "IPv6 below 1280" '1280' "${usual[@]}" --address "${overlay6[a]}/64" --peer "$peer" --mtu 1279
refused_up "address of another host" '192\.0\.2\.1' --underlay 192.0.2.1 --tun "$tun" --tun-netns "${netns[a]}" \
  --control "$work/a.sock" --address "$address" --peer "$peer"
refused_up "no such namespace" 'nowhere' --underlay "${underlay_address[a]}" --tun "$tun" --tun-netns nowhere \
  --control "$work/a.sock" --address "$address" --peer "$peer"
refused_up "no configuration file" 'missing.conf' --config "$work/missing.conf"

printf 'underlay = %s\n# a comment\nmtuu = 1500\n' "${underlay_address[a]}" > "$work/bad.conf"
refused_up "unknown key in the file" 'bad\.conf:3.*mtuu' --config "$work/bad.conf" "${usual[@]}"

# What the machine lacks.
refused "no /dev/net/tun" '/dev/net/tun' $here unshare --mount bash -c \
  'mount -t tmpfs none /dev/net && exec "$@"' - "$program" up "${usual[@]}" --address "$address" --peer "$peer"
refused "no CAP_NET_ADMIN" 'CAP_NET_ADMIN' $here setpriv --bounding-set -net_admin --inh-caps -net_admin \
  "$program" up "${usual[@]}" --address "$address" --peer "$peer"
if declare -F add_rdma_device > /dev/null; then
  refused_up "not on an RDMA device" '127\.0\.0\.1' --underlay 127.0.0.1 --device rdma --tun "$tun" \
    --tun-netns "${netns[a]}" --control "$work/a.sock" --address "$address" --peer "$peer"
  refused "ulimit -l" 'ulimit -l|RLIMIT_MEMLOCK|locked' $here setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock \
    bash -c 'ulimit -l 64 && exec "$@"' - "$program" up "${usual[@]}" --address "$address" --peer "$peer"
  refused "no provider library" 'provider' $here unshare --mount bash -c \
    'mount -t tmpfs none /etc/libibverbs.d && mount -t tmpfs none /usr/lib/x86_64-linux-gnu/libibverbs && exec "$@"' - \
    "$program" up "${usual[@]}" --address "$address" --peer "$peer"
fi

# A second daemon for what a first one has.
start a
expect_within 5 "a does not answer" answers a
second() { # WHAT PATTERN OPTION...
  local status=0
  underlay a timeout 20 "$program" up "${@:3}" > "$work/second.log" 2>&1 || status=$?
  ((status == 2)) || fail "$1: exit status $status; said: $(< "$work/second.log")"
  grep -qE -e "$2" "$work/second.log" || fail "$1: does not name $2: $(< "$work/second.log")"
}
second "the same interface" "$tun|a\.sock" "${usual[@]}" --address "$address" --peer "$peer"
second "the same port" '4755|port' --underlay "${underlay_address[a]}" --tun ipov1 --tun-netns "${netns[a]}" \
  --control "$work/second.sock" --address 10.98.0.1/24 --peer "${underlay_address[b]} 10.98.0.2/32"
expect "the first daemon suffered" answers a
