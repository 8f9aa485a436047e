"""What completing and verifying checksums costs, and copying where it comes for free."""

from bench.stats import judged, paired_ratios
from bench.table import CPU_METRICS, Arm, Bars, Call, Line, Table

ALL = 65535  # a copy-break that no packet exceeds
# checksum, copy-break: gathered with and without a sum; copied with the sum in the same pass, and in one of its own.
MODES = (("auto", 0), ("full", 0), ("full", ALL), ("full-separate", ALL))
MTUS = (65520, 1500)
BREAKS = (0, 128, 512, 2048, ALL)
PAYLOADS = (64, 256, 1400)


def arms(options):
    calls = [
        Call("tcp_stream", {"streams": 1}, keep=("tcp_stream_1", *CPU_METRICS)),
        Call("tcp_rr", keep=("tcp_rr",)),
    ]
    modes = [
        Arm("ipoverbs", {"overlay_mtu": mtu, "checksum": mode, "copy_break": size}, calls, block=mtu)
        for mtu in MTUS
        for mode, size in MODES
    ]
    small = [Call("udp_pps", {"payload": p}, {"payload": p}, (f"udp_pps_{p}",)) for p in PAYLOADS]
    sweep = [
        Arm("ipoverbs", {"overlay_mtu": 1500, "checksum": mode, "copy_break": size}, small, block="sweep")
        for mode in ("auto", "full")
        for size in BREAKS
    ]
    return modes + sweep


def of(figures, metric, mtu, mode, size):
    return figures.by_round("ipoverbs", metric, overlay_mtu=mtu, checksum=mode, copy_break=size)


def goals(figures):
    result = []
    for mtu in MTUS:
        auto, full, fused, separate = (of(figures, "tcp_stream_1", mtu, *mode) for mode in MODES)
        result.append(judged(f"MTU {mtu}: full / auto", paired_ratios(full, auto), 0.95))
        name = f"MTU {mtu}: copied, sum fused / separate, by interval"
        result.append(judged(name, paired_ratios(fused, separate), 1.0, by_interval=True))
    return result


def _word(size):
    return {0: "gathered", ALL: "copied"}.get(size, f"to {size} copied")


def _lines(figures, metric, mtu, modes):
    """A bar for each of (checksum, copy-break) that has values."""
    return [
        Line(mode, values, _word(size)) for mode, size in modes if (values := of(figures, metric, mtu, mode, size))
    ]


def panels(figures):
    shown = (
        ("tcp_stream_1", "TCP, one stream", "Gb/s"),
        ("tcp_rr", "TCP round trip, mean", "us"),
        ("service_demand", "Service demand, both sides", "us/KB"),
        ("daemon_cpu", "CPU of the daemons", "s/s"),
    )
    result = [
        Bars(title, unit, _lines(figures, metric, mtu, MODES), group=f"Overlay MTU {mtu}")
        for mtu in MTUS
        for metric, title, unit in shown
    ]
    for payload in PAYLOADS:
        for mode in ("auto", "full"):
            lines = _lines(figures, f"udp_pps_{payload}", 1500, [(mode, size) for size in BREAKS])
            result.append(Bars(f"UDP datagrams of {payload} bytes received", "1/s", lines, group="Small datagrams"))
    return result


TABLE = Table(
    "checksum",
    "Checksums, and copying",
    "auto lets a partial checksum cross as it is; full completes it at the sender and verifies it at the "
    "receiver. A packet longer than the copy-break is gathered from where it was read, and its sum takes a pass "
    "of its own; a shorter one is copied, and its sum rides on the copy, or (full-separate) takes another pass.",
    arms,
    goals,
    panels,
)
