"""What the makers of plans collect for the person: why, what to mind, what must be agreed to, what is refused."""

from __future__ import annotations

from console.fleet.model import Claim
from console.fleet.plan import Consent


class Remarks:
    """Sentences, in the order they were found."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.warnings: list[str] = []
        self.claims: list[Claim] = []
        self.typed: list[str] = []  # why the role's name must be typed
        self.refused: list[str] = []
        self.allow: list[str] = []  # what would allow what is refused

    def refuse(self, consent: Consent | None, prefix: str = "") -> None:
        """None: it is not refused."""
        if consent is not None:
            self.refused += [prefix + reason for reason in consent.why]
            self.allow += consent.allow

    def consent(self, role: str, *, empty: bool = False) -> Consent:
        """What the person must do. `empty`: it is refused because there is nothing to do."""
        if self.refused:
            why, allow = tuple(dict.fromkeys(self.refused)), tuple(dict.fromkeys(self.allow))
            return Consent(kind="refused", empty=empty, why=why, allow=allow)
        if self.typed:
            return Consent(kind="typed", word=role or "all", why=tuple(dict.fromkeys(self.typed)))
        return Consent()
