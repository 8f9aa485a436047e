"""Loads: what is done to a contestant, and what is seen.

A load is a function of any module of this folder, marked by `@load`; a module is found by being here.

    @load("tcp_rr", "tcp_rr_p50", "tcp_rr_p99", missing=netperf_missing)
    def tcp_rr(world, contestant, seconds, **parameters):
        ...
        return {"tcp_rr": 71.2, "tcp_rr_p50": 70.0, "tcp_rr_p99": 118.0}

It runs its server in side b's namespace and its client in side a's, to contestant.far_address, by
`world.run` and `world.start(..., role="load")` (world.py), and returns {metric: number}. A measurement that
fails raises LoadFailed("why"): its metrics then have the value null in the JSON, and count nowhere. The words after the
name are the metrics that it may return; `missing` says why its tools can't be had, or None, and installs them.

A load that knows how many bytes it moved in how many seconds accounts the CPU time:

    with world.account() as account:
        ... the transfer alone ...
    return {"tcp_stream_1": gbps, **account.metrics(bytes, seconds)}

which adds daemon_cpu, daemon_cpu_send, daemon_cpu_receive (s/s), service_demand, service_demand_send and
service_demand_receive (us/KB: CPU time of daemon and programs of the side, to 1,024 bytes; the first is the sum).

The loads by name; METRICS has every metric's unit and which way is better:

    tcp_stream(streams=1, send_bytes=16384)      netperf TCP_STREAM: tcp_stream_N; with one stream the CPU metrics too
    tcp_rr(), udp_rr()                           netperf: mean, _p50, _p99
    udp_pps(payload=64)                          udp_pps_N: datagrams received a second, as fast as they are sent
    udp_stream(streams=1, payload=60000, rate=None)
                                                 iperf -u: udp_stream_N received, udp_loss; rate in Gb/s, all
                                                 streams together; None: as fast as it goes, which is searched for
    bw_tcp(message_size=65536, processes=1)      the grid of lmbench's bw_tcp, by netperf: bw_tcp
    ping_under_load()                            ping_p50_under_load, ping_p99_under_load beside one TCP stream
    ping_after_idle()                            the first ping after two seconds of silence
"""

import importlib
import pkgutil
from dataclasses import dataclass
from typing import Callable

# Unit, and whether more is better.
METRICS = {
    "tcp_stream_1": ("Gb/s", True),
    "tcp_stream_4": ("Gb/s", True),
    "tcp_rr": ("us", False),
    "tcp_rr_p50": ("us", False),
    "tcp_rr_p99": ("us", False),
    "udp_rr": ("us", False),
    "udp_rr_p50": ("us", False),
    "udp_rr_p99": ("us", False),
    "udp_pps_64": ("1/s", True),
    "udp_pps_256": ("1/s", True),
    "udp_pps_1400": ("1/s", True),
    "ping_p50_under_load": ("us", False),
    "ping_p99_under_load": ("us", False),
    "ping_after_idle": ("us", False),
    "daemon_cpu": ("s/s", False),
    "daemon_cpu_send": ("s/s", False),
    "daemon_cpu_receive": ("s/s", False),
    "service_demand": ("us/KB", False),
    "service_demand_send": ("us/KB", False),
    "service_demand_receive": ("us/KB", False),
    "udp_stream_1": ("Gb/s", True),
    "udp_stream_2": ("Gb/s", True),
    "udp_loss": ("%", False),
    "udp_loss_flat_out": ("%", False),
    "bw_tcp": ("Gb/s", True),
}


class LoadFailed(Exception):
    pass


@dataclass(frozen=True)
class Load:
    run: Callable
    metrics: tuple
    missing: Callable


_loads = {}


def load(*metrics, missing=lambda: None):
    def mark(function):
        _loads[function.__name__] = Load(function, metrics, missing)
        return function

    return mark


def every():
    """{name: Load} of all loads."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(_loads)
