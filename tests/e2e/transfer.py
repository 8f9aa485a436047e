#!/usr/bin/env python3
"""Sends bytes over TCP and learns whether they arrived as they were.

    transfer.py serve ADDRESS PORT          one connection, then ends
    transfer.py send ADDRESS PORT BYTES     exit status 0 if the far end's SHA-256 is ours
"""

import hashlib
import os
import socket
import sys
import time

BLOCK = 1 << 20


def listen(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(1)
    return listener


def serve(address, port):
    listener = listen(address, port)
    listener.settimeout(30)
    connection, _ = listener.accept()
    connection.settimeout(60)
    digest = hashlib.sha256()
    while block := connection.recv(BLOCK):
        digest.update(block)
    connection.sendall(digest.digest())
    connection.close()


def connect(address, port):
    """The server may not listen yet."""
    end = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection((address, port), timeout=10)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def send(address, port, size):
    connection = connect(address, port)
    connection.settimeout(60)
    digest = hashlib.sha256()
    random = os.urandom(BLOCK)
    sent = 0
    while sent < size:
        # No two blocks are alike, so that one in the wrong place shows.
        block = (sent.to_bytes(8, "big") + random)[: min(BLOCK, size - sent)]
        digest.update(block)
        connection.sendall(block)
        sent += len(block)
    connection.shutdown(socket.SHUT_WR)
    answer = b""
    while more := connection.recv(64):
        answer += more
    if answer != digest.digest():
        sys.exit(f"{size} bytes to {address}: arrived changed, or not all of them")


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], int(sys.argv[3]))
    else:
        send(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
