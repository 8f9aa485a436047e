"""The report as one HTML file: nothing from the network, readable in light and dark."""

import itertools
from html import escape

from bench.svg import bars_svg, curves_svg
from bench.table import Bars
from bench.text import missing_line, number, numbers, rounds

KINDS = {
    "ipoverbs": "ours",
    "copy1": "bound",
    "ring2": "bound",
    "ib_send_bw": "bound",
    "ib_send_lat": "bound",
    "vxlan": "kernel",
    "veth": "kernel",
}

STYLE = """
:root { --back: #fff; --text: #1d2330; --dim: #5a6475; --line: #dfe3ea; --ours: #1f6feb; --other: #9aa5b5; --bound: #c9922e;
  --kernel: #4d9e73; --good: #1a7f4b; --bad: #c0392b; --spread: #1d2330; --c0: #1f6feb; --c1: #d9822b; --c2: #2f9e69; --c3: #a44fc2;
  --c4: #c0392b; --c5: #1795a8; --c6: #8a7a2f; --c7: #6b7688; }
@media (prefers-color-scheme: dark) { :root { --back: #14171d; --text: #e6e9ef; --dim: #9aa5b5; --line: #2d333e; --ours: #58a6ff;
  --other: #667084; --bound: #d6a54a; --kernel: #5fb587; --good: #4cc38a; --bad: #ff7b6b; --spread: #e6e9ef; --c0: #58a6ff; --c1: #f0a050;
  --c2: #4cc38a; --c3: #c88be0; --c4: #ff7b6b; --c5: #3fc1d4; --c6: #c9b458; --c7: #9aa5b5; } }
body { background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif; max-width: 1500px; margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.35rem; margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 1.2rem; }
h3 { font-size: 1.08rem; margin: 2rem 0 0; } h4 { font-size: 0.92rem; font-weight: 600; margin: 0 0 0.3rem; }
a { color: var(--ours); } p, li { max-width: 75ch; } .dim { color: var(--dim); font-size: 0.88rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(400px, 1fr)); gap: 1.4rem 2rem; margin-top: 1rem; }
svg { width: 100%; max-width: 560px; height: auto; } svg text { fill: var(--text); font: 11.5px system-ui, sans-serif; }
svg .tick { fill: var(--dim); font-size: 11px; } svg .value { font-weight: 600; } svg .grid { stroke: var(--line); }
svg .spread { stroke: var(--spread); stroke-opacity: 0.55; stroke-width: 1; } svg .round { fill: var(--spread); fill-opacity: 0.5; }
.ours { fill: var(--ours); background: var(--ours); } .other { fill: var(--other); background: var(--other); }
.bound { fill: var(--bound); background: var(--bound); } .kernel { fill: var(--kernel); background: var(--kernel); }
svg polyline { fill: none; stroke-width: 2; }
table { border-collapse: collapse; font-size: 0.9rem; } td, th { padding: 0.2rem 0.9rem 0.2rem 0; text-align: left; border-bottom: 1px solid var(--line); }
td.n { text-align: right; font-variant-numeric: tabular-nums; } .met { color: var(--good); font-weight: 600; } .missed { color: var(--bad); font-weight: 600; }
.key span { display: inline-block; width: 0.8em; height: 0.8em; border-radius: 2px; margin: 0 0.35em 0 1em; }
""" + "".join(
    f".c{i} {{ fill: var(--c{i}); }} .l{i} {{ stroke: var(--c{i}); }}\n" for i in range(8)
)

KEY = (
    '<p class="key dim"><span class="ours"></span>ipoverbs<span class="other"></span>other tunnels, or another setting'
    '<span class="bound"></span>bounds<span class="kernel"></span>the kernel alone &nbsp; bar: median; dots: rounds; line: least to most</p>'
)


def _goals(goals):
    if not goals:
        return ""
    lines = []
    for g in goals:
        interval = f"{number(g['interval'][0])} .. {number(g['interval'][1])}" if g["interval"] else "not measured"
        lines.append(
            f"<tr><td>{escape(g['name'])}</td><td class=n>{number(g['value'])}</td><td class=n>{interval}</td>"
            f"<td class=n>{'at most' if g.get('at_most') else 'at least'} {number(g['goal'])}</td>"
            f"<td class={'met>met' if g['met'] else 'missed>missed'}</td></tr>"
        )
    return (
        "<table><tr><th>goal</th><th>median</th><th>95 % interval</th><th>wanted</th><th></th></tr>"
        + "".join(lines)
        + "</table>"
    )


def _panel(panel):
    if isinstance(panel, Bars):
        drawing = bars_svg(panel, lambda label: KINDS.get(label, "ours" if label == panel.reference else "other"))
    else:
        drawing = curves_svg(panel)
    return f"<figure style='margin:0'><h4>{escape(panel.title)}</h4>{drawing}</figure>"


def _groups(panels):
    """Panels that follow each other in one group, under its heading."""
    for group, members in itertools.groupby(panels, key=lambda p: p.group):
        heading = f"<h3>{escape(group)}</h3>" if group else ""
        yield f"{heading}<div class=plots>{''.join(map(_panel, members))}</div>"


def _section(table, panels, content):
    setup = content["setup"]
    yield f"<h2 id={table.name}>{escape(table.name)}: {escape(table.title)}</h2><p>{escape(table.text)}</p>"
    few = " Fewer than six rounds hold no 95 % interval: it is the least and the most." if setup["rounds"] < 6 else ""
    yield (
        f"<p class=dim>{escape(setup['machine'])}, Linux {escape(setup['kernel'])}, commit {escape(setup['commit'])}, device "
        f"{escape(setup['device'])}, underlay MTU {escape(numbers(setup['underlay_mtus']))}. {rounds(setup)} of {setup['seconds']} s, CPU time by "
        f"{escape(setup['accounting'])}.{few}</p>"
    )
    yield _goals(content["goals"])
    if content["missing"]:
        yield "<p>Missing:</p><ul>" + "".join(
            f"<li>{escape(missing_line(gap))}</li>" for gap in content["missing"]
        ) + "</ul>"
    if any(isinstance(p, Bars) for p in panels):
        yield KEY
    yield from _groups(panels)


def page(report, sections):
    """`sections`: (Table, panels, content) of each table."""
    versions = ", ".join(f"{name} {v}" for name, v in sorted(report["versions"].items()))
    goals = [g for _, _, content in sections for g in content["goals"]]
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>ipoverbs, measured</title><style>{STYLE}</style>",
        f"<h1>ipoverbs, measured</h1><p>{escape(report['machine'])}, Linux {escape(report['kernel'])}, commit "
        f"{escape(report['commit'])}.</p><p class=dim>{escape(versions)}</p>",
        f"<p>{sum(g['met'] for g in goals)} of {len(goals)} goals are met. Tables: ",
        ", ".join(f"<a href=#{t.name}>{escape(t.name)}</a>" for t, _, _ in sections) + ".</p>",
    ]
    for section in sections:
        parts += _section(*section)
    return "\n".join(parts) + "</html>\n"
