#!/usr/bin/env python3
"""Runs a command on a kernel that refuses: write(2) of more than BYTES bytes fails with EINVAL, as it does
for a TUN that takes no super-packets.

    refuse_writes.py BYTES COMMAND...
"""

import ctypes
import errno
import os
import platform
import struct
import sys

PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
SECCOMP_RET_ERRNO = 0x00050000
SECCOMP_RET_ALLOW = 0x7FFF0000
WRITE = {"x86_64": 1, "aarch64": 64}[platform.machine()]
# struct seccomp_data: nr, arch, instruction_pointer, args; the lower half of a 64-bit word first.
NR, SIZE_ARGUMENT = 0, 16 + 2 * 8
LOAD, JUMP_IF_EQUAL, JUMP_IF_GREATER, RETURN = 0x20, 0x15, 0x25, 0x06


def instruction(code, k, if_true=0, if_false=0):
    return struct.pack("HBBI", code, if_true, if_false, k)


def refuse_writes(limit):
    program = b"".join(
        [
            instruction(LOAD, NR),
            instruction(JUMP_IF_EQUAL, WRITE, 0, 3),
            instruction(LOAD, SIZE_ARGUMENT),
            instruction(JUMP_IF_GREATER, limit, 0, 1),
            instruction(RETURN, SECCOMP_RET_ERRNO | errno.EINVAL),
            instruction(RETURN, SECCOMP_RET_ALLOW),
        ]
    )
    memory = ctypes.create_string_buffer(program)
    fprog = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(memory))
    )
    libc = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    if (
        libc.prctl(PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero) != 0
        or libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), fprog) != 0
    ):
        sys.exit(f"cannot filter system calls: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    refuse_writes(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
