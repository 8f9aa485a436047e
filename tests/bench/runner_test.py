"""A table of fakes, run to its rows: order, tags, and what is missing or fails (bench/runner.py)."""

import contextlib
import io
import unittest

from bench.contestants.base import Failed, Refused
from bench.loads import Load, LoadFailed
from bench.runner import Runner
from bench.table import Arm, Call, Table


class FakeWorld:
    underlay_mtus = (9000, 1500)
    any_underlay_mtu = True

    def __init__(self):
        self.log = []

    def set_underlay_mtu(self, mtu):
        self.log.append(f"underlay {mtu}")

    def within(self, seconds, condition):
        return condition()

    def stop_loads(self):
        pass


class Good:
    name = "good"
    needs_rdma = False

    def missing(self):
        return None

    def largest_mtu(self, world, underlay_mtu):
        return underlay_mtu - 28

    def up(self, world, setting):
        world.log.append(f"up {self.name} {setting['overlay_mtu']}")

    def ready(self, world, setting):
        return True

    def down(self, world):
        world.log.append(f"down {self.name}")


class Absent(Good):
    name = "absent"

    def missing(self):
        return "no such package"


class Refusing(Good):
    name = "refusing"

    def up(self, world, setting):
        raise Refused("unknown option")


class Dying(Good):
    """Starts once, then no more."""

    name = "dying"
    starts = 0

    def up(self, world, setting):
        self.starts += 1
        if self.starts > 1:
            raise Failed("died")


class Slow(Good):
    """Starts at the second attempt."""

    name = "slow"
    starts = 0

    def up(self, world, setting):
        self.starts += 1
        if self.starts == 1:
            raise Failed("too slow")


class Silent(Good):
    name = "silent"

    def ready(self, world, setting):
        return False


def rr(world, contestant, seconds, fail=False):
    if fail:
        raise LoadFailed("no answer")
    return {"tcp_rr": 71.0, "tcp_rr_p99": 118.0}


LOADS = {"rr": Load(rr, ("tcp_rr", "tcp_rr_p99"), lambda: None), "gone": Load(rr, ("udp_rr",), lambda: "no tool")}
CALLS = [Call("rr")]


def run(arms, rounds=2, shuffle=lambda order: None, warm_up=False):
    world = FakeWorld()
    table = Table("fake", "", "", None, None, None, warm_up=warm_up)
    contestants = {c.name: c for c in (Good, Absent, Refusing, Dying, Slow, Silent)}
    runner = Runner(table, {"plain": world, "verbs": world}, contestants, LOADS, rounds, 1, shuffle, lambda: 40.0)
    with contextlib.redirect_stderr(io.StringIO()):
        runner.run(arms)
    return runner, world


class Rows(unittest.TestCase):
    def test_each_metric_of_each_round_is_a_row_in_the_form_of_the_json(self):
        runner, _ = run([Arm("good", {"overlay_mtu": 1500}, [Call("rr", setting={"payload": 64})])])
        self.assertEqual(len(runner.rows), 4)
        self.assertEqual(
            runner.rows[1],
            {
                "contestant": "good",
                "setting": {"underlay_mtu": 9000, "overlay_mtu": 1500, "payload": 64},
                "metric": "tcp_rr_p99",
                "unit": "us",
                "round": 1,
                "value": 118.0,
                "probe": 40.0,
            },
        )

    def test_only_metrics_to_keep_are_kept(self):
        runner, _ = run([Arm("good", {}, [Call("rr", keep=("tcp_rr",))])], rounds=1)
        self.assertEqual([r["metric"] for r in runner.rows], ["tcp_rr"])

    def test_max_becomes_bytes_for_the_contestant_and_stays_max_in_the_row(self):
        runner, world = run([Arm("good", {"underlay_mtu": 1500, "overlay_mtu": "max"}, CALLS)], rounds=1)
        self.assertIn("up good 1472", world.log)
        self.assertEqual(
            runner.rows[0]["setting"], {"underlay_mtu": 1500, "overlay_mtu": "max", "overlay_mtu_bytes": 1472}
        )

    def test_failed_load_leaves_null(self):
        runner, world = run([Arm("good", {}, [Call("rr", {"fail": True})])], rounds=1)
        self.assertEqual([(r["metric"], r["value"]) for r in runner.rows], [("tcp_rr", None), ("tcp_rr_p99", None)])
        self.assertEqual(world.log[-1], "down good")

    def test_contestant_that_fails_later_leaves_null(self):
        runner, _ = run([Arm("dying", {}, CALLS)])
        self.assertEqual(
            [(r["round"], r["value"]) for r in runner.rows if r["metric"] == "tcp_rr"], [(1, 71.0), (2, None)]
        )
        self.assertEqual(runner.missing, [])

    def test_contestant_that_does_not_start_once_is_tried_again(self):
        runner, _ = run([Arm("slow", {}, CALLS)], rounds=2)
        self.assertEqual([r["round"] for r in runner.rows], [2, 2])
        self.assertEqual(runner.missing, [])

    def test_warm_up_counts_nowhere(self):
        runner, world = run([Arm("good", {}, CALLS)], rounds=2, warm_up=True)
        self.assertEqual({r["round"] for r in runner.rows}, {1, 2})
        self.assertEqual(world.log.count("down good"), 3)


class Order(unittest.TestCase):
    def test_blocks_stay_together_and_each_round_is_shuffled(self):
        arms = [
            Arm("good", {"overlay_mtu": mtu}, CALLS, block=block)
            for block in (1, 2)
            for mtu in (block * 10, block * 10 + 1)
        ]
        _, world = run(arms, shuffle=lambda order: order.reverse())
        ups = [line.split()[2] for line in world.log if line.startswith("up")]
        self.assertEqual(ups, ["21", "20", "11", "10"] * 2)


class Missing(unittest.TestCase):
    def test_what_cannot_be_had_is_listed_once_with_its_reason(self):
        for name, reason in (
            ("absent", "no such package"),
            ("refusing", "unknown option"),
            ("unheard-of", "there is none of this name"),
            ("silent", "no packet of 9000 bytes came back within 10 s"),
        ):
            with self.subTest(name):
                runner, _ = run([Arm(name, {}, CALLS), Arm("good", {}, CALLS)])
                self.assertEqual([(m["contestant"], m["reason"]) for m in runner.missing], [(name, reason)])
                self.assertEqual({r["contestant"] for r in runner.rows}, {"good"})

    def test_an_underlay_that_is_not_there_is_missing(self):
        FakeWorld.any_underlay_mtu = False
        self.addCleanup(setattr, FakeWorld, "any_underlay_mtu", True)
        runner, _ = run(
            [Arm("good", {"underlay_mtu": 4500}, CALLS), Arm("good", {"underlay_mtu": 1500}, CALLS)], rounds=1
        )
        self.assertEqual([m["reason"] for m in runner.missing], ["the underlay MTU here is 9000"])
        self.assertEqual(len(runner.rows), 2)

    def test_a_load_without_its_tool_is_missing_and_the_others_run(self):
        runner, _ = run([Arm("good", {}, [Call("gone"), Call("rr")])], rounds=1)
        self.assertEqual([(m["load"], m["reason"]) for m in runner.missing], [("gone", "no tool")])
        self.assertEqual([r["metric"] for r in runner.rows], ["tcp_rr", "tcp_rr_p99"])


if __name__ == "__main__":
    unittest.main()
