#!/usr/bin/python3
"""Holds a capture against others' eyes: Wireshark's, which must find nothing malformed, and scapy's,
which computes the invariant CRC of IPv4 packets by itself.

    check_capture.py CAPTURE OUR-ADDRESS

Run by Debian's own python3, which is where the package python3-scapy puts scapy.

Exit status 1, and a line that says why, when something is wrong.
"""

import logging
import struct
import subprocess
import sys

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)

from scapy.contrib.roce import BTH  # noqa: E402
from scapy.layers.inet import IP  # noqa: E402
from scapy.utils import PcapReader  # noqa: E402

# Management datagrams are few and all looked at; of the rest, so many.
MOST = 3000


def malformed(capture):
    shown = subprocess.run(
        ["tshark", "-r", capture, "-Y", "_ws.malformed"],
        capture_output=True, text=True, check=True).stdout
    return shown.splitlines()


def wrong_sums(capture, ours):
    checked = {True: 0, False: 0}
    wrong = []
    for number, packet in enumerate(PcapReader(capture), 1):
        if IP not in packet or BTH not in packet:
            continue
        bth = packet[BTH]
        from_us = packet[IP].src == ours
        if bth.dqpn != 1 and checked[from_us] >= MOST:
            continue
        checked[from_us] += 1
        if struct.pack("!I", bth.icrc) != bth.compute_icrc(b""):
            wrong.append(f"packet {number} from {packet[IP].src}")
    return checked, wrong


def main():
    capture, ours = sys.argv[1:]
    bad = malformed(capture)
    if bad:
        print(f"{len(bad)} packets that tshark finds malformed, the first: {bad[0].strip()}")
        return 1
    checked, wrong = wrong_sums(capture, ours)
    if wrong:
        print(f"{len(wrong)} ICRCs that scapy finds wrong, the first: {wrong[0]}")
        return 1
    if not checked[True] or not checked[False]:
        print("the capture holds no IPv4 packet of one side")
        return 1
    print(f"{checked[True]} packets of ours and {checked[False]} of theirs checked", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
