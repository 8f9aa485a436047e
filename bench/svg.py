"""Plots as SVG, to stand in an HTML page whose style sheet colours them (html.py): axes, units, legends."""

import math
import statistics
from html import escape

from bench.table import better
from bench.text import number

WIDTH = 460
BAR, GAP = 15, 6
CURVE_HEIGHT = 250


def nice_ticks(top, wanted=4):
    """From 0 to at least `top`, at 1, 2 or 5 times a power of ten."""
    if top <= 0:
        return [0, 1]
    raw = top / wanted
    power = 10 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    return [i * step for i in range(math.ceil(top / step - 1e-9) + 1)]


def _text(x, y, text, anchor="start", css=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{f" class={css!r}" if css else ""}>{escape(text)}</text>'


def _svg(height, parts, label):
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(label, quote=True)}">'
        + "".join(parts)
        + "</svg>"
    )


def bars_svg(panel, kind_of):
    """`kind_of(label)` is the CSS class of a bar. The dots are the rounds, the line goes from the least to the most."""
    left, right, top = 172, 62, 4
    plot = WIDTH - left - right
    ticks = nice_ticks(max(max(line.values.values()) for line in panel.lines))
    scale = plot / ticks[-1]
    bottom = top + len(panel.lines) * (BAR + GAP)
    parts = []
    for tick in ticks:
        x = left + tick * scale
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>')
        parts.append(_text(x, bottom + 13, number(tick), "middle", "tick"))
    parts.append(_text(left + plot / 2, bottom + 28, f"{panel.unit}; {better(panel.unit)}", "middle", "tick"))
    for i, line in enumerate(panel.lines):
        parts += _bar(line, kind_of(line.label), left, top + i * (BAR + GAP) + GAP / 2, scale)
    return _svg(bottom + 34, parts, f"{panel.title}, {panel.unit}")


def _bar(line, kind, left, y, scale):
    values = list(line.values.values())
    median, low, high = statistics.median(values), min(values), max(values)
    middle = y + BAR / 2
    note = f" ({line.note})" if line.note else ""
    yield _text(left - 6, middle + 4, line.label + note, "end", "label")
    yield f'<rect class="{kind}" x="{left}" y="{y:.1f}" width="{max(median * scale, 0.8):.1f}" height="{BAR}" rx="2"/>'
    if len(values) > 1:
        yield f'<line class="spread" x1="{left + low * scale:.1f}" x2="{left + high * scale:.1f}" y1="{middle}" y2="{middle}"/>'
        for value in values:
            yield f'<circle class="round" cx="{left + value * scale:.1f}" cy="{middle}" r="1.6"/>'
    yield _text(left + high * scale + 5, middle + 4, number(median), "start", "value")


def curves_svg(panel):
    left, right, top = 68, 14, 22 * math.ceil(len(panel.curves) / 2) + 6
    plot, height = WIDTH - left - right, CURVE_HEIGHT
    medians = {
        label: {x: statistics.median(v.values()) for x, v in sorted(curve.items())}
        for label, curve in panel.curves.items()
    }
    xs = sorted({x for curve in medians.values() for x in curve})
    ticks = nice_ticks(max(y for curve in medians.values() for y in curve.values()))
    to_y = lambda y: top + height * (1 - y / ticks[-1])  # noqa: E731
    axis = panel.unit if panel.bars else f"{panel.unit}; {better(panel.unit)}"
    to_x = _placer(xs, panel.x_log, panel.bars, left, plot)
    parts = list(_legend(list(medians), left))
    for tick in ticks:
        parts.append(
            f'<line class="grid" x1="{left}" x2="{left + plot}" y1="{to_y(tick):.1f}" y2="{to_y(tick):.1f}"/>'
        )
        parts.append(_text(left - 6, to_y(tick) + 4, number(tick), "end", "tick"))
    parts += _x_axis(xs, to_x, top + height)
    parts.append(_text(left + plot / 2, top + height + 30, panel.x_label, "middle", "tick"))
    parts.append(
        f'<text class="tick" text-anchor="middle" transform="translate(10 {top + height / 2:.0f}) rotate(-90)">{escape(axis)}</text>'
    )
    for i, (label, curve) in enumerate(medians.items()):
        parts += (
            _columns(curve, i, len(medians), to_x, to_y, plot / max(len(xs), 1))
            if panel.bars
            else _curve(curve, panel.curves[label], i, to_x, to_y)
        )
    return _svg(top + height + 36, parts, f"{panel.title}, {panel.unit} over {panel.x_label}")


def _placer(xs, log, columns, left, plot):
    if columns:
        return lambda x: left + plot * (xs.index(x) + 0.5) / len(xs)
    shape = math.log if log else float
    low, high = shape(xs[0]), shape(xs[-1])
    return lambda x: left + 8 + (plot - 16) * ((shape(x) - low) / (high - low) if high > low else 0.5)


def _x_axis(xs, to_x, y):
    last = -math.inf
    for x in xs:
        if to_x(x) - last >= 34:  # labels don't run into each other
            last = to_x(x)
            yield _text(last, y + 15, number(x), "middle", "tick")


def _legend(labels, left):
    for i, label in enumerate(labels):
        x, y = left + (i % 2) * 200, 12 + 22 * (i // 2)
        yield f'<rect class="c{i % 8}" x="{x}" y="{y - 8}" width="10" height="10" rx="2"/>'
        yield _text(x + 15, y + 1, label, "start", "label")


def _curve(curve, rounds, i, to_x, to_y):
    points = " ".join(f"{to_x(x):.1f},{to_y(y):.1f}" for x, y in curve.items())
    yield f'<polyline class="l{i % 8}" points="{points}"/>'
    for x, y in curve.items():
        values = rounds[x].values()
        if len(values) > 1:
            yield (
                f'<line class="spread" x1="{to_x(x):.1f}" x2="{to_x(x):.1f}" y1="{to_y(min(values)):.1f}" '
                f'y2="{to_y(max(values)):.1f}"/>'
            )
        yield f'<circle class="c{i % 8}" cx="{to_x(x):.1f}" cy="{to_y(y):.1f}" r="3"/>'


def _columns(curve, i, of, to_x, to_y, room):
    width = room * 0.8 / of
    for x, y in curve.items():
        yield (
            f'<rect class="c{i % 8}" x="{to_x(x) - room * 0.4 + i * width:.1f}" y="{to_y(y):.1f}" width="{width:.1f}" '
            f'height="{max(to_y(0) - to_y(y), 0):.1f}"/>'
        )
