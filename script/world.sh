# shellcheck shell=bash
# Two hosts, a and b, and a daemon on each: what the demo and the end-to-end tests stand on. Sourced
# after lib.sh; use_world makes the functions and variables of one of worlds/:
#
#   world_up, world_down    makes and removes it; the latter also what an earlier run left over
#   world_device            what the hosts speak verbs with, for people
#   world_why_not           says why it can't be made here, or nothing
#   to_underlay[SIDE]       words before a command that shall run where SIDE's daemon and underlay are
#   to_overlay[SIDE]        and where SIDE's applications are
#   netns[SIDE]             network namespace of SIDE's TUN interface
#   underlay_address[SIDE], underlay_interface[SIDE], rdma_device[SIDE]
#
# SIDE is a or b. The overlay is the same in every world. A process that is to be signalled starts as
# `exec ${to_overlay[a]} COMMAND` in a subshell: behind a function, $! would be bash's and not its own.

# shellcheck disable=SC2034 # for those who source it
{
  declare -A netns to_underlay=([a]='' [b]='') to_overlay underlay_address underlay_interface rdma_device
  declare -A overlay4=([a]=10.99.0.1 [b]=10.99.0.2) overlay6=([a]=fd99::1 [b]=fd99::2)
  declare -A other=([a]=b [b]=a)
  declare -A daemon_pid=()
}
tun=ipov0
program=$build_root/${IPOVERBS_PRESET:-release}/daemon/ipoverbs

# use_world NAME WORK PREFIX: WORK is a folder for sockets and logs; namespaces are called PREFIX-a and
# PREFIX-b.
use_world() {
  world=$1 work=$2 prefix=$3
  netns=([a]=$prefix-a [b]=$prefix-b)
  to_overlay=([a]="nsenter --net=/run/netns/${netns[a]}" [b]="nsenter --net=/run/netns/${netns[b]}")
  # shellcheck disable=SC1090
  . "$project/script/worlds/$world.sh"
}

# shellcheck disable=SC2086 # words
overlay() { ${to_overlay[$1]} "${@:2}"; } # SIDE COMMAND...
# shellcheck disable=SC2086 # words
underlay() { ${to_underlay[$1]} "${@:2}"; } # SIDE COMMAND...

add_namespaces() {
  local side
  for side in a b; do
    ip netns add "${netns[$side]}"
    # No duplicate address detection: an address of the overlay is ready at once.
    overlay "$side" sysctl -qw net.ipv6.conf.default.accept_dad=0
    overlay "$side" ip link set lo up
  done
}

remove_namespaces() {
  local side
  for side in a b; do ip netns delete "${netns[$side]}" 2> /dev/null || true; done
}

# daemon_options SIDE: one option a line, for a daemon with the other side as its peer.
daemon_options() {
  local side=$1 peer=${other[$1]}
  printf '%s\n' --underlay "${underlay_address[$side]}" --tun "$tun" --tun-netns "${netns[$side]}" \
    --address "${overlay4[$side]}/24" --address "${overlay6[$side]}/64" \
    --peer "${underlay_address[$peer]} ${overlay4[$peer]}/32,${overlay6[$peer]}/128" \
    --control "$work/$side.sock"
}

# start SIDE [OPTION...]: a daemon; it may not be ready yet.
start() {
  local side=$1
  mapfile -t options < <(daemon_options "$side")
  start_with "$side" "${options[@]}" "${@:2}"
}

# start_with SIDE OPTION...: with these options alone. The daemon does not outlive this shell, unless
# daemon_wrapper says otherwise.
daemon_wrapper=(setpriv --pdeathsig KILL)
start_with() {
  local side=$1
  # shellcheck disable=SC2086 # words
  (exec ${to_underlay[$side]} "${daemon_wrapper[@]}" "$program" up "${@:2}" >> "$work/$side.log" 2>&1) &
  daemon_pid[$side]=$!
}

status() { "$program" status --control "$work/$1.sock" "${@:2}"; }

# within SECONDS COMMAND...: repeats COMMAND until it succeeds; fails when the time is over.
within() {
  local end=$(($(date +%s%N) + ${1%.*} * 1000000000))
  shift
  until "$@" > /dev/null 2>&1; do
    (($(date +%s%N) < end)) || return 1
    sleep 0.05
  done
}

# reaches SECONDS SIDE: a ping to the other end comes back before the time is over.
reaches() {
  local end=$(($(date +%s%N) + $1 * 1000000000))
  # ping itself goes on until the first answer, but ends where there is no route yet.
  until overlay "$2" ping -n -q -c 1 -i 0.05 -W 1 -w "$1" "${overlay4[${other[$2]}]}" > /dev/null 2>&1; do
    (($(date +%s%N) < end)) || return 1
    sleep 0.05
  done
}

# stop SIDE [SIGNAL]: returns the daemon's exit status, or 1 if it takes more than ten seconds.
stop() {
  local pid=${daemon_pid[$1]:-}
  [[ -n $pid ]] || return 0
  unset "daemon_pid[$1]"
  kill "-${2:-TERM}" "$pid" 2> /dev/null || true
  if [[ ${2:-} != KILL ]] && ! timeout 10 tail -s 0.05 --pid="$pid" -f /dev/null; then
    kill -KILL "$pid" 2> /dev/null || true
    wait "$pid" 2> /dev/null || true
    return 1
  fi
  wait "$pid" 2> /dev/null
}

stop_all() {
  local side
  for side in "${!daemon_pid[@]}"; do stop "$side" || true; done
}

# tun_bytes SIDE rx|tx: what SIDE's daemon has written to its TUN interface, or read from it.
tun_bytes() { overlay "$1" ip -j -s link show dev "$tun" | jq ".[0].stats64.$2.bytes"; }

# wire_bytes SIDE: what SIDE's underlay interface has sent.
wire_bytes() { underlay "$1" ip -j -s link show dev "${underlay_interface[$1]}" | jq '.[0].stats64.tx.bytes'; }
