"""netperf 2.7 (omni tests): streams, transactions with percentiles, datagrams a second.

TCP runs with cubic, the kernel's default and Debian's, whatever this machine's is: bbr measures the path and paces, so that
one contestant's figure would tell more of bbr's model than of the contestant.

Where there is one connection, netserver runs with -f: it serves it by itself, so that there is one process to
account for and to end.
"""

import shlex

from bench.loads import LoadFailed
from bench.loads.tools import client, serving, wanted, with_its_children
from bench.tool_output import netperf_all, netperf_values

PORT = 12865
CONGESTION_CONTROL = "cubic"
RECEIVED = "REMOTE_RECV_THROUGHPUT,REMOTE_BYTES_RECVD,ELAPSED_TIME"  # 10^6 bits/s, bytes, s


def server(contestant, one_by_one=True):
    return ["netserver", "-D", *(["-f"] if one_by_one else []), "-4", "-L", contestant.far_address, "-p", str(PORT)]


def command(contestant, test, seconds, options):
    return ["netperf", "-4", "-H", contestant.far_address, "-p", str(PORT), "-t", test,
            "-l", str(max(1, round(seconds))), "-P", "0", "--", *options]


def stream(contestant, seconds, send_bytes=16384):
    return command(contestant, "TCP_STREAM", seconds, ["-K", CONGESTION_CONTROL, "-m", str(send_bytes), "-k", RECEIVED])


def tcp_stream(world, contestant, seconds, send_bytes):
    argv = stream(contestant, seconds, send_bytes)
    with serving(world, server(contestant), PORT), world.account() as account:
        values = netperf_values(client(world, argv, seconds))
    gbps = wanted(values.get("REMOTE_RECV_THROUGHPUT"), "throughput") / 1000
    return {"tcp_stream_1": gbps, **account.metrics(values["REMOTE_BYTES_RECVD"], values["ELAPSED_TIME"])}


def tcp_streams(world, contestant, seconds, streams, send_bytes):
    """Gb/s of all of them together; a shell starts them, within some milliseconds."""
    words = shlex.join(stream(contestant, seconds, send_bytes))
    argv = ["sh", "-c", f"for i in $(seq {streams}); do {words} & done; wait"]
    with serving(world, with_its_children(server(contestant, one_by_one=False)), PORT):
        text = client(world, with_its_children(argv), seconds)
    values = netperf_all(text, "REMOTE_RECV_THROUGHPUT")
    if len(values) != streams:
        raise LoadFailed(f"{len(values)} of {streams} netperf have a result: {text.strip()[-200:]}")
    return sum(values) / 1000


def round_trips(world, contestant, seconds, test):
    """(mean, p50, p99) in us; netperf's histogram has two digits. The mean is of the time that went by, so that it holds
    what TCP waited for a lost packet."""
    wish = "MEAN_LATENCY,P50_LATENCY,P99_LATENCY,THROUGHPUT"
    tcp = ["-K", CONGESTION_CONTROL] if test == "TCP_RR" else []
    with serving(world, server(contestant), PORT):
        values = netperf_values(client(world, command(contestant, test, seconds, [*tcp, "-k", wish]), seconds))
    rate = wanted(values.get("THROUGHPUT"), "rate") or wanted(None, "round trip")
    # Nobody sends a lost datagram again: netperf waits for it until its time is over.
    if test == "UDP_RR" and rate * values["MEAN_LATENCY"] < 0.9e6:
        raise LoadFailed(f"a datagram was lost: {rate} round trips of {values['MEAN_LATENCY']} us in a second")
    return 1e6 / rate, values["P50_LATENCY"], values["P99_LATENCY"]


def datagrams(world, contestant, seconds, payload):
    """Received in a second. -R 1: also where a contestant routes."""
    wish = ["-R", "1", "-m", str(payload), "-k", "REMOTE_RECV_CALLS,ELAPSED_TIME"]
    with serving(world, server(contestant), PORT):
        values = netperf_values(client(world, command(contestant, "UDP_STREAM", seconds, wish), seconds))
    return wanted(values.get("REMOTE_RECV_CALLS"), "count of datagrams") / values["ELAPSED_TIME"]
