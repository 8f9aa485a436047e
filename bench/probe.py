#!/usr/bin/env python3
"""How near two CPUs are to each other just now, in GB/s.

    probe.py

One CPU writes 64 KiB, the other one copies them, 300 times over; the median speed of the copy. The virtual
CPUs of a virtual machine may share a cache (near) or not (far), and the host may change that at any
moment; work that hands pages from one CPU to the other follows it. Prints null on a single CPU.
"""

import mmap
import os
import signal
import statistics
import time

SIZE, ROUNDS = 65536, 300


def main():
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        print("null")
        return
    data, turn = memoryview(mmap.mmap(-1, SIZE)), mmap.mmap(-1, 4096)
    private, pattern = memoryview(bytearray(SIZE)), bytes(range(256)) * (SIZE // 256)
    writer = os.fork()
    if writer == 0:
        signal.alarm(10)  # in case that the reader is killed
        os.sched_setaffinity(0, cpus[:1])
        for _ in range(ROUNDS):
            while turn[0]:
                pass
            data[:] = pattern
            turn[0] = 1
        os._exit(0)
    os.sched_setaffinity(0, cpus[1:])
    speeds = []
    for _ in range(ROUNDS):
        while not turn[0]:
            pass
        start = time.perf_counter_ns()
        private[:] = data
        speeds.append(SIZE / (time.perf_counter_ns() - start))
        turn[0] = 0
    os.waitpid(writer, 0)
    print(f"{statistics.median(speeds):.1f}")


main()
