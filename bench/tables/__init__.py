"""The tables, in the order of `script/bench all`; table.py describes what one is."""

import importlib

NAMES = ("mtu", "udp60k", "batch", "peers", "underlay", "verbs", "checksum", "scale", "csum")


def table(name):
    return importlib.import_module(f"{__name__}.{name}").TABLE
