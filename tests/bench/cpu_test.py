"""Whose CPU time it was: bench/cpu.py, and bench/process.py that tells it of processes."""

import pathlib
import sys
import tempfile
import unittest

from bench.cpu import Account, Cgroups, ProcStat, best_accountant
from bench.process import Process

# Ends once it has used so much, however busy the machine is; a child of its own uses half.
BURN = """
import os, time
def burn(seconds):
    while time.process_time() < seconds: pass
if os.fork() == 0:
    burn(0.05)
    os._exit(0)
os.wait()
burn(0.05)
"""


def burnt(accountant):
    with tempfile.TemporaryDirectory() as folder:
        process = Process([sys.executable, "-c", BURN], pathlib.Path(folder, "x.out"), accountant, "a-load")
        status = process.wait(60)
        return status, accountant.seconds("a-load"), accountant.seconds("b-load")


class Accountants(unittest.TestCase):
    def check(self, accountant):
        self.addCleanup(accountant.close)
        status, seconds, other = burnt(accountant)
        self.assertEqual(status, 0)
        self.assertGreater(seconds, 0.08)  # clock ticks are coarse
        self.assertEqual(other, 0.0)

    def test_proc_stat_knows_an_ended_process_and_its_child(self):
        self.check(ProcStat())

    def test_what_this_machine_has(self):
        self.check(best_accountant())

    def test_without_a_cgroup_it_is_proc_stat(self):
        with tempfile.TemporaryDirectory() as folder:
            mounts = pathlib.Path(folder, "mounts")
            mounts.write_text("proc /proc proc rw 0 0\ncgroup2 /nowhere cgroup2 rw 0 0\n")
            self.assertIsInstance(best_accountant(mounts), ProcStat)

    def test_version_2_reads_cpu_stat_and_leaves_nothing_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            mounts = pathlib.Path(folder, "mounts")
            mounts.write_text(f"cgroup2 {folder} cgroup2 rw 0 0\n")
            accountant = best_accountant(mounts)
            self.assertIsInstance(accountant, Cgroups)
            accountant.words("a-load")
            group = next(pathlib.Path(folder).glob("ipov-bench-*/a-load"))
            (group / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1\n")
            self.assertEqual(accountant.seconds("a-load"), 1.5)
            (group / "cpu.stat").unlink()
            accountant.close()
            self.assertEqual([p.name for p in pathlib.Path(folder).iterdir()], ["mounts"])


class Accounts(unittest.TestCase):
    def test_service_demand_is_time_of_daemons_and_programs_to_a_kilobyte(self):
        readings = iter([{}, {("a", "daemon"): 1.0, ("a", "load"): 0.5, ("b", "daemon"): 2.0, ("b", "load"): 0.25}])
        with Account(lambda: next(readings)) as account:
            pass
        metrics = account.metrics(1024 * 1000, seconds=2)
        self.assertEqual(metrics["daemon_cpu"], 1.5)
        self.assertEqual((metrics["daemon_cpu_send"], metrics["daemon_cpu_receive"]), (0.5, 1.0))
        self.assertEqual((metrics["service_demand_send"], metrics["service_demand_receive"]), (1500.0, 2250.0))
        self.assertEqual(metrics["service_demand"], 3750.0)


if __name__ == "__main__":
    unittest.main()
