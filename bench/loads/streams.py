"""Streams, transactions and small datagrams, by netperf, or by what stands in for it."""

from bench.loads import load, netperf, substitutes
from bench.loads.tools import has_netperf, netperf_missing


def _tool():
    return netperf if has_netperf() else substitutes


@load("tcp_stream_1", "tcp_stream_4", "daemon_cpu", "daemon_cpu_send", "daemon_cpu_receive", "service_demand",
      "service_demand_send", "service_demand_receive", missing=netperf_missing)
def tcp_stream(world, contestant, seconds, streams=1, send_bytes=16384):
    if streams == 1:
        return _tool().tcp_stream(world, contestant, seconds, send_bytes)
    return {f"tcp_stream_{streams}": _tool().tcp_streams(world, contestant, seconds, streams, send_bytes)}


@load("bw_tcp", missing=netperf_missing)
def bw_tcp(world, contestant, seconds, message_size=65536, processes=1):
    """The grid of lmbench's bw_tcp, message sizes by processes, without lmbench: with eight processes on two CPUs its
    own way of timing takes half a minute a run, and ends now and then without a result."""
    return {"bw_tcp": _tool().tcp_streams(world, contestant, seconds, processes, message_size)}


@load("tcp_rr", "tcp_rr_p50", "tcp_rr_p99", missing=netperf_missing)
def tcp_rr(world, contestant, seconds):
    return _round_trips(world, contestant, seconds, "tcp_rr")


@load("udp_rr", "udp_rr_p50", "udp_rr_p99", missing=netperf_missing)
def udp_rr(world, contestant, seconds):
    return _round_trips(world, contestant, seconds, "udp_rr")


def _round_trips(world, contestant, seconds, name):
    values = _tool().round_trips(world, contestant, seconds, name.upper())
    return dict(zip((name, f"{name}_p50", f"{name}_p99"), values))


@load("udp_pps_64", "udp_pps_256", "udp_pps_1400", missing=netperf_missing)
def udp_pps(world, contestant, seconds, payload=64):
    return {f"udp_pps_{payload}": _tool().datagrams(world, contestant, seconds, payload)}
