"""Medians, intervals, goals. Every ratio is taken within a round."""

import statistics

ENOUGH = 6  # values, for an interval that holds the median with 95 %


def median_interval(values):
    """The median and the order statistics that hold it with 95 % (binomial, no assumption on shape).

    Fewer than ENOUGH values can't hold it so surely: then it is all of them.
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


def paired_ratios(above, below):
    """Of two {round: value}, where a round has both."""
    return [above[i] / below[i] for i in sorted(set(above) & set(below)) if below[i]]


def judged(name, values, wanted, at_most=False, by="median"):
    """An entry of "goals": the values' median, or one end of its interval ("low", "high"), against what is wanted.

    "pairs": how many values there were; fewer than ENOUGH have no interval of 95 %.
    """
    goal = {"name": name, "value": None, "interval": None, "pairs": len(values), "goal": wanted, "at_most": at_most}
    if not values:
        return goal | {"met": False}
    value, interval = median_interval(values)
    deciding = {"median": value, "low": interval[0], "high": interval[1]}[by]
    return goal | {
        "value": round(value, 4),
        "interval": [round(x, 4) for x in interval],
        "met": deciding <= wanted if at_most else deciding >= wanted,
    }


class Figures:
    """Rows, asked for by what they are of."""

    def __init__(self, rows):
        self.rows = rows

    def where(self, contestant=None, metric=None, **setting):
        return [
            r
            for r in self.rows
            if contestant in (None, r["contestant"])
            and metric in (None, r["metric"])
            and all(r["setting"].get(key) == value for key, value in setting.items())
        ]

    def by_round(self, contestant, metric, **setting):
        """{round: value} of the measurements that succeeded."""
        return {r["round"]: r["value"] for r in self.where(contestant, metric, **setting) if r["value"] is not None}

    def best(self, contestants, metric, more_is_better, **setting):
        """The one with the better median in this setting, or None."""
        medians = {
            c: statistics.median(v.values()) for c in contestants if (v := self.by_round(c, metric, **setting))
        }
        return (max if more_is_better else min)(medians, key=medians.get) if medians else None

    def values_of(self, key):
        """Of a key of the settings, in the order of their first row."""
        return list(dict.fromkeys(r["setting"][key] for r in self.rows if key in r["setting"]))
