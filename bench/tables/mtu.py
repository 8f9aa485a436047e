"""64K against the 2K of an InfiniBand datagram link."""

from bench.stats import judged, paired_ratios
from bench.table import CPU_METRICS, Arm, Call, Curves, Table

MTUS = (2044, 4092, 9000, 65520)
CONTESTANTS = ("ipoverbs", "ring2")
SWITCH = ("off", "on")


def arms(options):
    return [
        Arm(
            c,
            {"overlay_mtu": mtu, "superpackets": on},
            [Call("tcp_stream", {"streams": 1, "send_bytes": 16384}, keep=("tcp_stream_1", *CPU_METRICS))],
            block=(mtu, on),
        )
        for mtu in MTUS
        for on in SWITCH
        for c in CONTESTANTS
    ]


def goals(figures):
    def stream(contestant, mtu, on):
        return figures.by_round(contestant, "tcp_stream_1", overlay_mtu=mtu, superpackets=on)

    result = [
        judged(
            "super-packets off: MTU 65520 / 2044",
            paired_ratios(stream("ipoverbs", 65520, "off"), stream("ipoverbs", 2044, "off")),
            4.0,
        )
    ]
    for on in SWITCH:
        for mtu in MTUS:
            result.append(
                judged(
                    f"MTU {mtu}, super-packets {on}: ipoverbs / ring2",
                    paired_ratios(stream("ipoverbs", mtu, on), stream("ring2", mtu, on)),
                    0.7,
                )
            )
    return result


def panels(figures):
    shown = (
        ("tcp_stream_1", "TCP, one stream, 16,384-byte sends", "Gb/s"),
        ("service_demand_send", "Service demand of the sending side", "us/KB"),
        ("service_demand_receive", "Service demand of the receiving side", "us/KB"),
        ("daemon_cpu", "CPU of the daemons", "s/s"),
    )
    return [
        Curves(
            title,
            unit,
            "overlay MTU, bytes",
            {
                f"{c}, super-packets {on}": {
                    mtu: figures.by_round(c, metric, overlay_mtu=mtu, superpackets=on) for mtu in MTUS
                }
                for on in SWITCH
                for c in CONTESTANTS
            },
            x_log=True,
        )
        for metric, title, unit in shown
    ]


TABLE = Table(
    "mtu",
    "What a large MTU brings",
    "One TCP stream at four overlay MTUs, without super-packets (the kernel cuts to the MTU before the TUN) and "
    "with them. A measurement published in 2006 on a pair of InfiniBand HCAs had 286.45 MB/s at MTU 2044 and "
    "782.55 MB/s at 65484, 2.73 times. Beside each arm stands ring2, two processes joined by a shared-memory "
    "ring, so that the ratio is not won by a slow arm.",
    arms,
    goals,
    panels,
)
