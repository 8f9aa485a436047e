"""Large datagrams whole, against fragmented by the kernel."""

from bench.stats import judged, paired_ratios
from bench.table import Arm, Call, Table, bars

MTUS = (65520, 1500)
STREAMS = (1, 2)
PAYLOAD = 60000  # what iperf makes of 60k
CONTESTANTS = ("ipoverbs", "ring2")


def arms(options):
    return [
        Arm(
            c,
            {"overlay_mtu": mtu, "payload": PAYLOAD},
            [
                Call(
                    "udp_stream_and_loss",
                    {"streams": n, "payload": PAYLOAD},
                    {"streams": n},
                    (f"udp_stream_{n}", "udp_loss", "udp_loss_flat_out"),
                )
                for n in STREAMS
            ],
            block=mtu,
        )
        for mtu in MTUS
        for c in CONTESTANTS
    ]


def goals(figures):
    def received(contestant, mtu, streams):
        return figures.by_round(contestant, f"udp_stream_{streams}", overlay_mtu=mtu)

    result = []
    for n in STREAMS:
        word = f"{n} stream{'s' if n > 1 else ''}"
        result.append(
            judged(
                f"{word}: MTU 65520 / 1500",
                paired_ratios(received("ipoverbs", 65520, n), received("ipoverbs", 1500, n)),
                3.0,
            )
        )
        for mtu in MTUS:
            result.append(
                judged(
                    f"{word}, MTU {mtu}: ipoverbs / ring2",
                    paired_ratios(received("ipoverbs", mtu, n), received("ring2", mtu, n)),
                    0.7,
                )
            )
        for mtu in MTUS:
            loss = figures.by_round("ipoverbs", "udp_loss", overlay_mtu=mtu, streams=n)
            result.append(
                judged(f"{word}, MTU {mtu}: loss in % at 0.9 of the rate", list(loss.values()), 1.0, at_most=True)
            )
    return result


def panels(figures):
    result = []
    for n in STREAMS:
        for metric, title, unit in (
            (f"udp_stream_{n}", "Received", "Gb/s"),
            ("udp_loss", "Lost at 0.9 of that rate", "%"),
            ("udp_loss_flat_out", "Lost at full speed", "%"),
        ):
            for mtu in MTUS:
                result.append(
                    bars(
                        figures,
                        f"{title}; overlay MTU {mtu}",
                        metric,
                        unit,
                        CONTESTANTS,
                        "ipoverbs" if unit == "Gb/s" else None,
                        group=f"{n} stream{'s' if n > 1 else ''}",
                        overlay_mtu=mtu,
                        streams=n,
                    )
                )
    return result


TABLE = Table(
    "udp60k",
    "Large datagrams whole against fragmented",
    "Datagrams of 60,000 bytes (iperf -u -l 60k), at an overlay MTU that takes them whole and at 1500, where the "
    "kernel fragments them before the TUN and reassembles them after it. A measurement of UDP fragmentation "
    "offload published in 2005 had 5.87 against 3.55 Gb/s with one stream and 7.25 against 3.41 with two.",
    arms,
    goals,
    panels,
)
