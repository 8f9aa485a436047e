"""Rows of `script/bench peers` to the benchmark JSON and a table.

    report.py ROWS MISSING META [JSON]

Every ratio is ipoverbs to another contestant within a round, then the median. The best of a setting is the
better median of the user-space tunnels; veth, the kernel alone, is only printed beside them.
"""

import json
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from report_common import by_round, judged, median_interval, paired_ratios, print_goals, whole_report  # noqa: E402

METRICS = (("tcp_stream_1", "TCP, one stream, Gb/s", max), ("tcp_rr", "TCP round trip, us", min))
TUNNELS = ("openvpn", "socat")
CONTESTANTS = ("ipoverbs", *TUNNELS, "veth")
# Judged at underlay MTU 9000: metric, overlay MTU, what is wanted of ipoverbs / best, at most.
GOALS = (
    ("tcp_stream_1", 1500, 10.0, False),
    ("tcp_stream_1", "max", 1.0, False),
    ("tcp_rr", 1500, 0.9, True),
    ("tcp_rr", "max", 0.9, True),
)


def in_setting(rows, underlay, overlay):
    return [r for r in rows if r["setting"]["underlay_mtu"] == underlay and r["setting"]["overlay_mtu"] == overlay]


def best_tunnel(rows, metric, better):
    medians = {c: statistics.median(v.values()) for c in TUNNELS if (v := by_round(rows, c, metric))}
    return better(medians, key=medians.get) if medians else None


def goals_of(rows):
    better = {metric: chooses for metric, _, chooses in METRICS}
    goals = []
    for metric, overlay, wanted, at_most in GOALS:
        cell = in_setting(rows, 9000, overlay)
        best = best_tunnel(cell, metric, better[metric])
        ratios = paired_ratios(by_round(cell, "ipoverbs", metric), by_round(cell, best, metric))
        goals.append(judged(f"{metric}, underlay 9000, overlay {overlay}: ipoverbs/{best or 'best'}",
                            ratios, wanted, at_most))
    return goals


def print_cell(rows, metric, text):
    ours = by_round(rows, "ipoverbs", metric)
    print(f"  {text:22} overlay MTU    median   from .. to            ipoverbs to it [95 %]")
    for contestant in CONTESTANTS:
        values = by_round(rows, contestant, metric)
        if not values:
            print(f"    {contestant:20} missing")
            continue
        mtu = next(r["setting"]["overlay_mtu_bytes"] for r in rows if r["contestant"] == contestant)
        spread = f"{min(values.values()):.3f} .. {max(values.values()):.3f}"
        line = f"    {contestant:20} {mtu:11} {statistics.median(values.values()):9.3f}   {spread:20}"
        ratios = paired_ratios(ours, values)
        if contestant != "ipoverbs" and ratios:
            value, interval = median_interval(ratios)
            line += f"  {value:.3f} [{interval[0]:.3f} .. {interval[1]:.3f}]"
        print(line)


def print_report(rows, missing, meta, goals):
    versions = ", ".join(f"{v if k == 'ipoverbs' else k + ' ' + v}" for k, v in meta["versions"].items())
    rounds = max((r["round"] for r in rows), default=0)
    print(f"peers: {meta['machine']}, Linux {meta['kernel']}, commit {meta['commit']}\n  {versions}")
    print(f"  device of ipoverbs: {meta['device']}; its TUN has super-packets (offloads on), the others' none")
    print(f"  {rounds} rounds" + ("; intervals are from the least to the most, six rounds are the fewest for 95 %"
                                  if rounds < 6 else ""))
    probes = [r["probe"] for r in rows if r["probe"]]
    if probes:
        print(f"  probe (CPU to CPU): median {statistics.median(probes)} GB/s, {min(probes)} .. {max(probes)}")
    for gap in missing:
        where = f", underlay MTU {gap['setting']['underlay_mtu']}" if gap["setting"] else ""
        print(f"  missing: {gap['contestant']}{where}: {gap['reason']}")
    for underlay in (1500, 9000):
        for overlay in (1500, "max"):
            print(f"underlay MTU {underlay}, overlay MTU {overlay}:")
            for metric, text, _ in METRICS:
                print_cell(in_setting(rows, underlay, overlay), metric, text)
    failed = sum(r["value"] is None for r in rows)
    if failed:
        print(f"  {failed} of {len(rows)} measurements failed; they count nowhere")
    print("goals:")
    print_goals(goals, width=56)


def main():
    rows, missing = ([json.loads(line) for line in open(path, encoding="utf-8")] for path in sys.argv[1:3])
    meta = json.load(open(sys.argv[3], encoding="utf-8"))
    goals = goals_of(rows)
    print_report(rows, missing, meta, goals)
    if len(sys.argv) > 4:
        content = {"rows": rows, "goals": goals, "missing": missing}
        with open(sys.argv[4], "w", encoding="utf-8") as file:
            json.dump(whole_report(meta, "peers", content), file, indent=1)


main()
