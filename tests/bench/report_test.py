"""Every table's goals and panels, from rows as its own arms would make them; text and HTML of those."""

import pathlib
import tempfile
import types
import unittest
from xml.etree import ElementTree

from bench import html, loads, report, tables, text
from bench.stats import Figures
from bench.svg import nice_ticks


def options(world, part=None):
    return types.SimpleNamespace(part=part, world_name=world, quick=False)


SETUP = {
    "machine": "m",
    "kernel": "k",
    "versions": {"netperf": "2"},
    "commit": "c",
    "device": "soft",
    "rounds": 2,
    "seconds": 1,
    "accounting": "cgroup v2",
    "overlay_mtus": [1500],
    "offloads": {"ipoverbs": "some"},
    "underlay_mtus": [9000],
}


def rows_of(table):
    """Each metric of each arm in two rounds, all alike; with the part that the guest measures."""
    arms = table.arms(options("soft"))
    if table.guest_part:
        arms = arms + table.arms(options("rxe", table.guest_part))
    rows = []
    for arm in arms:
        for call in arm.calls:
            metrics = call.keep or loads.every()[call.load].metrics
            for metric in (*metrics, *(table.metrics if arm.watch else ())):
                for number in (1, 2):
                    rows.append(
                        {
                            "contestant": arm.contestant,
                            "setting": {**arm.row_setting(call, 9000), "from": 1024},
                            "metric": metric,
                            "unit": "?",
                            "round": number,
                            "value": 2.0,
                            "probe": None,
                        }
                    )
    return rows


def filled(table):
    rows = rows_of(table)
    return {
        "setup": SETUP,
        "rows": rows,
        "missing": [{"contestant": "tinc", "setting": {}, "reason": "no <package>"}],
        "goals": table.goals(Figures(rows)),
    }


class Tables(unittest.TestCase):
    def test_every_goal_finds_the_figures_of_the_arms(self):
        for name in tables.NAMES:
            table = tables.table(name)
            if table.measure:
                continue
            for goal in filled(table)["goals"]:
                with self.subTest(f"{name}: {goal['name']}"):
                    self.assertIsNotNone(goal["value"])

    def test_goals_without_figures_are_missed_and_not_an_error(self):
        for name in tables.NAMES:
            for goal in tables.table(name).goals(Figures([])):
                self.assertFalse(goal["met"], goal["name"])

    def test_text_and_page_show_every_table(self):
        sections = []
        for name in tables.NAMES:
            table = tables.table(name)
            content = filled(table)
            sections.append((table, [p for p in table.panels(Figures(content["rows"])) if p.has_values()], content))
            self.assertIn("no <package>", "\n".join(text.table_text(*sections[-1])))
        page = html.page({"machine": "m", "kernel": "k", "commit": "c", "versions": {"netperf": "2"}}, sections)
        self.assertIn("no &lt;package&gt;", page)
        self.assertNotIn("http", page.replace("http://www.w3.org", ""))
        for drawing in page.split("<svg")[1:]:
            ElementTree.fromstring("<svg" + drawing.partition("</svg>")[0] + "</svg>")


class Files(unittest.TestCase):
    def test_what_is_written_is_read_again(self):
        content = {"machine": "m", "tables": {"mtu": {"rows": [], "goals": [], "missing": []}}}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "x.json")
            report.write(content, path)
            self.assertEqual(report.read(path), content)
            self.assertEqual([p.name for p in pathlib.Path(folder).iterdir()], ["x.json"])


class Numbers(unittest.TestCase):
    def test_numbers_are_short(self):
        self.assertEqual(
            [text.number(x) for x in (None, 0, 123456.7, 71.234, 0.01234, 12.0)],
            ["-", "0", "123457", "71.23", "0.01234", "12"],
        )

    def test_ticks_are_round_and_reach_the_top(self):
        self.assertEqual(nice_ticks(17), [0, 5, 10, 15, 20])
        self.assertEqual(nice_ticks(0.8), [0, 0.2, 0.4, 0.6000000000000001, 0.8])
        self.assertEqual(nice_ticks(0), [0, 1])


if __name__ == "__main__":
    unittest.main()
