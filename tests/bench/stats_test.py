"""Medians, intervals, ratios and goals of bench/stats.py."""

import unittest

from bench.stats import Figures, judged, median_interval, paired_ratios


def row(contestant, number, value, **setting):
    return {
        "contestant": contestant,
        "setting": setting,
        "metric": "tcp_rr",
        "unit": "us",
        "round": number,
        "value": value,
        "probe": None,
    }


class MedianInterval(unittest.TestCase):
    def test_twenty_values_are_bounded_by_the_sixth_and_fifteenth(self):
        # Binomial(20, 1/2): at most 5 with 0.0207, at most 6 with 0.0577.
        self.assertEqual(median_interval(list(range(20, 0, -1))), (10.5, [6, 15]))

    def test_six_values_are_the_fewest_for_95_percent(self):
        self.assertEqual(median_interval([1, 2, 3, 4, 5, 6])[1], [1, 6])

    def test_few_values_give_all_of_them(self):
        self.assertEqual(median_interval([3]), (3, [3, 3]))
        self.assertEqual(median_interval([3, 1]), (2, [1, 3]))


class PairedRatios(unittest.TestCase):
    def test_only_rounds_that_both_have_count(self):
        self.assertEqual(paired_ratios({1: 2.0, 2: 9.0, 4: 1.0}, {1: 1.0, 3: 5.0, 4: 4.0}), [2.0, 0.25])

    def test_nothing_is_divided_by_nothing(self):
        self.assertEqual(paired_ratios({1: 2.0}, {1: 0.0}), [])


class Judged(unittest.TestCase):
    def test_median_decides(self):
        self.assertTrue(judged("x", [0.9, 1.1, 1.2], 1.0)["met"])
        self.assertFalse(judged("x", [0.8, 0.9, 1.2], 1.0)["met"])

    def test_at_most(self):
        self.assertTrue(judged("x", [0.8, 0.9, 1.2], 1.0, at_most=True)["met"])
        self.assertFalse(judged("x", [0.8, 1.1, 1.2], 1.0, at_most=True)["met"])

    def test_by_the_upper_end_only_a_whole_interval_below_misses(self):
        self.assertTrue(judged("x", [0.8, 0.9, 1.01], 1.0, by="high")["met"])
        self.assertFalse(judged("x", [0.8, 0.9, 0.99], 1.0, by="high")["met"])

    def test_by_the_lower_end_the_whole_interval_is_to_be_there(self):
        self.assertTrue(judged("x", [1.0, 1.1, 1.2], 1.0, by="low")["met"])
        self.assertFalse(judged("x", [0.99, 1.1, 1.2], 1.0, by="low")["met"])

    def test_a_goal_says_on_how_many_pairs_it_rests(self):
        self.assertEqual(judged("x", [1.0, 1.1], 1.0)["pairs"], 2)
        self.assertEqual(judged("x", [], 1.0)["pairs"], 0)

    def test_what_was_not_measured_is_missed(self):
        goal = judged("x", [], 1.0)
        self.assertEqual((goal["value"], goal["interval"], goal["met"]), (None, None, False))


class FiguresTest(unittest.TestCase):
    rows = [
        row("a", 1, 5.0, overlay_mtu=1500),
        row("a", 2, None, overlay_mtu=1500),
        row("a", 1, 7.0, overlay_mtu="max"),
        row("b", 1, 4.0, overlay_mtu=1500),
    ]

    def test_failed_measurements_count_nowhere(self):
        self.assertEqual(Figures(self.rows).by_round("a", "tcp_rr", overlay_mtu=1500), {1: 5.0})

    def test_best_is_by_median_and_direction(self):
        figures = Figures(self.rows)
        self.assertEqual(figures.best(("a", "b", "c"), "tcp_rr", True, overlay_mtu=1500), "a")
        self.assertEqual(figures.best(("a", "b", "c"), "tcp_rr", False, overlay_mtu=1500), "b")
        self.assertIsNone(figures.best(("c",), "tcp_rr", True, overlay_mtu=1500))


if __name__ == "__main__":
    unittest.main()
