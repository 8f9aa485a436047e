"""Many packets for one doorbell: does it help, and does it do no harm?"""

from bench.stats import judged, paired_ratios
from bench.table import Arm, Call, Curves, Table

SIZES = (4096, 16384, 65536, 131072, 262144)
PROCESSES = (1, 8)
PAYLOADS = (64, 256, 1400)
SWITCH = ("off", "on")
SMALL_METRICS = ("packets_per_message", "packets_per_doorbell", "doorbells_per_packet")
COUNTERS = ("peer_tx_packets", "peer_tx_bytes", "peer_tx_messages", "peer_tx_doorbells", "peer_tx_grants")


def watch(contestant, world, before=None):
    """What the sending daemon counted during a load: sizes of its doorbells, and their means."""
    status = contestant.status(world, "a")
    now = {name: status["counters"][name] for name in COUNTERS}
    for name in ("doorbell_bytes", "doorbell_packets"):
        now[name] = {bucket["from"]: bucket["count"] for bucket in status[name]}
    if before is None:
        return now
    grown = {name: now[name] - before[name] for name in COUNTERS}
    result = {}
    for name in ("doorbell_bytes", "doorbell_packets"):
        result[name] = [({"from": size}, count - before[name].get(size, 0)) for size, count in now[name].items()]
    if grown["peer_tx_packets"] and grown["peer_tx_messages"] and grown["peer_tx_doorbells"]:
        result["packets_per_message"] = grown["peer_tx_packets"] / grown["peer_tx_messages"]
        result["packets_per_doorbell"] = grown["peer_tx_packets"] / grown["peer_tx_doorbells"]
        result["doorbells_per_packet"] = grown["peer_tx_doorbells"] / grown["peer_tx_packets"]
    return result


def arms(options):
    return small(options.world_name) + ([] if options.part == "small" else grid(options.world_name))


def grid(device):
    """bw_tcp's; on and off of a cell are neighbours."""
    return [
        Arm(
            "ipoverbs",
            {"overlay_mtu": 65520, "batching": on, "device": device},
            [
                Call(
                    "bw_tcp",
                    {"message_size": size, "processes": n},
                    {"message_size": size, "processes": n},
                    ("bw_tcp",),
                )
            ],
            block=("grid", size, n),
            watch=watch,
        )
        for size in SIZES
        for n in PROCESSES
        for on in SWITCH
    ]


def small(device):
    return [
        Arm(
            "ipoverbs",
            {"overlay_mtu": 1500, "packing": packing, "chaining": chaining, "device": device},
            [Call("udp_pps", {"payload": p}, {"payload": p}, (f"udp_pps_{p}",)) for p in PAYLOADS],
            block="small",
            watch=watch,
        )
        for packing in SWITCH
        for chaining in SWITCH
    ]


def received(figures, device, payload, packing, chaining, metric=None):
    return figures.by_round(
        "ipoverbs", metric or f"udp_pps_{payload}", device=device, payload=payload, packing=packing, chaining=chaining
    )


def cell(figures, device, size, processes, on):
    return figures.by_round("ipoverbs", "bw_tcp", device=device, message_size=size, processes=processes, batching=on)


def goals(figures):
    result = [
        judged(
            f"soft: {size}-byte messages, {n} processes: batching on / off, not all of the interval below",
            paired_ratios(cell(figures, "soft", size, n, "on"), cell(figures, "soft", size, n, "off")),
            1.0,
            by="high",
        )
        for size in SIZES
        for n in PROCESSES
    ]
    for payload in PAYLOADS:
        plain = {device: received(figures, device, payload, "off", "off") for device in ("soft", "rxe")}
        result.append(
            judged(
                f"soft: UDP of {payload} bytes: packing alone / neither",
                paired_ratios(received(figures, "soft", payload, "on", "off"), plain["soft"]),
                2.0,
            )
        )
        result.append(
            judged(
                f"rxe: UDP of {payload} bytes: chaining alone / neither",
                paired_ratios(received(figures, "rxe", payload, "off", "on"), plain["rxe"]),
                2.0,
            )
        )
        result.append(
            judged(
                f"rxe: UDP of {payload} bytes: both / neither, later",
                paired_ratios(received(figures, "rxe", payload, "on", "on"), plain["rxe"]),
                2.5,
            )
        )
        result.append(
            judged(
                f"rxe: UDP of {payload} bytes: doorbells a packet with both, later",
                list(received(figures, "rxe", payload, "on", "on", "doorbells_per_packet").values()),
                0.2,
                at_most=True,
            )
        )
    return result


