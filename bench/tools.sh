# shellcheck shell=bash
# The measurements that tables of script/bench share. Sourced; needs $scratch, a folder for logs, and $seconds.

# serve COMMAND...: in the background, its pid in $server.
serve() {
  (exec setpriv --pdeathsig KILL "$@" > "$scratch/server.log" 2>&1) &
  server=$!
  sleep 0.7
}
end_server() {
  kill "$server" 2> /dev/null || true
  wait "$server" 2> /dev/null || true
}

tcp_gbps() { # SERVER-WORDS CLIENT-WORDS ADDRESS
  # shellcheck disable=SC2086 # words
  serve $1 iperf3 --server
  # shellcheck disable=SC2086 # words
  { timeout --foreground $((seconds + 20)) $2 iperf3 --client "$3" --time "$seconds" --json 2> /dev/null || true; } |
    jq '.end.sum_received.bits_per_second | if . then . / 1e9 else null end' || true
  end_server
}

# qperf's tcp_lat is half of a round trip.
tcp_rr_us() { # SERVER-WORDS CLIENT-WORDS ADDRESS
  # shellcheck disable=SC2086 # words
  serve $1 qperf
  # shellcheck disable=SC2086 # words
  { timeout --foreground $((seconds + 20)) $2 qperf --time "$seconds" --unify_units "$3" tcp_lat 2> /dev/null || true; } |
    awk '/latency/ { value = 2 * $3; if ($4 == "ns") value /= 1000; if ($4 == "ms") value *= 1000; if ($4 == "sec") value *= 1e6; print value; found = 1 } END { if (!found) print "null" }'
  end_server
}
