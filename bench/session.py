"""One run of `script/bench`: prepares the worlds, runs tables in them, or in the guest, and gathers what they bring."""

import contextlib
import os
import pathlib

from bench import contestants, guest, loads, machine, report, tables
from bench.progress import say
from bench.runner import Runner
from bench.rxe_world import HardwareWorld, RxeWorld
from bench.stats import Figures
from bench.world import SoftWorld

QUICK_SECONDS, QUICK_ROUNDS, ROUNDS = 1, 1, 20


class Session:
    """`options`: the command line's. `report` grows by a table with each run."""

    project = pathlib.Path(__file__).resolve().parent.parent

    def __init__(self, options):
        self.options = options
        self.build = pathlib.Path(os.environ.get("IPOVERBS_BUILD", self.project / "build"))
        self.program = str(self.build / "release/daemon/ipoverbs")
        self._contestants = contestants.every()
        self._loads = loads.every()
        self.report = {**self._described(), "device": options.device, "tables": {}}

    def _described(self):
        return machine.describe(self.project, self.program, [c() for c in self._contestants.values()])

    def rounds(self):
        return self.options.rounds or (QUICK_ROUNDS if self.options.quick else ROUNDS)

    def seconds(self, table):
        return self.options.seconds or (QUICK_SECONDS if self.options.quick else table.seconds)

    def setup(self, table, device, accounting, rows):
        """Where and how a table's rows were made."""
        if table.name not in self.report["tables"]:
            self.report |= self._described()  # anew: the table's contestants are installed by now
        settings = [r["setting"] for r in rows]
        contestants_here = dict.fromkeys(r["contestant"] for r in rows)
        return {
            **{key: self.report[key] for key in ("machine", "kernel", "versions", "commit")},
            "device": device,
            "rounds": len({r["round"] for r in rows}),  # that were done
            "seconds": self.seconds(table),
            "accounting": accounting,
            "underlay_mtus": sorted({s["underlay_mtu"] for s in settings if "underlay_mtu" in s}),
            "overlay_mtus": sorted({s.get("overlay_mtu_bytes", s["overlay_mtu"]) for s in settings if "overlay_mtu" in s}),
            "offloads": {c: self._contestants[c].offloads for c in contestants_here if c in self._contestants},
        }

    def run(self, name):
        table = tables.table(name)
        device = table.worlds[0] if self.options.device == "auto" else self.options.device
        if table.worlds == ("soft",) and device != "soft":
            say(f"{name}: it knows the software device alone")
            return
        content = self._in_guest(table) if device == "rxe" else self._here(table, device)
        if self.options.device == "auto" and table.guest_part:
            more = self._in_guest(table, table.guest_part)
            content["rows"] += more["rows"]
            content["missing"] += more["missing"]
            content["setup_guest"] = more["setup"]
        self._keep(table, content)

    def _keep(self, table, content):
        content["goals"] = table.goals(Figures(content["rows"]))
        self.report["tables"][table.name] = content
        setups = [c[key] for c in self.report["tables"].values() for key in ("setup", "setup_guest") if key in c]
        self.report["device"] = ", ".join(dict.fromkeys(s["device"] for s in setups))
        if self.options.json:
            report.write(self.report, self.options.json)

    def _in_guest(self, table, part=None):
        self.options.world_name, self.options.part = "rxe", part
        return guest.measure(table, table.arms(self.options), self, part)

    def _here(self, table, device):
        with contextlib.ExitStack() as stack:
            worlds = self._worlds(device, stack)
            self.options.world_name = worlds["verbs"].name
            runner = Runner(table, worlds, self._contestants, self._loads, self.rounds(), self.seconds(table))

            def content():
                setup = self.setup(table, worlds["verbs"].name, worlds["plain"].accounting, runner.rows)
                return {"setup": setup, "rows": runner.rows, "missing": runner.missing}

            # What was measured is kept if it is interrupted.
            runner.run(table.arms(self.options), after_round=lambda: self._keep(table, content()))
            if table.measure:
                rows, missing = table.measure(self)
                runner.rows += rows
                runner.missing += missing
            return content()

    def _worlds(self, device, stack):
        plain = stack.enter_context(SoftWorld(self.program))
        if device == "soft":
            return {"plain": plain, "verbs": plain}
        if device == guest.HERE:
            return {"plain": plain, "verbs": stack.enter_context(RxeWorld(self.program))}
        return {"plain": plain, "verbs": stack.enter_context(HardwareWorld(self.program, device.split(",")))}
