"""Everything that a person could use instead, in all metrics."""

from bench.stats import judged, paired_ratios
from bench.table import CPU_METRICS, Arm, Call, Table, bars

TUNNELS = ("openvpn", "socat", "wireguard-go", "tinc", "vtun")
CONTESTANTS = ("ipoverbs", *TUNNELS, "copy1", "ring2", "vxlan", "veth")
SETTINGS = [(underlay, overlay) for underlay in (9000, 1500) for overlay in (1500, "max")]

SHOWN = (
    ("tcp_stream_1", "TCP, one stream", "Gb/s"),
    ("tcp_stream_4", "TCP, four streams", "Gb/s"),
    ("tcp_rr", "TCP round trip, mean", "us"),
    ("tcp_rr_p99", "TCP round trip, 99th percentile", "us"),
    ("udp_rr", "UDP round trip, mean", "us"),
    ("udp_rr_p99", "UDP round trip, 99th percentile", "us"),
    ("udp_pps_64", "UDP datagrams of 64 bytes received", "1/s"),
    ("ping_p99_under_load", "Ping beside a TCP stream, 99th percentile", "us"),
    ("ping_after_idle", "First ping after two seconds of silence, ipoverbs alone", "us"),
    ("daemon_cpu", "CPU of the daemons beside one TCP stream", "s/s"),
    ("service_demand", "Service demand of one TCP stream, both sides", "us/KB"),
)

# Underlay 9000. Metric, overlay MTU, beside whom, what is wanted of ipoverbs to it, at most.
GOALS = (
    ("tcp_stream_1", 1500, "best", 10.0, False),
    ("tcp_stream_1", 1500, "ring2", 0.75, False),
    ("tcp_stream_1", "max", "best", 1.0, False),
    ("tcp_stream_1", "max", "ring2", 0.75, False),
    ("tcp_stream_4", "max", "ring2", 0.65, False),
    ("tcp_rr", 1500, "best", 0.9, True),
    ("tcp_rr", "max", "best", 0.9, True),
    ("udp_pps_64", 1500, "best", 1.5, False),
    ("udp_pps_64", "max", "best", 1.5, False),
    ("ping_p99_under_load", 1500, "ring2", 2.0, True),
    ("ping_p99_under_load", "max", "ring2", 2.0, True),
)


# What a quick run measures at underlay MTU 1500, on which no goal depends.
FEW = 2
CALLS = (
    Call("tcp_stream", {"streams": 1}, keep=("tcp_stream_1", *CPU_METRICS)),
    Call("tcp_rr", keep=("tcp_rr", "tcp_rr_p50", "tcp_rr_p99")),
    Call("tcp_stream", {"streams": 4}, keep=("tcp_stream_4",)),
    Call("udp_rr", keep=("udp_rr", "udp_rr_p50", "udp_rr_p99")),
    Call("udp_pps", {"payload": 64}, keep=("udp_pps_64",)),
    Call("ping_under_load", keep=("ping_p50_under_load", "ping_p99_under_load")),
)


def calls(options, contestant, underlay):
    if options.quick and underlay == 1500:
        return list(CALLS[:FEW])
    return [*CALLS, Call("ping_after_idle")] if contestant == "ipoverbs" else list(CALLS)


def arms(options):
    return [
        Arm(
            contestant,
            {"underlay_mtu": underlay, "overlay_mtu": overlay},
            calls(options, contestant, underlay),
            block=(underlay, overlay),
        )
        for underlay, overlay in SETTINGS
        for contestant in CONTESTANTS
    ]


def goals(figures):
    result = []
    for metric, overlay, beside, wanted, at_most in GOALS:
        setting = {"underlay_mtu": 9000, "overlay_mtu": overlay}
        other = figures.best(TUNNELS, metric, not at_most, **setting) if beside == "best" else beside
        ratios = paired_ratios(
            figures.by_round("ipoverbs", metric, **setting), figures.by_round(other or "-", metric, **setting)
        )
        beside_words = f"{other} (the best)" if beside == "best" and other else beside
        result.append(judged(f"{metric}, overlay {overlay}: ipoverbs / {beside_words}", ratios, wanted, at_most))
    for overlay in (1500, "max"):
        idle, loaded = (
            figures.by_round("ipoverbs", metric, underlay_mtu=9000, overlay_mtu=overlay)
            for metric in ("ping_after_idle", "ping_p50_under_load")
        )
        name = f"ipoverbs, overlay {overlay}: first ping after idling / median ping beside a stream"
        result.append(judged(name, paired_ratios(idle, loaded), 2.0, at_most=True))
    return result


def panels(figures):
    result = []
    for underlay, overlay in SETTINGS:
        setting = {"underlay_mtu": underlay, "overlay_mtu": overlay}
        bytes_of = {r["contestant"]: r["setting"].get("overlay_mtu_bytes", overlay) for r in figures.where(**setting)}
        for metric, title, unit in SHOWN:
            result.append(
                bars(
                    figures,
                    title,
                    metric,
                    unit,
                    CONTESTANTS,
                    "ipoverbs",
                    lambda c: f"MTU {bytes_of[c]}" if overlay == "max" else "",
                    f"Underlay MTU {underlay}, overlay MTU {overlay if overlay != 'max' else 'as large as each takes'}",
                    **setting,
                )
            )
    return result


TABLE = Table(
    "peers",
    "Beside what else one could use",
    "Between two hosts on a veth pair. ipoverbs, copy1 and ring2 give their TUN super-packets and partial "
    "checksums; openvpn, socat, tinc, vtun and this wireguard-go have none. copy1 and ring2 are bounds: one "
    "process that copies between the two TUNs, and two processes joined by a shared-memory ring. vxlan and veth "
    "are the kernel's own, for comparison. The best is the one with the better median among openvpn, socat, "
    "wireguard-go, tinc and vtun.",
    arms,
    goals,
    panels,
)
