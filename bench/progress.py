"""What the user sees while it runs: standard error, since standard output belongs to results."""

import sys


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)
