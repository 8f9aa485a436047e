# shellcheck shell=bash
# What the end-to-end bodies say. Sourced by tests/e2e/run after script/world.sh.

# fail WHY, skip WHY: end the body.
fail() {
  echo "$*" | tee "$work/why"
  exit 1
}

skip() {
  echo "$*" | tee "$work/why"
  exit 77
}

# report WHAT: for people, on the runner's standard error, where the body passes.
report() { echo "$*" | tee -a "$work/report"; }

# expect WHAT COMMAND...: COMMAND succeeds.
expect() {
  local what=$1
  shift
  "$@" || fail "$what"
}

# refuse WHAT COMMAND...: COMMAND fails.
refuse() {
  local what=$1
  shift
  ! "$@" || fail "$what"
}

# expect_within SECONDS WHAT COMMAND...: COMMAND succeeds before the time is over.
expect_within() {
  within "$1" "${@:3}" || fail "$2 (waited $1 s)"
}

# start_both [OPTION...]: two daemons that reach each other.
start_both() {
  start a "$@"
  start b "$@"
  expect "no ping from a to b after the start" reaches 10 a
}

running() { kill -0 "${daemon_pid[$1]}" 2> /dev/null; }

# answers SIDE: the daemon answers on its control socket.
answers() { status "$1" --json > /dev/null 2>&1; }

# status_value SIDE EXPRESSION: jq's EXPRESSION on the status.
status_value() { status "$1" --json | jq -er "$2"; }

# status_is SIDE EXPRESSION: jq's EXPRESSION is true of the status.
status_is() { status "$1" --json | jq -e "$2" > /dev/null; }

# peer_is SIDE STATE: of the first peer.
peer_is() { status_is "$1" ".peers[0].state == \"$2\""; }

ping_from() { # SIDE ADDRESS [OPTION...]
  overlay "$1" ping -n -q -W 2 "${@:3}" "$2"
}

# listens SIDE PORT: somebody does, on TCP.
listens() { overlay "$1" ss -Hltn "sport = :$2" | grep -q .; }

# transfer SIDE ADDRESS BYTES: TCP from SIDE to ADDRESS, the other side's, compared by its SHA-256.
transfer() {
  local from=$1 address=$2 bytes=$3 port=5001 server status=0
  overlay "${other[$from]}" python3 "$project/tests/e2e/transfer.py" serve "$address" $port &
  server=$!
  overlay "$from" python3 "$project/tests/e2e/transfer.py" send "$address" $port "$bytes" || status=1
  wait "$server" || status=1
  return $status
}

# load_from SIDE SECONDS: TCP to the other side in the background, until end_load SIDE or the time is over.
declare -A load_pid=() server_pid=()
load_from() {
  local side=$1 to=${other[$1]}
  # shellcheck disable=SC2086 # words
  (exec ${to_overlay[$to]} setpriv --pdeathsig KILL iperf3 --server --one-off > "$work/server-$to.log" 2>&1) &
  server_pid[$side]=$!
  expect_within 5 "iperf3 does not listen" listens "$to" 5201
  # shellcheck disable=SC2086 # words
  (exec ${to_overlay[$side]} setpriv --pdeathsig KILL iperf3 --client "${overlay4[$to]}" --time "$2" \
    > "$work/load-$side.log" 2>&1) &
  load_pid[$side]=$!
}

end_load() { # SIDE
  kill "${load_pid[$1]}" "${server_pid[$1]}" 2> /dev/null || true
  wait "${load_pid[$1]}" "${server_pid[$1]}" 2> /dev/null || true
}

# load_is_over SIDE: waits for it; fails if it did.
load_is_over() {
  wait "${load_pid[$1]}" || fail "iperf3 from $1: $(grep -m 1 error "$work/load-$1.log")"
  wait "${server_pid[$1]}" || true
}

descriptors() { find "/proc/${daemon_pid[$1]}/fd" -mindepth 1 | wc -l; }
resident_kib() { awk '/^VmRSS/ { print $2 }' "/proc/${daemon_pid[$1]}/status"; }

# queue_pairs SIDE: how many of ours the kernel knows on SIDE's RDMA device; 0 where that is no kernel's.
queue_pairs() {
  declare -F add_rdma_device > /dev/null || { echo 0; return; }
  rdma -j resource show qp link "${rdma_device[$1]}" | jq '[.[] | select(.comm == "ipoverbs")] | length'
}
