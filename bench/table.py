"""What a table of the benchmark declares: its arms, its goals, and what its report shows.

A table is a module of tables/ with an instance of `Table` called TABLE:

    arms(options)     what is measured: a list of `Arm`. Each round runs all of them in a new order.
    goals(figures)    the entries of "goals", by stats.judged
    panels(figures)   what is shown: `Bars` and `Curves`; text and HTML are made of the same
"""

from dataclasses import dataclass, field
from typing import Callable

CPU_METRICS = (
    "daemon_cpu",
    "daemon_cpu_send",
    "daemon_cpu_receive",
    "service_demand",
    "service_demand_send",
    "service_demand_receive",
)


@dataclass
class Call:
    """One load of an arm. `setting` is added to the arm's in the rows."""

    load: str
    parameters: dict = field(default_factory=dict)
    setting: dict = field(default_factory=dict)
    keep: tuple = ()  # the metrics to record; empty: all that the load may return


@dataclass
class Arm:
    """A contestant, started anew with a setting, and loads, one after the other.

    Arms of one `block` follow each other within a round, so that ratios among them are of neighbours.
    `watch`, if any, is called with the contestant and the world before and after each load, and adds to the load's
    metrics: see tables/batch.py.
    """

    contestant: str
    setting: dict
    calls: list
    block: object = None
    watch: Callable = None
    started: bool = False  # the runner's: it did once
    failures: int = 0  # and how often it should have, and did not

    def row_setting(self, call, world_mtu):
        return {"underlay_mtu": world_mtu, **self.setting, **call.setting}


# Units of which less is better; of the others, more.
LESS_IS_BETTER = ("us", "us/KB", "s/s", "%", "ns", "MB", "queue pairs")


@dataclass
class Line:
    label: str
    values: dict  # {round: value}
    note: str = ""


@dataclass
class Bars:
    """One metric in one setting, a bar for each line; ratios are those of the reference line to each other line.

    Panels of one `group` stand together under it.
    """

    title: str
    unit: str
    lines: list
    reference: str = None
    group: str = ""

    def has_values(self):
        return bool(self.lines)


@dataclass
class Curves:
    """One metric over a number: {label: {x: {round: value}}}."""

    title: str
    unit: str
    x_label: str
    curves: dict
    x_log: bool = False
    bars: bool = False  # a histogram: columns, not a line
    group: str = ""

    def __post_init__(self):
        """What was not measured is not there."""
        filled = {label: {x: values for x, values in curve.items() if values} for label, curve in self.curves.items()}
        self.curves = {label: curve for label, curve in filled.items() if curve}

    def has_values(self):
        return bool(self.curves)


@dataclass
class Table:
    name: str
    title: str
    text: str  # what it settles, for the reader of the report
    arms: Callable
    goals: Callable
    panels: Callable
    seconds: int = 2  # of each load
    worlds: tuple = ("soft", "rxe")  # where it makes sense; the first is where "auto" runs it
    metrics: dict = field(default_factory=dict)  # of its own, beside loads.METRICS
    warm_up: bool = False  # a round before the first that counts
    measure: Callable = None  # (session): rows, and what is missing, of measurements that need no two hosts
    guest_part: str = None  # "auto" measures this part of it in the guest too: arms(options) looks at options.part


def bars(figures, title, metric, unit, contestants, reference=None, note=lambda c: "", group="", **setting):
    """Bars with a line for each contestant that has values."""
    lines = [Line(c, v, note(c)) for c in contestants if (v := figures.by_round(c, metric, **setting))]
    return Bars(title, unit, lines, reference, group)


def better(unit):
    return "less is better" if unit in LESS_IS_BETTER else "more is better"
