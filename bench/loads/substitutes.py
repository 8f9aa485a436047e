"""What stands in for netperf where it can't be had: iperf3 for streams and datagrams, sockperf for transactions.

Their figures are not netperf's: iperf3 has one process for all streams, and does more for each datagram.
"""

import json

from bench.loads import LoadFailed
from bench.loads.tools import client, serving, wanted
from bench.tool_output import iperf3_received, sockperf_round_trip

IPERF3_PORT, SOCKPERF_PORT = 5201, 11111


def _iperf3(world, contestant, seconds, options):
    """(bytes, seconds, datagrams or None) and the account of it."""
    with serving(world, ["iperf3", "--server", "-4"], IPERF3_PORT), world.account() as account:
        text = client(world, ["iperf3", "-4", "--client", contestant.far_address, "--time", str(max(1, round(seconds))),
                              "--json", *options], seconds)
    try:
        return wanted(iperf3_received(json.loads(text)), "sum"), account
    except ValueError as error:
        raise LoadFailed(f"iperf3: {error}") from error


def tcp_stream(world, contestant, seconds, send_bytes):
    (received, elapsed, _), account = _iperf3(world, contestant, seconds, ["--length", str(send_bytes)])
    return {"tcp_stream_1": 8e-9 * received / elapsed, **account.metrics(received, elapsed)}


def tcp_streams(world, contestant, seconds, streams, send_bytes):
    options = ["--length", str(send_bytes), "--parallel", str(streams)]
    (received, elapsed, _), _ = _iperf3(world, contestant, seconds, options)
    return 8e-9 * received / elapsed


def round_trips(world, contestant, seconds, test):
    tcp = ["--tcp"] if test == "TCP_RR" else []
    address = ["-i", contestant.far_address, "-p", str(SOCKPERF_PORT), *tcp]
    with serving(world, ["sockperf", "server", *address], SOCKPERF_PORT, udp=not tcp):
        text = client(world, ["sockperf", "ping-pong", *address, "-m", "14", "-t", str(max(1, round(seconds))),
                              "--full-rtt"], seconds)
    found = wanted(sockperf_round_trip(text), "round trip")
    return found["mean"], found["p50"], found["p99"]


def datagrams(world, contestant, seconds, payload):
    (_, elapsed, count), _ = _iperf3(world, contestant, seconds, ["--udp", "--bitrate", "0", "--length", str(payload)])
    return wanted(count, "count of datagrams") / elapsed
