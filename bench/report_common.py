"""What the reports of script/bench share: medians, intervals, goals. Every ratio is taken within a round."""

import statistics


def median_interval(values):
    """The median and the order statistics that hold it with 95 % (binomial, no assumption on shape).

    Fewer than six values can't hold it so surely: then it is all of them.
    """
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


def paired_ratios(above, below):
    """Of two results of by_round, where a round has both."""
    return [above[i] / below[i] for i in sorted(set(above) & set(below))]


def judged(name, values, wanted, at_most=False):
    """An entry of "goals": the median of the values against what is wanted."""
    if not values:
        return {"name": name, "value": None, "interval": None, "goal": wanted, "met": False}
    value, interval = median_interval(values)
    return {"name": name, "value": round(value, 3), "interval": [round(x, 3) for x in interval],
            "goal": wanted, "met": value <= wanted if at_most else value >= wanted}


def print_goals(goals, width=24):
    for g in goals:
        interval = "" if g["interval"] is None else f" [{g['interval'][0]} .. {g['interval'][1]}]"
        print(f"  {g['name']:{width}} {g['value']}{interval}, goal {g['goal']}: {'met' if g['met'] else 'missed'}")


def whole_report(meta, table, content):
    report = {k: meta[k] for k in ("machine", "kernel", "versions", "commit", "device")}
    report["tables"] = {table: content}
    return report
