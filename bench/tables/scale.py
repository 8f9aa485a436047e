"""Workers and peers: what they bring and what they cost."""

import subprocess

from bench.progress import say
from bench.table import Arm, Call, Curves, Table

WORKERS = (1, 2, 4)
CONFIGURED = (1, 10, 100, 1000)
CONNECTED = (1, 10, 100)
MEGABYTE = 1e6
BASE = {"overlay_mtu": 65520}


def watch(contestant, world, before=None):
    """Of side a: queue pairs, and bytes in memory."""
    if before is None:
        return True
    sessions = [s for peer in contestant.status(world, "a")["peers"] for s in peer["sessions"]]
    return {
        "queue_pairs": sum(s["state"] == "established" for s in sessions),
        "memory": contestant.memory("a") / MEGABYTE,
    }


def arms(options):
    calls = [
        Call("tcp_stream", {"streams": 1}, keep=("tcp_stream_1", "daemon_cpu")),
        Call("tcp_stream", {"streams": 4}, keep=("tcp_stream_4",)),
        Call("tcp_rr", keep=("tcp_rr",)),
    ]
    workers = [Arm("ipoverbs", {**BASE, "workers": n}, calls, block="workers", watch=watch) for n in WORKERS]
    configured = [(n, 1) for n in CONFIGURED]
    connected = [(n, n) for n in CONNECTED if n > 1]
    return workers + [
        Arm("ipoverbs", {**BASE, "peers": peers, "connected": n}, calls, block="peers", watch=watch)
        for peers, n in configured + connected
    ]


def measure(session):
    """Look-ups alone, as often as there are rounds."""
    program = session.build / "release/bench/scale/bench_lookup"
    say("scale: look-ups")
    rows = []
    for number in range(1, session.rounds() + 1):
        text = subprocess.run([program, *map(str, CONFIGURED)], capture_output=True, text=True, check=True).stdout
        for line in text.splitlines():
            peers, *costs = line.split()
            for metric, cost in zip(("lookup_ipv4", "lookup_ipv6"), costs):
                rows.append(
                    {
                        "contestant": "ipoverbs",
                        "setting": {"peers": int(peers)},
                        "metric": metric,
                        "unit": "ns",
                        "round": number,
                        "value": float(cost),
                        "probe": None,
                    }
                )
    return rows, []


def goals(figures):
    return []  # it has none: its figures go into the formula of docs/performance.md


def panels(figures):
    def curve(metric, key, values, **setting):
        return {
            n: figures.by_round(
                "ipoverbs", metric, **{key: n}, **{k: n if v == "same" else v for k, v in setting.items()}
            )
            for n in values
        }

    shown = (
        ("tcp_stream_1", "TCP, one stream", "Gb/s"),
        ("tcp_stream_4", "TCP, four streams", "Gb/s"),
        ("tcp_rr", "TCP round trip, mean", "us"),
        ("daemon_cpu", "CPU of all daemons beside one stream", "s/s"),
        ("queue_pairs", "Queue pairs of one host", "queue pairs"),
        ("memory", "Memory of one host's daemon", "MB"),
    )
    result = []
    for metric, title, unit in shown:
        result.append(
            Curves(
                title, unit, "workers on each side", {"ipoverbs": curve(metric, "workers", WORKERS)}, group="Workers"
            )
        )
    for metric, title, unit in shown:
        result.append(
            Curves(
                title,
                unit,
                "peers",
                {
                    "configured, one connected": curve(metric, "peers", CONFIGURED, connected=1),
                    "all connected": curve(metric, "peers", CONNECTED, connected="same"),
                },
                x_log=True,
                group="Peers",
            )
        )
    result.append(
        Curves(
            "One look-up of a destination",
            "ns",
            "peers",
            {
                name: curve(metric, "peers", CONFIGURED)
                for name, metric in (("IPv4", "lookup_ipv4"), ("IPv6", "lookup_ipv6"))
            },
            x_log=True,
            group="Peers",
        )
    )
    return result


TABLE = Table(
    "scale",
    "Workers and peers",
    "Workers: queues of the TUN interface, each with a thread and queue pairs of its own, on both sides. Peers: "
    "the two hosts talk while the sending one has further peers: configured and dialled in vain, or connected, "
    "each a daemon of its own on the other side.",
    arms,
    goals,
    panels,
    measure=measure,
    worlds=("soft",),
    metrics={
        "queue_pairs": ("queue pairs", False),
        "memory": ("MB", False),
        "lookup_ipv4": ("ns", False),
        "lookup_ipv6": ("ns", False),
    },
)
