"""The overlay beside the verbs below it, the kernel's TCP above it, and what else puts TCP on verbs."""

from bench.stats import judged, paired_ratios
from bench.table import Arm, Call, Table, bars

UNDERLAYS = (4500, 1500)
CONTESTANTS = ("ipoverbs", "ib_send_bw", "rsockets", "veth")
STREAM, ROUND_TRIP = "tcp_stream_1", "tcp_rr"


def arms(options):
    overlay = [
        Call("tcp_stream", {"streams": 1}, keep=(STREAM,)),
        Call("tcp_rr", keep=(ROUND_TRIP, "tcp_rr_p50", "tcp_rr_p99")),
    ]
    return [
        arm
        for mtu in UNDERLAYS
        for arm in (
            Arm("ipoverbs", {"underlay_mtu": mtu, "overlay_mtu": 65520}, overlay, block=mtu),
            Arm("veth", {"underlay_mtu": mtu, "overlay_mtu": mtu}, overlay, block=mtu),
            Arm("ib_send_bw", {"underlay_mtu": mtu}, [Call("ib_send_bw"), Call("ib_send_lat")], block=mtu),
            Arm("rsockets", {"underlay_mtu": mtu}, [Call("rsockets_stream")], block=mtu),
        )
    ]


def bound(verbs, tcp):
    """B = 1 / (1/V + 1/T): what TCP over verbs can reach where both legs share the same CPUs."""
    return {i: 1 / (1 / verbs[i] + 1 / tcp[i]) for i in set(verbs) & set(tcp) if verbs[i] and tcp[i]}


def goals(figures):
    result = []
    for mtu, path_mtu in zip(UNDERLAYS, (4096, 1024)):
        stream = {c: figures.by_round(c, STREAM, underlay_mtu=mtu) for c in CONTESTANTS}
        trip = {c: figures.by_round(c, ROUND_TRIP, underlay_mtu=mtu) for c in CONTESTANTS}
        to_bound = paired_ratios(stream["ipoverbs"], bound(stream["ib_send_bw"], stream["veth"]))
        to_rsockets = paired_ratios(stream["ipoverbs"], stream["rsockets"])
        where = f"path MTU {path_mtu}: "
        result += [
            judged(f"{where}O / B", to_bound, 1.0),
            judged(f"{where}O / R", to_rsockets, 1.0),
            judged(f"{where}O / B, later", to_bound, 1.2),
            judged(f"{where}O / R, later", to_rsockets, 1.1),
            judged(
                f"{where}round trip, ipoverbs / kernel TCP, later",
                paired_ratios(trip["ipoverbs"], trip["veth"]),
                2.2,
                at_most=True,
            ),
        ]
    return result


def panels(figures):
    shown = (
        (STREAM, "One stream", "Gb/s"),
        (ROUND_TRIP, "Round trip, mean", "us"),
        ("tcp_rr_p99", "Round trip, 99th percentile", "us"),
    )
    return [
        bars(figures, title, metric, unit, CONTESTANTS, "ipoverbs", group=f"Path MTU {path_mtu}", underlay_mtu=mtu)
        for mtu, path_mtu in zip(UNDERLAYS, (4096, 1024))
        for metric, title, unit in shown
    ]


TABLE = Table(
    "verbs",
    "Beside verbs without us",
    "On one pair of RDMA devices: O, TCP over ipoverbs; V, ib_send_bw with messages of 64 KiB and ib_send_lat; R, "
    "iperf over rsockets with writes of 64 KiB. T, the kernel's TCP, is on a veth pair of the same MTU, as rdma_rxe's "
    "underlay is; where the devices are hardware T is still the veth's, and B says nothing. "
    "B = 1 / (1/V + 1/T) is what TCP over verbs can reach where both legs share the same CPUs. In an emulated guest "
    "only ratios mean anything.",
    arms,
    goals,
    panels,
    seconds=3,
    worlds=("rxe", "soft"),
    warm_up=True,
)
