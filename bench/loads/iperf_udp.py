"""Large datagrams: iperf -u -l 60k, which is 60,000 bytes in iperf 2.1.

How fast it goes is searched for: who sends much more than gets through hinders the receiver, and where datagrams
are fragmented, hardly one arrives whole. So the offer is halved until less is offered than has arrived before, and
tried once more halfway up from the best; the best run counts, with its loss.

Where fragments are lost, the incomplete datagrams would fill the receiver's memory for reassembly (4 MB) for 30 s,
and everything fragmented would be dropped, beyond the end of this load. Both sides get more of it, and give up on
a datagram after a second.
"""

from typing import NamedTuple

from bench.loads import LoadFailed, load
from bench.loads.tools import client, iperf_missing, serving
from bench.tool_output import iperf_udp_reports
from bench.world import SIDES

PORT = 5001
# Of both sockets, as far as net.core.rmem_max and wmem_max allow: the usual buffer holds three such datagrams.
BUFFER = 4 << 20
UNBOUNDED = 100.0  # Gb/s a stream: iperf has no word for "as fast as it goes"
BEYOND = 32.0  # Gb/s that none here reaches
HALVINGS = 8


class Seen(NamedTuple):
    """Gb/s of all streams together, and percent."""

    sent: float = 0.0
    received: float = 0.0
    loss: float = 100.0


@load("udp_stream_1", "udp_stream_2", "udp_loss", missing=iperf_missing)
def udp_stream(world, contestant, seconds, streams=1, payload=60000, rate=None):
    for side in SIDES:
        world.command(side, "sysctl", "-qw", "net.ipv4.ipfrag_time=1", f"net.ipv4.ipfrag_high_thresh={64 << 20}")

    def offer(gbps):
        return _offer(world, contestant, seconds, streams, payload, gbps)

    seen = offer(rate) if rate is not None else fastest(offer, UNBOUNDED * streams)
    return {f"udp_stream_{streams}": seen.received, "udp_loss": seen.loss}


def fastest(offer, unbounded):
    """What arrives at most, of whatever is offered. `offer` takes Gb/s and returns Seen; where it raises LoadFailed
    nothing can be said, which at an offer beyond all measure is not the end of it."""
    best, failure, gbps = Seen(), LoadFailed("nothing arrives"), unbounded
    for _ in range(HALVINGS):
        try:
            seen = offer(gbps)
        except LoadFailed as error:
            seen, failure = Seen(sent=min(gbps, BEYOND)), error
        best = max(best, seen, key=lambda s: s.received)
        gbps = min(seen.sent, gbps) / 2
        if gbps <= best.received:
            break
    if best.received == 0:
        raise failure
    try:
        return max(best, offer(1.4 * best.received), key=lambda s: s.received)
    except LoadFailed:
        return best


def _offer(world, contestant, seconds, streams, payload, gbps):
    common = ["iperf", "-u", "-p", str(PORT), "-l", str(payload), "-w", str(BUFFER), "-f", "k"]
    argv = [*common, "-c", contestant.far_address, "-b", f"{gbps * 1e9 / streams:.0f}", "-P", str(streams),
            "-t", str(max(1, round(seconds)))]
    with serving(world, [*common, "-s"], PORT, udp=True) as server:
        text = client(world, argv, seconds)
        # The server says it a moment after the client has had its report.
        world.within(1, lambda: len(iperf_udp_reports(server.stdout)) >= streams)
        reports = iperf_udp_reports(server.stdout)
    if len(reports) != streams:
        reports = iperf_udp_reports(text)
    if len(reports) != streams or any(r.seconds == 0 or r.sent == 0 for r in reports):
        raise LoadFailed(f"{len(reports)} reports of {streams} streams")
    return Seen(sent=sum(8e-9 * payload * r.sent / r.seconds for r in reports),
                received=sum(8e-9 * payload * r.received / r.seconds for r in reports),
                loss=100 * sum(r.lost for r in reports) / sum(r.sent for r in reports))
