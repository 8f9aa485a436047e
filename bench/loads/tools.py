"""What loads share: a server on side b, a client on side a, neither of which can hang or outlive the load.

Which tool a measurement is made with: netperf where Debian's non-free component can be had, otherwise iperf3 and
sockperf; tools() says which.
"""

import contextlib
import shutil
import signal

from bench.debian import install, version
from bench.loads import LoadFailed
from bench.non_free import install_non_free
from bench.progress import say

SLACK = 15  # seconds that a tool may take beyond its own time
PATIENCE = 15  # seconds until a server listens: on a busy machine


def has_netperf():
    return shutil.which("netperf") is not None


def tools():
    """{package: version} of what the loads use here."""
    packages = ("iperf", "iputils-ping", *(("netperf",) if has_netperf() else ("iperf3", "sockperf")))
    return {package: version(package) for package in packages}


def netperf_missing():
    """None where netperf, or what stands in for it, is here or could be installed."""
    if has_netperf():
        return None
    reason = install_non_free("netperf")
    if reason is None:
        return None
    say(f"without netperf ({reason}): iperf3 and sockperf instead")
    substitute = install("iperf3") or install("sockperf")
    return substitute and f"{reason}; {substitute}"


def iperf_missing():
    return install("iperf")


def ping_missing():
    return install("iputils-ping", "ping") or netperf_missing()


def with_its_children(argv):
    """For what forks: in a PID namespace of its own, it dies as a whole with the one process that is known of."""
    return ["unshare", "--pid", "--fork", "--kill-child", *argv]


@contextlib.contextmanager
def serving(world, argv, port, udp=False):
    """A server on side b that has its socket. Killed at the end: there is nothing that it would have to tidy up."""
    server = world.start("b", argv, role="load")
    try:
        has_socket = world.has_socket if udp else world.listens
        if not world.within(PATIENCE, lambda: server.ended() is not None or has_socket("b", port)) or server.ended():
            raise LoadFailed(f"{argv[0]} does not serve: {server.last_words()}")
        yield server
    finally:
        server.stop(first=signal.SIGKILL)
        world.stop_loads()


def client(world, argv, seconds, slack=SLACK, env=None):
    """Runs it on side a; what it printed, errors last."""
    done = world.run("a", argv, timeout=seconds + slack, env=env)
    output, last = done.stdout + done.stderr, done.last_words()
    done.output.unlink(missing_ok=True)
    done.errors.unlink(missing_ok=True)
    if done.status is None or done.status < 0:
        raise LoadFailed(f"{argv[0]} was stopped after {seconds + slack:.0f} s: {last}")
    if done.status != 0:
        raise LoadFailed(f"{argv[0]}: {last}")
    return output


def wanted(value, what):
    if value is None:
        raise LoadFailed(f"no {what} in the output")
    return value
