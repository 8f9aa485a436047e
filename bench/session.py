"""One run of `script/bench`: prepares the worlds, runs tables in them, or in the guest, and gathers what they bring."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

from bench import contestants, loads, machine, report, tables
from bench.progress import say
from bench.runner import Runner
from bench.stats import Figures
from bench.world import SoftWorld

PROJECT = pathlib.Path(__file__).resolve().parent.parent
QUICK_SECONDS, QUICK_ROUNDS, ROUNDS = 1, 1, 20


class Session:
    """`options`: the command line's. `report` grows by a table with each run."""

    def __init__(self, options):
        self.options = options
        self.build = pathlib.Path(os.environ.get("IPOVERBS_BUILD", PROJECT / "build"))
        self.program = str(self.build / "release/daemon/ipoverbs")
        self._contestants = contestants.every()
        self._loads = loads.every()
        self.report = {**self._describe(options.device), "tables": {}}

    def _describe(self, device):
        return machine.describe(PROJECT, self.program, device, [c() for c in self._contestants.values()])

    def rounds(self):
        return self.options.rounds or (QUICK_ROUNDS if self.options.quick else ROUNDS)

    def seconds(self, table):
        return self.options.seconds or (QUICK_SECONDS if self.options.quick else table.seconds)

    def run(self, name):
        table = tables.table(name)
        device = table.worlds[0] if self.options.device == "auto" else self.options.device
        if device == "rxe":
            content = self._in_guest(table)
        else:
            content = self._here(table, device)
        if self.options.device == "auto" and self.options.table == "all" and table.guest_part:
            _add_rows(content, self._in_guest(table, table.guest_part))
        content["goals"] = table.goals(Figures(content["rows"]))
        self.report["tables"][name] = content
        if self.options.json:
            report.write(self.report, self.options.json)

    def _here(self, table, device):
        with contextlib.ExitStack() as stack:
            worlds = self._worlds(device, stack)
            self.options.world_name = worlds["verbs"].name
            runner = Runner(table, worlds, self._contestants, self._loads, self.rounds(), self.seconds(table))
            runner.run(table.arms(self.options))
            rows, missing = runner.rows, runner.missing
            if table.measure:
                rows += table.measure(self)
            setup = {**{k: self.report[k] for k in ("machine", "kernel", "commit")}, "device": worlds["verbs"].name,
                     "rounds": self.rounds(), "seconds": self.seconds(table), "accounting": worlds["plain"].accounting,
                     "underlay_mtus": sorted({r["setting"]["underlay_mtu"] for r in rows if "underlay_mtu" in r["setting"]})}
        return {"setup": setup, "rows": rows, "missing": missing, "goals": []}

    def _worlds(self, device, stack):
        plain = stack.enter_context(SoftWorld(self.program))
        if device in ("auto", "soft"):
            return {"plain": plain, "verbs": plain}
        from bench.rxe_world import RxeWorld
        return {"plain": plain, "verbs": stack.enter_context(RxeWorld(self.program))}

    def _in_guest(self, table, part=None):
        """The same command in the guest that script/guest boots; this machine's kernel has no rdma_rxe."""
        with tempfile.TemporaryDirectory(prefix="ipov-bench-guest-") as out:
            words = [table.name, "--device", "rxe-here", "--json", "/run/guest/out/report.json",
                     "--rounds", str(self.rounds()), "--seconds", str(self.seconds(table))]
            words += ["--part", part] if part else []
            arms = len(table.arms(self.options))
            limit = 300 + self.rounds() * arms * 60 + self.rounds() * arms * 6 * self.seconds(table)
            say(f"{table.name}: booting the guest")
            done = subprocess.run(
                [PROJECT / "script/guest", "--timeout", str(limit), "--out", out, "--env", f"IPOVERBS_COMMIT={self.report['commit']}",
                 "--env", "PYTHONDONTWRITEBYTECODE=1", "python3", "-m", "bench", *words],
                env=os.environ | {"IPOVERBS_BUILD": str(self.build)}, stdout=sys.stderr, check=False)
            path = pathlib.Path(out, "report.json")
            if not path.exists():
                reason = f"the guest ended with status {done.returncode} and no result"
                say(f"{table.name}: {reason}")
                setup = {**{k: self.report[k] for k in ("machine", "kernel", "commit")}, "device": "rxe", "rounds": self.rounds(),
                         "seconds": self.seconds(table), "accounting": "nothing", "underlay_mtus": []}
                return {"setup": setup, "rows": [], "missing": [{"contestant": "ipoverbs", "setting": {"device": "rxe"}, "reason": reason}], "goals": []}
            return report.read(path)["tables"][table.name]


def _add_rows(content, more):
    content["rows"] += more["rows"]
    content["missing"] += more["missing"]
    content["setup_guest"] = more["setup"]
