"""Programs that speak verbs themselves, of perftest and over rsockets. They run where the devices are: role "verbs"."""

import os
import re

from bench.contestants.verbs import PRELOAD
from bench.loads import LoadFailed, load
from bench.world import command

MESSAGE = 65536
PORT = 18600


def _both(world, argv, seconds):
    """The same program on both sides; the client's output."""
    server = world.start("b", [*argv, "-d", world.rdma_device["b"]], role="verbs")
    if not world.within(5, lambda: command("ss", "-Hltn", f"sport = :{PORT}").strip()):
        raise LoadFailed(f"{argv[0]}: no server: {server.last_words()}")
    client = world.run(
        "a", [*argv, "-d", world.rdma_device["a"], world.underlay_address["b"]], timeout=seconds + 20, role="verbs"
    )
    server.stop()
    if client.status != 0:
        raise LoadFailed(f"{argv[0]}: {client.last_words()}")
    return client.stdout


def _line(text, size):
    """The line of figures for messages of `size` bytes."""
    for line in text.splitlines():
        words = line.split()
        if words and words[0] == str(size):
            return words
    raise LoadFailed("no line of figures")


@load("tcp_stream_1")
def ib_send_bw(world, contestant, seconds):
    """What the verbs below ipoverbs can do: its figure stands beside TCP's."""
    text = _both(
        world,
        ["ib_send_bw", "-F", "-x", "1", "-s", str(MESSAGE), "-D", str(seconds), "-p", str(PORT), "--report_gbits"],
        seconds,
    )
    gbps = float(_line(text, MESSAGE)[3])
    if gbps == 0:
        raise LoadFailed("ib_send_bw: it was too short a time to measure anything")
    return {"tcp_stream_1": gbps}


@load("tcp_rr")
def ib_send_lat(world, contestant, seconds):
    """It prints half of a round trip: here it is a whole one."""
    text = _both(world, ["ib_send_lat", "-F", "-x", "1", "-s", "2", "-D", str(seconds), "-p", str(PORT)], seconds)
    return {"tcp_rr": 2 * float(_line(text, 2)[2])}


@load("tcp_stream_1")
def rsockets_stream(world, contestant, seconds):
    near, far = (world.underlay_address[side] for side in "ab")
    env = os.environ | {"LD_PRELOAD": PRELOAD}
    server = world.start("b", ["iperf", "-s", "-B", far], role="verbs", env=env)
    world.within(2, lambda: False)  # it listens on no socket that could be seen
    client = world.run(
        "a",
        ["iperf", "-c", far, "-B", near, "-t", str(seconds), "-f", "m", "-l", str(MESSAGE)],
        timeout=seconds + 20,
        role="verbs",
        env=env,
    )
    server.stop()
    found = re.findall(r"([\d.]+) Mbits/sec", client.stdout)
    if client.status != 0 or not found:
        raise LoadFailed(f"iperf over rsockets: {client.last_words()}")
    return {"tcp_stream_1": float(found[-1]) / 1000}
