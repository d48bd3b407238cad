"""Several files into the demo host with one command."""

from __future__ import annotations

import io
import tarfile

from tests.conftest import DemoHost


def archive(files: dict[str, str]) -> str:
    """A tar file in hexadecimal, to be unpacked inside with one command."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text.encode()), 0o755 if text.startswith("#!") else 0o644
            tar.addfile(entry, io.BytesIO(text.encode()))
    return data.getvalue().hex()


def unpack(host: DemoHost, folder: str, files: dict[str, str]) -> None:
    """Make the folder inside and put the files into it; scripts can be executed."""
    script = f"mkdir -p {folder}; python3 -c 'import sys; sys.stdout.buffer.write(bytes.fromhex(sys.stdin.read()))'"
    host.run(["sh", "-c", f"{script} | tar -x -C {folder}"], input=archive(files))
