"""Runs a table: all its arms in each round, in a new order each time; every measurement becomes a row.

What can't be had is found out before or in the first rounds and listed as missing with its reason; what fails
later leaves rows with the value null, which count nowhere.
"""

import os
import random

from bench.contestants.base import Failed, Refused
from bench.loads import METRICS, LoadFailed
from bench.probe import probe
from bench.progress import Progress, say

START_SECONDS, LOAD_SECONDS = 2.0, 0.5  # expected of a start and end, and of a load beside its own time
PATIENCE = 60 if os.environ.get("IPOVERBS_IN_GUEST") else 10  # s, until packets cross; emulated CPUs can be slow


class Runner:
    """`worlds`: {"plain": World, "verbs": World}; the same one where the device needs no other than a UDP socket."""

    def __init__(self, table, worlds, contestants, loads, rounds, seconds, shuffle=random.shuffle, tag=probe):
        self._table = table
        self._worlds = worlds
        self._contestants = {name: c() for name, c in contestants.items()}
        self._loads = loads
        self._rounds = rounds
        self._seconds = seconds
        self._shuffle = shuffle
        self._probe = tag
        self._largest = {}
        self.rows = []
        self.missing = []

    def run(self, arms, after_round=lambda: None):
        arms = self._those_to_be_had(arms)
        cost = {id(arm): START_SECONDS + len(arm.calls) * (self._seconds + LOAD_SECONDS) for arm in arms}
        first = 0 if self._table.warm_up and self._rounds > 1 else 1
        progress = Progress((self._rounds + 1 - first) * sum(cost.values()))
        for number in range(first, self._rounds + 1):
            for place, arm in enumerate(self._ordered(arms), 1):
                said = self._measure_or_drop(arms, arm, number)
                progress.done(cost[id(arm)])
                say(
                    f"{self._table.name}: round {number} of {self._rounds}, {place} of {len(cost)}: {arm.contestant}"
                    f"{_words(arm.setting)}: {said}; {progress.text()}"
                )
            self.rows = [row for row in self.rows if row["round"] > 0]
            after_round()

    def _ordered(self, arms):
        blocks = {}
        for arm in arms:
            blocks.setdefault(arm.block, []).append(arm)
        order = list(blocks.values())
        self._shuffle(order)
        for block in order:
            self._shuffle(block)
        return [arm for block in order for arm in block]

    # What can be had

    def _lacks(self, reason, **what):
        say(f"{self._table.name}: missing: {', '.join(f'{k} {v}' for k, v in what.items() if v)}: {reason}")
        self.missing.append({**what, "reason": reason})

    def _those_to_be_had(self, arms):
        bad_contestants = self._without(
            dict.fromkeys(a.contestant for a in arms), self._contestants, "contestant", lambda c: c.missing()
        )
        arms = [a for a in arms if a.contestant not in bad_contestants]
        bad_loads = self._without(
            dict.fromkeys(c.load for a in arms for c in a.calls), self._loads, "load", lambda load: load.missing()
        )
        for arm in arms:
            arm.calls = [c for c in arm.calls if c.load not in bad_loads]
        return [a for a in arms if a.calls and self._has_underlay(a) and self._resolve_mtu(a)]

    def _without(self, names, known, kind, why):
        bad = set()
        for name in names:
            reason = why(known[name]) if name in known else "there is none of this name"
            if reason:
                self._lacks(reason, **{kind: name, "setting": {}})
                bad.add(name)
        return bad

    def _has_underlay(self, arm):
        """Hardware has the MTU that it has."""
        world, underlay_mtu = self._place(arm)
        fits = world.any_underlay_mtu or underlay_mtu in world.underlay_mtus
        if not fits:
            self._lacks(
                f"the underlay MTU here is {world.underlay_mtus[0]}", contestant=arm.contestant, setting=arm.setting
            )
        return fits

    def _resolve_mtu(self, arm):
        """ "max" becomes bytes, in overlay_mtu_bytes of the setting."""
        if arm.setting.get("overlay_mtu") != "max":
            return True
        world, underlay_mtu = self._place(arm)
        key = (arm.contestant, underlay_mtu)
        if key not in self._largest:
            world.set_underlay_mtu(underlay_mtu)
            self._largest[key] = self._find_largest(arm.contestant, world, underlay_mtu)
        if self._largest[key]:
            arm.setting["overlay_mtu_bytes"] = self._largest[key]
        return bool(self._largest[key])

    def _find_largest(self, name, world, underlay_mtu):
        for _ in range(2):  # on a busy machine the first start may be too slow
            try:
                mtu = self._contestants[name].largest_mtu(world, underlay_mtu)
                say(f"{self._table.name}: {name} carries {mtu} bytes over an underlay MTU of {underlay_mtu}")
                return mtu
            except (Failed, Refused) as error:
                reason = str(error)
        self._lacks(reason, contestant=name, setting={"underlay_mtu": underlay_mtu, "overlay_mtu": "max"})
        return None

    # Measuring

    def _place(self, arm):
        world = self._worlds["verbs" if self._contestants[arm.contestant].needs_rdma else "plain"]
        return world, arm.setting.get("underlay_mtu") or world.underlay_mtus[0]

    def _measure_or_drop(self, arms, arm, number):
        """What to tell of it. An arm that is refused, or that has failed to start twice and never did, is measured no
        more."""
        try:
            return self._measure(arm, number)
        except Refused as error:
            reason = str(error)
        except Failed as error:
            reason = str(error)
            arm.failures += 1
            if arm.started:
                self._fail_rows(arm, number)
            if arm.started or (arm.failures < 2 and number < self._rounds):
                return f"failed: {reason}"
        arms.remove(arm)
        self._lacks(reason, contestant=arm.contestant, setting=arm.setting)
        return "missing"

    def _measure(self, arm, number):
        contestant = self._contestants[arm.contestant]
        world, underlay_mtu = self._place(arm)
        world.set_underlay_mtu(underlay_mtu)
        setting = {**arm.setting, "underlay_mtu": underlay_mtu}
        setting["overlay_mtu"] = setting.pop("overlay_mtu_bytes", setting.get("overlay_mtu", underlay_mtu))
        said = []
        try:
            contestant.up(world, setting)
            if not world.within(PATIENCE, lambda: contestant.ready(world, setting)):
                raise Failed(f"no packet of {setting['overlay_mtu']} bytes came back within {PATIENCE} s")
            arm.started = True
            for call in arm.calls:
                said.append(self._call(arm, call, number, world, contestant))
        finally:
            world.stop_loads()
            contestant.down(world)
        return ", ".join(said)

    def _call(self, arm, call, number, world, contestant):
        load = self._loads[call.load]
        near = self._probe()
        before = arm.watch(contestant, world) if arm.watch else None
        try:
            values = load.run(world, contestant, self._seconds, **call.parameters)
        except LoadFailed as error:
            self._add(arm, call, number, near, dict.fromkeys(call.keep or load.metrics))
            return f"{call.load} failed: {error}"
        kept = {m: v for m, v in values.items() if not call.keep or m in call.keep}
        if arm.watch:
            kept |= arm.watch(contestant, world, before)
        self._add(arm, call, number, near, kept)
        first = next(iter(kept.items()), None)
        return f"{first[0]} {first[1]:.4g} {self._unit(first[0])}" if first and first[1] is not None else call.load

    def _unit(self, metric):
        return (self._table.metrics.get(metric) or METRICS[metric])[0]

    def _fail_rows(self, arm, number):
        for call in arm.calls:
            self._add(arm, call, number, None, dict.fromkeys(call.keep or self._loads[call.load].metrics))

    def _add(self, arm, call, number, near, values):
        setting = arm.row_setting(call, self._place(arm)[1])
        for metric, value in values.items():
            # A list is a distribution: what each of its values is of, and the value.
            for more, one in value if isinstance(value, list) else [({}, value)]:
                self.rows.append(
                    {
                        "contestant": arm.contestant,
                        "setting": {**setting, **more},
                        "metric": metric,
                        "unit": self._unit(metric),
                        "round": number,
                        "value": one,
                        "probe": near,
                    }
                )


def _words(setting):
    return "".join(
        f", {key.replace('_', ' ')} {value}" for key, value in setting.items() if key != "overlay_mtu_bytes"
    )
