"""The checksum library by itself: bench/csum's program, its rounds and its goals."""

import json
import pathlib
import subprocess
import tempfile

from bench.progress import say
from bench.stats import judged, paired_ratios
from bench.table import Curves, Table

FROM_1500 = (1500, 4096, 9000, 16384, 65520)
ALL = (20, 64, 256, *FROM_1500)
# Above, below, temperature, sizes, at least.
GOALS = (
    ("fused", "memcpy", "hot", (64, 256), 1.0),
    ("fused", "memcpy", "hot", FROM_1500, 0.9),
    ("fused", "memcpy", "cold", ALL, 1.0),
    ("fused", "memcpy-then-sum", "hot", (256, 1500, 4096, 9000, 16384), 1.6),
    ("sum", "scalar", "hot", FROM_1500, 3.5),
    ("sum", "rte_raw_cksum", "hot", FROM_1500, 1.2),
)


def measure(session):
    program = session.build / "release/bench/csum/bench_csum"
    say("csum: the library alone")
    with tempfile.TemporaryDirectory(prefix="ipov-bench-") as folder:
        path = pathlib.Path(folder, "csum.json")
        words = ["--quick"] if session.options.quick else ["--rounds", str(session.rounds())]
        done = subprocess.run([program, *words, "--json", path], stdout=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{program} ended with status {done.returncode}")
        rows = [{**row, "probe": None} for row in json.loads(path.read_text())["tables"]["csum"]["rows"]]
    absent = {name for above, below, *_ in GOALS for name in (above, below)} - {row["contestant"] for row in rows}
    return rows, [
        {"contestant": name, "setting": {}, "reason": "it was not built: libdpdk-dev is not installed"}
        for name in sorted(absent)
    ]


def goals(figures):
    return [
        judged(
            f"{above} / {below}, {temperature}, {size} bytes",
            paired_ratios(
                figures.by_round(above, "gb_per_s", size=size, temperature=temperature),
                figures.by_round(below, "gb_per_s", size=size, temperature=temperature),
            ),
            wanted,
        )
        for above, below, temperature, sizes, wanted in GOALS
        for size in sizes
    ]


def panels(figures):
    result = []
    for temperature in figures.values_of("temperature"):
        curves = {}
        for row in figures.where(temperature=temperature):
            curves.setdefault(row["contestant"], {}).setdefault(row["setting"]["size"], {})[row["round"]] = row[
                "value"
            ]
        result.append(
            Curves(f"Speed by size of one call; {temperature}", "GB/s", "bytes of one call", curves, x_log=True)
        )
    return result


TABLE = Table(
    "csum",
    "The checksum library",
    "Summing (RFC 1071), copying, and both at once, on one processor, hot and cold, beside memcpy, memcpy "
    "followed by a sum, a scalar loop and DPDK's rte_raw_cksum. GB/s of CPU time.",
    lambda options: [],
    goals,
    panels,
    measure=measure,
)
