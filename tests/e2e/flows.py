#!/usr/bin/env python3
"""Numbered UDP datagrams: whether they come in order, whole, and how many are missing.

    flows.py receive ADDRESS PORT [--answer]
    flows.py send ADDRESS PORT FLOWS COUNT SIZE [--segment] [--rate N]

A datagram is its flow, its number within the flow, and a pattern made of the two. `send` sends COUNT
datagrams of each of FLOWS flows, each from a port of its own, of SIZE bytes, or of 12 to SIZE by turns where
SIZE is written as ..SIZE; with --segment in super-packets (UDP_SEGMENT) of up to 40; at most N datagrams a
second with --rate. Then it sends an end, again and again, until `receive` answers with its findings, which
`send` prints: one JSON object. An end may overtake what another worker still carries, so `receive` answers one
that comes when nothing else has for half a second; "unanswered" is how many were sent in vain, and may have been
dropped. With --answer, `receive` also sends every hundredth datagram
of a flow back.
Exit status of `send`: 0 if nothing was reordered, doubled or changed.
"""

import json
import socket
import struct
import sys
import time

UDP_SEGMENT = 103  # include/uapi/linux/udp.h
SO_RCVBUFFORCE = 33
HEAD = struct.Struct("!IQ")
END = 0xFFFFFFFF
SEGMENTS = 40
QUIET = 0.5  # seconds


def datagram(flow, number, size):
    head = HEAD.pack(flow, number)
    return (head * (size // len(head) + 1))[:size]


def family_of(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


class Findings:
    def __init__(self):
        self.next = {}
        self.counts = {"received": 0, "late": 0, "doubled": 0, "changed": 0}
        self.missing = {}
        self.example = ""

    def take(self, data):
        """Returns the flow and number of a datagram that is as it was sent."""
        self.counts["received"] += 1
        if len(data) < HEAD.size:
            self.note("changed", f"{len(data)} bytes")
            return None
        flow, number = HEAD.unpack_from(data)
        if data != datagram(flow, number, len(data)):
            self.note("changed", f"flow {flow}, number {number}, {len(data)} bytes")
            return None
        awaited = self.next.get(flow, 0)
        missing = self.missing.setdefault(flow, set())
        if number >= awaited:
            missing.update(range(awaited, number))
            self.next[flow] = number + 1
        elif number in missing:
            missing.remove(number)
            self.note("late", f"flow {flow}: {number} after {awaited - 1}")
        else:
            self.note("doubled", f"flow {flow}: {number}")
        return flow, number

    def note(self, what, example):
        self.counts[what] += 1
        self.example = self.example or f"{what}: {example}"

    def json(self):
        return json.dumps({**self.counts, "flows": len(self.next), "example": self.example})


def receive(address, port, answer):
    with socket.socket(family_of(address), socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        s.bind((address, port))
        s.settimeout(30)
        findings = Findings()
        last = time.monotonic()
        while True:
            data, sender = s.recvfrom(65536)
            if len(data) == HEAD.size and HEAD.unpack(data)[0] == END:
                if time.monotonic() - last < QUIET:
                    continue
                s.sendto(findings.json().encode(), sender)
                return
            last = time.monotonic()
            taken = findings.take(data)
            if answer and taken and taken[1] % 100 == 0:
                s.sendto(data, sender)


def open_flows(address, port, flows):
    sockets = []
    for _ in range(flows):
        s = socket.socket(family_of(address), socket.SOCK_DGRAM)
        s.connect((address, port))
        sockets.append(s)
    return sockets


def send_all(sockets, count, size, varies, segment, rate):
    """Returns how many datagrams the kernel took."""
    sent = 0
    step = SEGMENTS if segment else 1
    begin = time.monotonic()
    for first in range(0, count, step):
        numbers = range(first, min(first + step, count))
        for flow, s in enumerate(sockets):
            if segment:
                s.send(b"".join(datagram(flow, n, size) for n in numbers))
            else:
                s.send(datagram(flow, first, HEAD.size + first * 37 % (size - 11) if varies else size))
            sent += len(numbers)
        if rate:
            time.sleep(max(0, begin + sent / rate - time.monotonic()))
    return sent


def ask_for_findings(address, port):
    with socket.socket(family_of(address), socket.SOCK_DGRAM) as s:
        s.connect((address, port))
        s.settimeout(0.1)
        for ends in range(100):
            s.send(HEAD.pack(END, 0))
            try:
                return {**json.loads(s.recv(65536)), "unanswered": ends}
            except TimeoutError:
                pass
            except ConnectionRefusedError:
                break
    sys.exit("the receiver does not answer")


def send(address, port, flows, count, size, segment, rate):
    varies = size.startswith("..")
    size = int(size.lstrip("."))
    sockets = open_flows(address, port, flows)
    if segment:
        for s in sockets:
            s.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, size)
    sent = send_all(sockets, count, size, varies, segment, rate)
    findings = ask_for_findings(address, port)
    findings["sent"] = sent
    print(json.dumps(findings))
    return 0 if findings["late"] + findings["doubled"] + findings["changed"] == 0 else 1


def main(arguments):
    options = {"--answer": False, "--segment": False, "--rate": 0}
    words = []
    rest = iter(arguments)
    for word in rest:
        if word == "--rate":
            options[word] = int(next(rest))
        elif word in options:
            options[word] = True
        else:
            words.append(word)
    if words[0] == "receive":
        receive(words[1], int(words[2]), options["--answer"])
        return 0
    address, port, flows, count = words[1], int(words[2]), int(words[3]), int(words[4])
    return send(address, port, flows, count, words[5], options["--segment"], options["--rate"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
