"""What completing and verifying checksums costs, and copying where it comes for free."""

from bench.stats import judged, paired_ratios
from bench.table import CPU_METRICS, Arm, Bars, Call, Line, Table

MODES = ("auto", "full", "full-separate")
MTUS = (65520, 1500)
BREAKS = (0, 256, 1024, 4096, 16384)
PAYLOADS = (64, 256, 1400)
SWEEP_GROUP = "Packets copied up to so many bytes, else gathered; checksum = auto"
SWEEP = {"overlay_mtu": 1500, "checksum": "auto"}


def arms(options):
    modes = [
        Arm(
            "ipoverbs",
            {"overlay_mtu": mtu, "checksum": mode},
            [
                Call("tcp_stream", {"streams": 1}, keep=("tcp_stream_1", *CPU_METRICS)),
                Call("tcp_rr", keep=("tcp_rr",)),
            ],
            block=mtu,
        )
        for mtu in MTUS
        for mode in MODES
    ]
    sweep = [
        Arm(
            "ipoverbs",
            {**SWEEP, "copy_break": size},
            [Call("udp_pps", {"payload": p}, {"payload": p}, (f"udp_pps_{p}",)) for p in PAYLOADS]
            + [Call("tcp_stream", {"streams": 1}, keep=("tcp_stream_1",))],
            block="sweep",
        )
        for size in BREAKS
    ]
    return modes + sweep


def goals(figures):
    def stream(mtu, mode):
        return {
            r["round"]: r["value"]
            for r in figures.where("ipoverbs", "tcp_stream_1", overlay_mtu=mtu, checksum=mode)
            if r["value"] is not None and "copy_break" not in r["setting"]
        }

    result = []
    for mtu in MTUS:
        result.append(
            judged(f"MTU {mtu}: full / auto", paired_ratios(stream(mtu, "full"), stream(mtu, "auto")), 0.95)
        )
        result.append(
            judged(
                f"MTU {mtu}: fused / separate, by interval",
                paired_ratios(stream(mtu, "full"), stream(mtu, "full-separate")),
                1.0,
                by_interval=True,
            )
        )
    return result


def panels(figures):
    def lines(metric, key, values, **setting):
        found = []
        for value in values:
            rows = [
                r
                for r in figures.where("ipoverbs", metric, **setting, **{key: value})
                if r["value"] is not None and (key == "copy_break") == ("copy_break" in r["setting"])
            ]
            if rows:
                found.append(Line(str(value), {r["round"]: r["value"] for r in rows}))
        return found

    result = []
    for mtu in MTUS:
        for metric, title, unit in (
            ("tcp_stream_1", "TCP, one stream", "Gb/s"),
            ("tcp_rr", "TCP round trip, mean", "us"),
            ("service_demand", "Service demand, both sides", "us/KB"),
        ):
            result.append(
                Bars(
                    title,
                    unit,
                    lines(metric, "checksum", MODES, overlay_mtu=mtu),
                    "full",
                    f"checksum = ..., overlay MTU {mtu}",
                )
            )
    for payload in PAYLOADS:
        result.append(
            Bars(
                f"UDP datagrams of {payload} bytes received",
                "1/s",
                lines(f"udp_pps_{payload}", "copy_break", BREAKS, payload=payload),
                "0",
                SWEEP_GROUP,
            )
        )
    result.append(
        Bars("TCP, one stream, MTU 1500", "Gb/s", lines("tcp_stream_1", "copy_break", BREAKS), "0", SWEEP_GROUP)
    )
    return result


TABLE = Table(
    "checksum",
    "Checksums, and copying",
    "auto lets a partial checksum cross as it is; full completes it at the sender and verifies it at the receiver, in the same pass as a "
    "copy where there is one; full-separate copies first and sums then. A packet shorter than the copy-break is copied into its "
    "message; a longer one is gathered from where it was read.",
    arms,
    goals,
    panels,
)
