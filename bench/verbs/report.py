"""Rows of `script/bench verbs` to the benchmark JSON and a table.

    report.py ROWS META JSON

B = 1 / (1/V + 1/T) is what TCP over verbs can reach where both legs share the same CPUs: V, the verbs
alone; T, the kernel's TCP alone; R, rsockets. Every ratio is taken within a round, then the median.
"""

import json
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from report_common import by_round, judged, paired_ratios, print_goals, whole_report  # noqa: E402


def main():
    rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
    meta = json.load(open(sys.argv[2], encoding="utf-8"))
    stream = {c: by_round(rows, c, "tcp_stream_1") for c in ("ipoverbs", "ib_send_bw", "veth", "rsockets")}
    rr = {c: by_round(rows, c, "tcp_rr") for c in ("ipoverbs", "veth")}
    common = set.intersection(*(set(stream[c]) for c in ("ipoverbs", "ib_send_bw", "veth")))
    goals = [
        judged("O/B", [stream["ipoverbs"][i] * (1 / stream["ib_send_bw"][i] + 1 / stream["veth"][i])
                       for i in sorted(common)], 1.0),
        judged("O/R", paired_ratios(stream["ipoverbs"], stream["rsockets"]), 1.0),
        judged("tcp_rr, ipoverbs/kernel", paired_ratios(rr["ipoverbs"], rr["veth"]), 2.2, at_most=True),
    ]
    for metric, unit, figures in (("TCP, one stream", "Gb/s", stream), ("TCP round trip", "us", rr)):
        print(f"{metric} ({unit}), median of {max((len(v) for v in figures.values()), default=0)} rounds:")
        for contestant, values in figures.items():
            if not values:
                print(f"  {contestant:12} missing")
                continue
            spread = f"{min(values.values()):.3f} .. {max(values.values()):.3f}"
            print(f"  {contestant:12} {statistics.median(values.values()):9.3f}   {spread}")
    print_goals(goals)
    print(f"  RNR NAKs in the whole run: {meta['rnr']}")
    report = whole_report(meta, "verbs", {"rows": rows, "goals": goals})
    json.dump(report, open(sys.argv[3], "w", encoding="utf-8"), indent=1)


main()
