"""The JSON of a run.

    {"machine", "kernel", "versions", "commit", "device", "tables": {NAME: {"rows", "goals", "missing", "setup"}}}

Everything that is shown follows from it, so that `script/bench report FILE` shows it anew.
"""

import json
import os

from bench import html, tables, text
from bench.progress import say
from bench.stats import Figures


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write(report, path):
    """Whole or not at all."""
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
        file.write("\n")
    os.replace(f"{path}.new", path)


def show(report, html_path=None, quiet=False):
    sections = []
    for name, content in report["tables"].items():
        table = tables.table(name)
        panels = [p for p in table.panels(Figures(content["rows"])) if p.has_values()]
        sections.append((table, panels, content))
        if not quiet:
            print("\n".join(text.table_text(table, panels, content)), flush=True)
    if html_path:
        with open(html_path, "w", encoding="utf-8") as file:
            file.write(html.page(report, sections))
        say(f"the report is in {html_path}")
