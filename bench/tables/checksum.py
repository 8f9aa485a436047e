"""What completing and verifying checksums costs, and copying where it comes for free."""

from bench.stats import judged, paired_ratios
from bench.table import CPU_METRICS, Arm, Bars, Call, Line, Table

ALL = 65535  # a copy-break that no packet exceeds
# Gathered with and without a sum; copied with the sum in the same pass, and in one of its own.
MODES = {"auto": "gathered", "full": "gathered", "full-copied": "copied", "full-separate": "copied"}
MTUS = (65520, 1500)
BREAKS = (0, 128, 512, 2048, ALL)
PAYLOADS = (64, 256, 1400)


def arms(options):
    calls = [
        Call("tcp_stream", {"streams": 1}, keep=("tcp_stream_1", *CPU_METRICS)),
        Call("tcp_rr", keep=("tcp_rr",)),
    ]
    modes = [
        Arm("ipoverbs", {"overlay_mtu": mtu, "checksum": mode}, calls, block=mtu) for mtu in MTUS for mode in MODES
    ]
    small = [Call("udp_pps", {"payload": p}, {"payload": p}, (f"udp_pps_{p}",)) for p in PAYLOADS]
    sweep = [
        Arm("ipoverbs", {"overlay_mtu": 1500, "checksum": mode, "copy_break": size}, small, block="sweep")
        for mode in ("auto", "full")
        for size in (BREAKS[:: len(BREAKS) - 1] if options.quick else BREAKS)
    ]
    copied = [
        Arm("ipoverbs", {"overlay_mtu": 1500, "checksum": mode}, small, block="sweep")
        for mode in ("full-copied", "full-separate")
    ]
    return modes + sweep + copied


def of(figures, metric, mtu, mode, size=None):
    return figures.by_round("ipoverbs", metric, overlay_mtu=mtu, checksum=mode, copy_break=size)


def goals(figures):
    def fused_to_separate(metric, mtu):
        return paired_ratios(of(figures, metric, mtu, "full-copied"), of(figures, metric, mtu, "full-separate"))

    result = []
    for mtu in MTUS:
        full, auto = (of(figures, "tcp_stream_1", mtu, mode) for mode in ("full", "auto"))
        result.append(judged(f"MTU {mtu}: full / auto", paired_ratios(full, auto), 0.95))
        name = f"MTU {mtu}: copied, sum fused (full-copied) / full-separate, the interval's lower end"
        result.append(judged(name, fused_to_separate("tcp_stream_1", mtu), 1.0, by="low"))
    for payload in PAYLOADS:
        name = f"UDP of {payload} bytes: copied, sum fused (full-copied) / full-separate, not all of the interval below"
        result.append(judged(name, fused_to_separate(f"udp_pps_{payload}", 1500), 1.0, by="high"))
    return result


def _word(size):
    return {0: "gathered", ALL: "copied"}.get(size, f"to {size} copied")


def _sweep(figures, metric, mode):
    """A bar for each copy-break that has values."""
    return [Line(mode, values, _word(size)) for size in BREAKS if (values := of(figures, metric, 1500, mode, size))]


def _modes(figures, metric, mtu):
    return [Line(mode, values, word) for mode, word in MODES.items() if (values := of(figures, metric, mtu, mode))]


def panels(figures):
    shown = (
        ("tcp_stream_1", "TCP, one stream", "Gb/s"),
        ("tcp_rr", "TCP round trip, mean", "us"),
        ("service_demand", "Service demand, both sides", "us/KB"),
        ("daemon_cpu", "CPU of the daemons", "s/s"),
    )
    result = [
        Bars(title, unit, _modes(figures, metric, mtu), group=f"Overlay MTU {mtu}")
        for mtu in MTUS
        for metric, title, unit in shown
    ]
    for payload in PAYLOADS:
        for mode in ("auto", "full"):
            lines = _sweep(figures, f"udp_pps_{payload}", mode)
            result.append(Bars(f"UDP datagrams of {payload} bytes received", "1/s", lines, group="Small datagrams"))
        lines = _modes(figures, f"udp_pps_{payload}", 1500)
        result.append(Bars("The same, all copied", "1/s", lines, group="Small datagrams"))
    return result


TABLE = Table(
    "checksum",
    "Checksums, and copying",
    "auto lets a partial checksum cross as it is; full completes it at the sender and verifies it at the "
    "receiver. A packet longer than the copy-break is gathered from where it was read, and its sum takes a pass "
    "of its own; a shorter one is copied, and its sum rides on the copy, or takes another pass. full-copied and "
    "full-separate copy every packet, the one in one pass and the other in two.",
    arms,
    goals,
    panels,
)
