"""The report as text: what of a table a terminal can show."""

import statistics

from bench.stats import ENOUGH, median_interval, paired_ratios
from bench.table import Bars, better


def number(value):
    """Four digits that count, without an exponent."""
    if value is None:
        return "-"
    if value == 0 or abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.4g}" if abs(value) >= 0.001 else f"{value:.1e}"


def numbers(values):
    return ", ".join(map(str, values)) or "none"


def rounds(setup):
    return "1 round" if setup["rounds"] == 1 else f"{setup['rounds']} rounds"


def interval_words(goal):
    """Of a goal that was measured; how many pairs it rests on, where they are too few."""
    few = f" ({goal['pairs']} pair{'s' if goal['pairs'] > 1 else ''})" if goal["pairs"] < ENOUGH else ""
    return f"{number(goal['interval'][0])} .. {number(goal['interval'][1])}{few}"


def goal_line(goal):
    if goal["value"] is None:
        return f"MISSED {goal['name']}: not measured"
    interval = f" [{interval_words(goal)}]"
    wanted = f"{'at most' if goal.get('at_most') else 'at least'} {number(goal['goal'])}"
    return f"{'met   ' if goal['met'] else 'MISSED'} {goal['name']}: {number(goal['value'])}{interval}, {wanted}"


def missing_line(gap):
    what = ", ".join(f"{key} {gap[key]}" for key in ("contestant", "load") if gap.get(key))
    where = "".join(f", {key} {value}" for key, value in (gap.get("setting") or {}).items())
    return f"{what}{where}: {gap['reason']}"


def _bars(panel):
    yield f"  {panel.title} ({panel.unit}, {better(panel.unit)})"
    reference = next((line for line in panel.lines if line.label == panel.reference), None)
    for line in panel.lines:
        values = line.values.values()
        text = f"    {line.label:15} {line.note:10} {number(statistics.median(values)):>9}   "
        text += f"{f'{number(min(values))} .. {number(max(values))}':22}"
        ratios = paired_ratios(reference.values, line.values) if reference and line is not reference else []
        if ratios:
            value, (low, high) = median_interval(ratios)
            text += f"  {panel.reference} / it: {number(value)} [{number(low)} .. {number(high)}]"
        yield text.rstrip()


def _curves(panel):
    yield f"  {panel.title} ({panel.unit})"
    xs = sorted({x for curve in panel.curves.values() for x in curve})
    yield f"    {panel.x_label:>28}" + "".join(f"{number(x):>10}" for x in xs)
    for label, curve in panel.curves.items():
        cells = (number(statistics.median(curve[x].values())) if curve.get(x) else "-" for x in xs)
        yield f"    {label:>28}" + "".join(f"{cell:>10}" for cell in cells)
        if any(len(values) > 1 for values in curve.values()):
            for word, end in (("least", min), ("most", max)):
                cells = (number(end(curve[x].values())) if curve.get(x) else "-" for x in xs)
                yield f"    {word:>28}" + "".join(f"{cell:>10}" for cell in cells)


def versions(holder):
    return ", ".join(f"{name} {v}" for name, v in sorted(holder["versions"].items()))


def setup_lines(content):
    """Where and how a table was measured; and its part in the guest, if it has one."""
    for setup in filter(None, (content["setup"], content.get("setup_guest"))):
        few = "; so few hold no 95 % interval: it is all of them" if setup["rounds"] < ENOUGH else ""
        yield f"{setup['machine']}, Linux {setup['kernel']}, commit {setup['commit']}, device {setup['device']}"
        yield (
            f"{rounds(setup)} of {setup['seconds']} s{few}; CPU time by {setup['accounting']}; "
            f"underlay MTU {numbers(setup['underlay_mtus'])}; overlay MTU {numbers(setup['overlay_mtus'])}"
        )
        yield "offloads: " + "; ".join(f"{name} {what}" for name, what in setup["offloads"].items())


def table_text(table, panels, content):
    rows = content["rows"]
    yield f"{table.name}: {table.title}"
    yield from (f"  {line}" for line in setup_lines(content))
    yield f"  {versions(content['setup'])}"
    probes = [r["probe"] for r in rows if r.get("probe")]
    if probes:
        yield f"  probe, CPU to CPU: {number(statistics.median(probes))} GB/s, {min(probes)} .. {max(probes)}"
    for gap in content["missing"]:
        yield f"  missing: {missing_line(gap)}"
    failed = sum(r["value"] is None for r in rows)
    if failed:
        yield f"  {failed} of {len(rows)} values failed; they count nowhere"
    group = ""
    for panel in panels:
        if panel.group != group:
            group = panel.group
            yield f"  -- {group} --"
        yield from _bars(panel) if isinstance(panel, Bars) else _curves(panel)
    yield "  goals:"
    for goal in content["goals"]:
        yield f"    {goal_line(goal)}"
