"""A filter of system calls that no honest command makes, and that holes in kernels are mostly reached by (threat T13).

It is a small program for the kernel, put together here for the machines that we know the numbers of; elsewhere there is
none, and the other walls stand alone.
"""

import contextlib
import os
import platform
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

_LOAD, _IS, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050001, 0x80000000  # refused as not permitted
_OTHER_ABI: Final = 0x40000000
# Of sockets those within the sandbox, which has no network: AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. Of others not all
# belong to a network namespace: by AF_VSOCK one reaches the machine below a virtual one.
_SOCKET: Final[Mapping[str, int]] = {"x86_64": 41, "aarch64": 198}
_FAMILIES: Final = (1, 2, 10, 16)

# The number of the architecture, then system calls: ptrace, process_vm_*, keys, bpf, perf_event_open, userfaultfd,
# io_uring, mounts and namespaces, handles, modules, kexec, what else only administrators need, and memory that belongs
# to no process and no folder, so that no limit counts it: memfd_create, shmget.
_REFUSED: Final[Mapping[str, tuple[int, Sequence[int]]]] = {
    "x86_64": (
        0xC000003E,
        (
            *(101, 310, 311, 248, 249, 250, 321, 298, 323, 425, 426, 427, 165, 166, 155, 308, 272, 303, 304),
            *(428, 429, 430, 431, 432, 433, 442, 175, 176, 313, 246, 320, 169, 167, 168, 163, 300, 179, 103, 135),
            *(319, 29),
        ),
    ),
    "aarch64": (
        0xC00000B7,
        (
            *(117, 270, 271, 217, 218, 219, 280, 241, 282, 425, 426, 427, 40, 39, 41, 268, 97, 264, 265),
            *(428, 429, 430, 431, 432, 433, 442, 105, 106, 273, 104, 294, 142, 224, 225, 89, 262, 60, 116, 92),
            *(279, 194),
        ),
    ),
}


@contextlib.contextmanager
def program() -> Iterator[int | None]:
    """Give a descriptor from which bubblewrap reads the filter; None when there is none for this machine."""
    code = _code(platform.machine())
    if code is None:
        yield None
        return
    descriptor = os.memfd_create("filter", 0)
    try:
        os.write(descriptor, code)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


@cache
def _code(machine: str) -> bytes | None:
    if machine not in _REFUSED:
        return None
    architecture, numbers = _REFUSED[machine]
    steps = [
        (_LOAD, 0, 0, 4),  # the architecture
        (_IS, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),  # the number
        (_AT_LEAST, len(numbers) + len(_FAMILIES) + 3, 0, _OTHER_ABI),
        *((_IS, len(numbers) - place + len(_FAMILIES) + 2, 0, number) for place, number in enumerate(numbers)),
        (_IS, 1, 0, _SOCKET[machine]),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, 16),  # the first argument: the family
        *((_IS, len(_FAMILIES) - place, 0, family) for place, family in enumerate(_FAMILIES)),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