def panels(figures):
    result = []
    for device in figures.values_of("device"):
        for n in PROCESSES:
            curves = {f"batching {on}": {size: cell(figures, device, size, n, on) for size in SIZES} for on in SWITCH}
            result.append(
                Curves(
                    f"bw_tcp, {n} process{'es' if n > 1 else ''}",
                    "Gb/s",
                    "bytes of one message",
                    curves,
                    x_log=True,
                    group=f"Device {device}",
                )
            )
        result += _small_panels(figures, device)
        for n in PROCESSES:
            result += [
                _histogram(
                    figures, f"bw_tcp, {n} process{'es' if n > 1 else ''}, all sizes", device, "batching", processes=n
                )
            ]
        for payload in PAYLOADS:
            result.append(_histogram(figures, f"UDP of {payload} bytes", device, "packing", payload=payload))
    return result


def _small_panels(figures, device):
    names = {(p, c): f"packing {p}, chaining {c}" for p in SWITCH for c in SWITCH}
    shown = (
        ("", "Received", "1/s"),
        ("packets_per_message", "Packets a message", "packets"),
        ("packets_per_doorbell", "Packets a doorbell", "packets"),
    )
    return [
        Curves(
            f"Small datagrams: {title.lower()}",
            unit,
            "bytes of payload",
            {
                name: {payload: received(figures, device, payload, p, c, metric) for payload in PAYLOADS}
                for (p, c), name in names.items()
            },
            x_log=True,
            group=f"Device {device}",
        )
        for metric, title, unit in shown
    ]


def _histogram(figures, title, device, key, **setting):
    """How many of a hundred doorbells carried from x to 2x bytes; the switch is of `key`."""
    curves = {}
    for on in SWITCH:
        rows = [
            r
            for r in figures.where("ipoverbs", "doorbell_bytes", device=device, **{key: on}, **setting)
            if key != "packing" or r["setting"]["chaining"] == on
        ]
        total = sum(r["value"] for r in rows)
        counts = {}
        for r in rows:
            counts[r["setting"]["from"]] = counts.get(r["setting"]["from"], 0) + r["value"]
        if total:
            name = f"batching {on}" if key == "batching" else f"packing and chaining {on}"
            curves[name] = {size: {1: 100 * count / total} for size, count in sorted(counts.items())}
    return Curves(
        f"Doorbells by the bytes that they carry: {title}",
        "% of doorbells",
        "bytes, from here to twice as many",
        curves,
        bars=True,
        group=f"Device {device}",
    )


TABLE = Table(
    "batch",
    "Many packets for one doorbell",
    "Batching is packing (several packets in one message) and chaining (several messages posted with one "
    "doorbell). The grid is that of lmbench's bw_tcp. A measurement of the batching transmit interface published "
    "in 2007, on a gigabit card at line rate, had bursts of 20 to 30 KB (one of 164 KB) and equal throughput in "
    "all ten cells: it did no harm. Small datagrams are those for which it should help.",
    arms,
    goals,
    panels,
    guest_part="small",
    metrics={
        "doorbell_bytes": ("doorbells", None),
        "doorbell_packets": ("doorbells", None),
        "packets_per_message": ("packets", True),
        "packets_per_doorbell": ("packets", True),
        "doorbells_per_packet": ("doorbells", False),
    },
)
