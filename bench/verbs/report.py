"""Rows of `script/bench verbs` to the benchmark JSON and a table.

    report.py ROWS META JSON

B = 1 / (1/V + 1/T) is what TCP over verbs can reach where both legs share the same CPUs: V, the verbs
alone; T, the kernel's TCP alone; R, rsockets. Every ratio is taken within a round, then the median.
"""

import json
import statistics
import sys


def median_interval(values):
    """The median and the order statistics that hold it with 95 % (binomial, no assumption on shape)."""
    ordered = sorted(values)
    n = len(ordered)
    below = 0.0
    k = 0
    probability = 0.5**n
    while below + probability <= 0.025 and k < n // 2:
        below += probability
        k += 1
        probability = probability * (n - k + 1) / k
    return statistics.median(ordered), [ordered[max(k - 1, 0)], ordered[n - 1 - max(k - 1, 0)]]


def by_round(rows, contestant, metric):
    return {
        r["round"]: r["value"]
        for r in rows
        if r["contestant"] == contestant and r["metric"] == metric and r["value"]
    }


def main():
    rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
    meta = json.load(open(sys.argv[2], encoding="utf-8"))
    stream = {c: by_round(rows, c, "tcp_stream_1") for c in ("ipoverbs", "ib_send_bw", "veth", "rsockets")}
    rr = {c: by_round(rows, c, "tcp_rr") for c in ("ipoverbs", "veth")}
    goals = []

    def goal(name, values, wanted, at_most=False):
        if not values:
            goals.append({"name": name, "value": None, "interval": None, "goal": wanted, "met": False})
            return
        value, interval = median_interval(values)
        met = value <= wanted if at_most else value >= wanted
        goals.append({"name": name, "value": round(value, 3), "interval": [round(x, 3) for x in interval],
                      "goal": wanted, "met": met})

    common = set.intersection(*(set(stream[c]) for c in ("ipoverbs", "ib_send_bw", "veth")))
    goal("O/B", [stream["ipoverbs"][i] * (1 / stream["ib_send_bw"][i] + 1 / stream["veth"][i])
                 for i in sorted(common)], 1.0)
    goal("O/R", [stream["ipoverbs"][i] / stream["rsockets"][i]
                 for i in sorted(set(stream["ipoverbs"]) & set(stream["rsockets"]))], 1.0)
    goal("tcp_rr, ipoverbs/kernel", [rr["ipoverbs"][i] / rr["veth"][i]
                                     for i in sorted(set(rr["ipoverbs"]) & set(rr["veth"]))], 2.2, at_most=True)
    for metric, unit, figures in (("TCP, one stream", "Gb/s", stream), ("TCP round trip", "us", rr)):
        print(f"{metric} ({unit}), median of {max((len(v) for v in figures.values()), default=0)} rounds:")
        for contestant, values in figures.items():
            if not values:
                print(f"  {contestant:12} missing")
                continue
            spread = f"{min(values.values()):.3f} .. {max(values.values()):.3f}"
            print(f"  {contestant:12} {statistics.median(values.values()):9.3f}   {spread}")
    for g in goals:
        interval = "" if g["interval"] is None else f" [{g['interval'][0]} .. {g['interval'][1]}]"
        print(f"  {g['name']:24} {g['value']}{interval}, goal {g['goal']}: {'met' if g['met'] else 'missed'}")
    print(f"  RNR NAKs in the whole run: {meta['rnr']}")
    report = {k: meta[k] for k in ("machine", "kernel", "versions", "commit", "device")}
    report["tables"] = {"verbs": {"rows": rows, "goals": goals}}
    json.dump(report, open(sys.argv[3], "w", encoding="utf-8"), indent=1)


main()
