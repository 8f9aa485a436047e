"""How near two CPUs are to each other just now, in GB/s.

    python3 -m bench.probe

One CPU writes 64 KiB, the other one copies them, 300 times over; the median speed of the copy. The virtual
CPUs of a virtual machine may share a cache (near) or not (far), and the host may change that at any
moment; work that hands pages from one CPU to the other follows it. None on a single CPU.
"""

import mmap
import os
import signal
import statistics
import time

SIZE, ROUNDS, PATIENCE = 65536, 300, 10


def probe():
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        return None
    data, turn = memoryview(mmap.mmap(-1, SIZE)), mmap.mmap(-1, 4096)
    writer = os.fork()
    if writer == 0:
        _write(data, turn, cpus[0])
    try:
        os.sched_setaffinity(0, cpus[1:2])
        speeds = _read(data, turn)
    finally:
        os.sched_setaffinity(0, cpus)
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
    return round(statistics.median(speeds), 1) if speeds else None


def _write(data, turn, cpu):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)  # what the parent cleans up is not the child's
    signal.alarm(PATIENCE)
    os.sched_setaffinity(0, [cpu])
    pattern = bytes(range(256)) * (SIZE // 256)
    for _ in range(ROUNDS):
        while turn[0]:
            pass
        data[:] = pattern
        turn[0] = 1
    os._exit(0)


def _read(data, turn):
    private, speeds, end = memoryview(bytearray(SIZE)), [], time.monotonic() + PATIENCE
    for _ in range(ROUNDS):
        while not turn[0]:
            if time.monotonic() > end:
                return speeds
        start = time.perf_counter_ns()
        private[:] = data
        speeds.append(SIZE / (time.perf_counter_ns() - start))
        turn[0] = 0
    return speeds


if __name__ == "__main__":
    print(probe())
