"""A process that the benchmark started: it dies with the benchmark, and its output is in a file."""

import os
import pathlib
import signal
import subprocess
import time


class Process:
    """`argv` in the background. `accountant` and `group` say whose CPU time it uses."""

    def __init__(self, argv, output, accountant, group, env=None):
        self.argv = argv
        self.output = pathlib.Path(output)
        self._accountant = accountant
        with open(self.output, "wb") as out, open(self.errors, "wb") as err:
            # setpriv: the kernel kills it when this process ends, however that ends.
            self._popen = subprocess.Popen([*accountant.words(group), "setpriv", "--pdeathsig", "KILL", *argv],
                                           stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env)
        accountant.started(group, self.pid)

    @property
    def errors(self):
        return self.output.with_suffix(".err")

    @property
    def pid(self):
        return self._popen.pid

    def ended(self):
        """Its exit status, or None while it runs."""
        if self._popen.returncode is None and os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            self._accountant.ended(self.pid)
            self._popen.wait()
        return self._popen.returncode

    def wait(self, seconds):
        """Its exit status, or None if it still runs after so long."""
        end = time.monotonic() + seconds
        pause = 0.001
        while self.ended() is None and time.monotonic() < end:
            time.sleep(pause)
            pause = min(2 * pause, 0.02)
        return self.ended()

    def stop(self, first=signal.SIGTERM, patience=5):
        if self.ended() is None:
            self._popen.send_signal(first)
            if self.wait(patience) is None:
                self._popen.kill()
                self.wait(5)
        return self.ended()

    @property
    def stdout(self):
        return self.output.read_text(encoding="utf-8", errors="replace")

    @property
    def stderr(self):
        return self.errors.read_text(encoding="utf-8", errors="replace")

    def last_words(self):
        lines = (self.stdout + "\n" + self.stderr).strip().splitlines()
        return lines[-1].strip() if lines else "no output"
