"""Contestants: whatever carries IP packets between the two hosts of a world.

A contestant is a subclass of `Contestant` (base.py) in any module of this folder; its class attribute
`name` is its name in tables, JSON and report. A module is found by being here: nothing else is to be edited.

    class Socat(Contestant):
        name = "socat"
        package = "socat"                     # Debian's; None: nothing to install
        program = "socat"                     # looked for first; default: `package`

        def mtus(self, world, underlay_mtu):  # candidates for "max", the largest first
            return [65507, 8900, 1472]

        def up(self, world, setting):         # both sides; raises Failed("why"), Refused("why")
            for side in SIDES:
                world.start(side, ["socat", ...])

What the base class offers, to be overridden where it doesn't fit:

    missing()                 why it can't be had here, or None; installs `package` where that helps. Called once
                              before the first round; a reason goes to "missing" of the report.
    largest_mtu(world, underlay_mtu)
                              the largest of mtus() that a ping of full size crosses; Failed if there is none
    up(world, setting)        starts it. `setting` is the arm's: "underlay_mtu" (the world has it already),
                              "overlay_mtu" in bytes always, and whatever else the table varies ("superpackets",
                              "batching", "workers", ...); a key that isn't there means the default.
                              It need not wait until packets cross: the runner does (`reaches`).
                              Raises Refused where the setting can't be had at all ("no offloads"): the arm is
                              then listed as missing; Failed where it should have worked.
    ready(world, setting)     a ping that fills the MTU crossed (the runner calls it until the deadline)
    down(world)               ends it, leaves nothing behind; the base class ends all daemons of the world,
                              and waits for its TUN interfaces to go
    far_address, near_address what is measured to (on side b) and from (on side a): the overlay's addresses
    versions()                {program: version} for the report

Sides are "a", which sends, and "b", which receives. Daemons are started by `world.start(side, argv)`, so that
their CPU time is accounted to (side, "daemon") and they can't outlive the run. There are no pids to give: the
world knows what it started.
"""

import importlib
import pkgutil

from bench.contestants.base import Contestant, Failed, Refused  # noqa: F401


def every():
    """{name: class} of all contestants."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return {c.name: c for c in _leaves(Contestant) if c.name}


def _leaves(base):
    for c in base.__subclasses__():
        yield c
        yield from _leaves(c)
