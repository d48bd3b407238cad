"""One heap for all threads, asked of the C library itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, sys, threading
from console import heap

if sys.argv[1] == "small":
    heap.keep_small()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
libc.malloc.restype = ctypes.c_void_p
barrier = threading.Barrier(4)


def work():
    barrier.wait()
    libc.malloc(1000)
    barrier.wait()


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
out = libc.fopen(b"/dev/stdout", b"w")
libc.malloc_info(0, ctypes.c_void_p(out))
libc.fflush(ctypes.c_void_p(out))
"""


@pytest.mark.parametrize(("how", "one"), [("small", True), ("as it is", False)])
def test_threads_share_one_heap(how: str, one: bool) -> None:
    told = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True).stdout
    heaps = told.count("<heap nr=")
    assert heaps >= 1 and (heaps == 1) is one
