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


ENTERED = """
import sys
from console.__main__ import main

try:
    main()
except SystemExit as end:
    assert not end.code, end.code
import asyncio, hashlib, hmac, secrets

assert hashlib.sha256(b"worktop").hexdigest().startswith("508798ab6e817f6b")
assert hmac.new(b"a", b"b", "sha256").hexdigest().startswith("08de329931e29568")
with open("/proc/self/maps") as maps:
    print("crypto" in maps.read(), hasattr(hashlib, "scrypt"))
import ssl

assert ssl.create_default_context().verify_mode == ssl.CERT_REQUIRED, "whoever asks for it has it"
"""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--version"], "False False"),
        (["agent", "--help"], "False False"),
        (["--read-only", "--version"], "False False"),
        (["--config", "/nowhere.toml", "--version"], "False False"),
        (["--config", "worker", "agent", "--help"], "False False"),
        (["worker", "--help"], "True True"),  # its handlers are other people's code
        (["--config", "agent", "worker", "--help"], "True True"),
        (["status", "--help"], "True True"),
    ],
)
def test_console_and_agent_do_without_openssl_and_the_worker_has_it(arguments: list[str], told: str) -> None:
    done = subprocess.run([sys.executable, "-c", ENTERED, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == told


def test_the_binding_of_sd_bus_is_loaded_without_lxml() -> None:
    program = """
import sys
from console.host import bus

assert bus.unit_of_path(bus.unit_path("mail-worker@1.service")) == "mail-worker@1.service"
assert "lxml" not in sys.modules and "pystemd.base" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
