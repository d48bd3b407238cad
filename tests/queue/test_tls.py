"""TLS of the console's database: its process has loaded psycopg without Python's ssl (console/heap.py).

The server of the tests is built without TLS, so the other end here is a TLS socket that speaks as much of PostgreSQL's
protocol as comes before and right after the handshake: whether libpq has its OpenSSL set up shows there.
"""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import pytest

PROGRAM = """
import sys
from console import heap

heap.without_openssl()
if sys.argv[2] == "without":
    heap.load_without("ssl", "psycopg")
import psycopg

print(psycopg.pq.__impl__, "ssl" in sys.modules)
try:
    psycopg.connect(sys.argv[1])
except psycopg.OperationalError as error:
    print(error)
"""
_SSL_REQUEST = bytes.fromhex("0000000804d2162f")
_REFUSED = b"SFATAL\0C28000\0Mno such role here\0\0"


@pytest.fixture
def certificate(tmp_path: Path) -> ssl.SSLContext:
    made, key = tmp_path / "server.crt", tmp_path / "server.key"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*make, "-keyout", str(key), "-out", str(made)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    return context


@pytest.mark.parametrize(("how", "told"), [("without", "binary False"), ("with", "binary True")])
def test_libpq_speaks_tls_with_and_without_pythons_ssl(certificate: ssl.SSLContext, how: str, told: str) -> None:
    versions: list[str | None] = []
    heard: list[bytes] = []

    def serve(listening: socket.socket) -> None:
        plain, _ = listening.accept()
        heard.append(plain.recv(8))
        plain.sendall(b"S")
        with certificate.wrap_socket(plain, server_side=True) as secured:
            versions.append(secured.version())
            heard.append(secured.recv(4096))
            secured.sendall(b"E" + (len(_REFUSED) + 4).to_bytes(4) + _REFUSED)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(20)
        served = threading.Thread(target=serve, args=(listening,))
        served.start()
        dsn = f"host=127.0.0.1 port={listening.getsockname()[1]} user=nobody dbname=app sslmode=require"
        done = subprocess.run([sys.executable, "-c", PROGRAM, dsn, how], capture_output=True, text=True)
        served.join(20)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == told
    assert (heard[0], versions) == (_SSL_REQUEST, ["TLSv1.3"])
    assert b"user\0nobody\0database\0app\0" in heard[1]
    assert "no such role here" in done.stdout
