"""What the user sees while it runs: standard error, since standard output belongs to results."""

import sys
import time


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


class Progress:
    """Estimates what is left from what was done: `expected` seconds, corrected by how long the past really took."""

    def __init__(self, expected, clock=time.monotonic):
        self._left = expected
        self._clock = clock
        self._start = clock()
        self._done = 0.0

    def done(self, expected):
        self._done += expected
        self._left = max(0.0, self._left - expected)

    def left(self):
        elapsed = self._clock() - self._start
        return self._left * elapsed / self._done if self._done else self._left

    def text(self):
        seconds = self.left()
        return f"about {seconds / 60:.0f} min left" if seconds >= 90 else f"about {seconds:.0f} s left"
