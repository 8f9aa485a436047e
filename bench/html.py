"""The report as one HTML file: nothing from the network, readable in light and dark."""

import itertools
import pathlib
from html import escape

from bench.svg import bars_svg, curves_svg
from bench.table import Bars
from bench.text import interval_words, missing_line, number, setup_lines, versions

KINDS = {
    "ipoverbs": "ours",
    "copy1": "bound",
    "ring2": "bound",
    "ib_send_bw": "bound",
    "ib_send_lat": "bound",
    "vxlan": "kernel",
    "veth": "kernel",
}

STYLE = pathlib.Path(__file__).with_name("report.css").read_text(encoding="ascii")

KEY = (
    '<p class="key dim"><span class="ours"></span>ipoverbs<span class="other"></span>other tunnels, or another setting'
    '<span class="bound"></span>bounds<span class="kernel"></span>the kernel alone'
    " &nbsp; bar: median; dots: rounds; line: least to most</p>"
)


def _goals(goals):
    if not goals:
        return ""
    lines = []
    for g in goals:
        interval = interval_words(g) if g["interval"] else "not measured"
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
    return f"<figure><h4>{escape(panel.title)}</h4>{drawing}</figure>"


def _groups(panels):
    """Panels that follow each other in one group, under its heading."""
    for group, members in itertools.groupby(panels, key=lambda p: p.group):
        heading = f"<h3>{escape(group)}</h3>" if group else ""
        yield f"{heading}<div class=plots>{''.join(map(_panel, members))}</div>"


def _section(table, panels, content):
    yield f"<h2 id={table.name}>{escape(table.name)}: {escape(table.title)}</h2><p>{escape(table.text)}</p>"
    yield f"<p class=dim>{'<br>'.join(map(escape, setup_lines(content)))}</p>"
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
    goals = [g for _, _, content in sections for g in content["goals"]]
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>ipoverbs, measured</title><style>{STYLE}</style>",
        f"<h1>ipoverbs, measured</h1><p>{escape(report['machine'])}, Linux {escape(report['kernel'])}, commit "
        f"{escape(report['commit'])}.</p><p class=dim>{escape(versions(report))}</p>",
        f"<p>{sum(g['met'] for g in goals)} of {len(goals)} goals are met. Tables: ",
        ", ".join(f"<a href=#{t.name}>{escape(t.name)}</a>" for t, _, _ in sections) + ".</p>",
    ]
    for section in sections:
        parts += _section(*section)
    return "\n".join(parts) + "</html>\n"
