"""What the software device keeps of its speed where the underlay is poor: small frames, no UDP_GRO."""

from bench.stats import judged, paired_ratios
from bench.table import CPU_METRICS, Arm, Bars, Call, Line, Table

OVERLAYS = (1500, 65520)
UNDERLAYS = (9000, 1500)
SWITCH = ("on", "off")
METRICS = (
    ("tcp_stream_1", "TCP, one stream", "Gb/s"),
    ("tcp_rr", "TCP round trip, mean", "us"),
    ("service_demand", "Service demand of one TCP stream, both sides", "us/KB"),
)


def arms(options):
    return [
        Arm(
            "ipoverbs",
            {"underlay_mtu": underlay, "overlay_mtu": overlay, "coalescing": on},
            [
                Call("tcp_stream", {"streams": 1}, keep=("tcp_stream_1", *CPU_METRICS)),
                Call("tcp_rr", keep=("tcp_rr",)),
            ],
            block=overlay,
        )
        for overlay in OVERLAYS
        for underlay in UNDERLAYS
        for on in SWITCH
    ]


def of(figures, metric, underlay, overlay, on):
    return figures.by_round("ipoverbs", metric, underlay_mtu=underlay, overlay_mtu=overlay, coalescing=on)


def goals(figures):
    return [
        judged(
            f"overlay {overlay}: underlay {underlay}, UDP_GRO {on} / underlay 9000, UDP_GRO on",
            paired_ratios(
                of(figures, "tcp_stream_1", underlay, overlay, on), of(figures, "tcp_stream_1", 9000, overlay, "on")
            ),
            0.4,
        )
        for overlay in OVERLAYS
        for underlay in UNDERLAYS
        for on in SWITCH
        if (underlay, on) != (9000, "on")
    ]


def panels(figures):
    return [
        Bars(
            title,
            unit,
            [
                Line(f"underlay {underlay}", values, f"UDP_GRO {on}")
                for underlay in UNDERLAYS
                for on in SWITCH
                if (values := of(figures, metric, underlay, overlay, on))
            ],
            group=f"Overlay MTU {overlay}",
        )
        for overlay in OVERLAYS
        for metric, title, unit in METRICS
    ]


TABLE = Table(
    "underlay",
    "Small frames, and no UDP_GRO",
    "The software device where its socket cannot merge what arrives (coalescing off: UDP_GRO), and where the "
    "underlay's MTU is 1500, so that a packet carries 1,024 bytes instead of 4,096. None should collapse.",
    arms,
    goals,
    panels,
    worlds=("soft",),
)
