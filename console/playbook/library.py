"""Where playbooks are: shipped with worktop, of this machine, of this account; the later one of a name wins."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from console.errors import ConfigError
from console.playbook.kinds import Registry
from console.playbook.model import Flaw, Playbook, Shelved
from console.playbook.reader import LONGEST, read

OF_MACHINE = Path("/etc/worktop/playbooks")
_NO_PLAYBOOK = "README.md"


def folders(environment: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """The first has the shipped ones."""
    base = environment.get("XDG_CONFIG_HOME", "")
    home = environment.get("HOME", "")
    own = Path(base) if base.startswith("/") else Path(home) / ".config" if home.startswith("/") else None
    return (shipped(), OF_MACHINE, *([own / "worktop" / "playbooks"] if own is not None else []))


def shipped() -> Path:
    """In the package; in a checkout, at its top."""
    package = Path(__file__).parents[1]
    installed = package / "playbooks"
    return installed if installed.is_dir() else package.parent / "playbooks"


class Library:
    """The playbooks that can be run."""

    def __init__(self, registry: Registry, places: Sequence[Path]) -> None:
        self._registry = registry
        self._places = tuple(places)

    def shelf(self) -> tuple[Shelved, ...]:
        """Every file by its name; those with flaws too."""
        found: dict[str, Shelved] = {}
        for folder in self._places:
            for path in sorted(folder.glob("*.md")) if folder.is_dir() else ():
                if path.name != _NO_PLAYBOOK:
                    each = self.check(path)
                    found[each.name] = each
        return tuple(found[name] for name in sorted(found))

    def check(self, path: Path) -> Shelved:
        """Read one file. ConfigError: it cannot be read at all."""
        try:
            with path.open("rb") as file:
                data = file.read(LONGEST + 1)
        except OSError as error:
            raise ConfigError(f"playbook {path}", (error.strerror or str(error)).lower()) from None
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            return Shelved(name=path.stem, path=str(path), flaws=(Flaw(path=str(path), line=line, text="no UTF-8"),))
        book, flaws = read(text, str(path), self._registry)
        return Shelved(name=book.name if book is not None else path.stem, path=str(path), playbook=book, flaws=flaws)

    def book(self, name: str) -> Playbook:
        """By name, or by the path of a file. ConfigError: there is none, or it has flaws."""
        found = (
            self.check(Path(name)) if "/" in name else next((each for each in self.shelf() if each.name == name), None)
        )
        if found is None:
            known = ", ".join(each.name for each in self.shelf()) or "none"
            raise ConfigError(f"playbook {name}", f"there is no such playbook; there are: {known}")
        if found.playbook is None:
            more = f" (and {len(found.flaws) - 1} more)" if len(found.flaws) > 1 else ""
            first = found.flaws[0]
            raise ConfigError(
                f"{first.path}:{first.line}", f"{first.text}{more}", f"worktop playbook check {found.path} tells all"
            )
        return found.playbook

    def as_it_was(self, text: str, path: str) -> Playbook:
        """The playbook of a run, as it was when the run began. ConfigError: this worktop does not know a word of it."""
        book, flaws = read(text, path, self._registry)
        if book is None:
            raise ConfigError(f"{path}:{flaws[0].line}", flaws[0].text, "the run was begun by another worktop")
        return book
