"""What verbs reach without us, over the same devices: programs that need no overlay."""

import os

from bench.contestants.base import Contestant, Refused
from bench.debian import install, version

PRELOAD = "/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so"


class Native(Contestant):
    """Nothing to start: its loads are the programs themselves, between the underlay's addresses."""

    needs_rdma = True
    offloads = "none (no TUN)"

    def up(self, world, setting):
        if world.device == "soft":
            raise Refused("it needs an RDMA device")

    def ready(self, world, setting):
        return True

    def down(self, world):
        world.stop_loads()


class Perftest(Native):
    name = "ib_send_bw"
    package = "perftest"
    program = "ib_send_bw"


class Rsockets(Native):
    name = "rsockets"

    def missing(self):
        return install("iperf") or (None if os.path.exists(PRELOAD) else f"there is no {PRELOAD}")

    def versions(self):
        return {"librdmacm1": version("librdmacm1")}
