"""Round trips of a ping: beside a TCP stream, and after silence."""

import time

from bench.loads import LoadFailed, load, netperf
from bench.loads.substitutes import IPERF3_PORT
from bench.loads.tools import client, has_netperf, ping_missing, serving
from bench.tool_output import percentile, ping_times

INTERVAL = 0.01
FEWEST = 200
LOST = 1e6  # us: what is not back within a second counts as a second
IDLE = 2.0  # s


@load("ping_p50_under_load", "ping_p99_under_load", missing=ping_missing)
def ping_under_load(world, contestant, seconds):
    count = max(FEWEST, round(seconds / INTERVAL))
    lasting = count * INTERVAL + 10
    server, port, argv = _stream(contestant, lasting)
    with serving(world, server, port):
        stream = world.start("a", argv, role="load")
        before = _received(world)
        if not world.within(5, lambda: _received(world) > before + 1e6):
            raise LoadFailed(f"the stream does not flow: {stream.last_words()}")
        text = client(world, ["ping", "-n", "-c", str(count), "-i", str(INTERVAL), "-W", "1", contestant.far_address],
                      count * INTERVAL)
        if stream.ended() is not None:
            raise LoadFailed(f"the stream ended before the pings: {stream.last_words()}")
    times = ping_times(text)
    values = [min(LOST, times.get(number, LOST)) for number in range(1, count + 1)]
    return {"ping_p50_under_load": percentile(values, 0.5), "ping_p99_under_load": percentile(values, 0.99)}


@load("ping_after_idle", missing=ping_missing)
def ping_after_idle(world, contestant, seconds):
    """The first ping after IDLE seconds without traffic."""
    time.sleep(IDLE)
    times = ping_times(client(world, ["ping", "-n", "-c", "1", "-W", "1", contestant.far_address], 1))
    return {"ping_after_idle": times.get(1, LOST)}


def _stream(contestant, seconds):
    """Of a stream of so many seconds: the server, its port, the client."""
    if has_netperf():
        return (netperf.server(contestant), netperf.PORT, netperf.stream(contestant, seconds))
    return (["iperf3", "--server", "-4"], IPERF3_PORT,
            ["iperf3", "-4", "--client", contestant.far_address, "--time", str(round(seconds)), "--length", "16384"])


def _received(world):
    """Bytes that TCP segments carried to side b, more or less: IP's count."""
    for line in world.command("b", "nstat", "-asz", "IpExtInOctets").splitlines():
        if line.startswith("IpExtInOctets"):
            return float(line.split()[1])
    return 0.0
