"""A list whose items come as the answer to one question."""

from __future__ import annotations

from typing import Generic, TypeVar

from console.errors import Problem
from console.tui.asked import Asked
from console.tui.screens.list import ListScreen

T = TypeVar("T")
A = TypeVar("A")


class AskedListScreen(ListScreen[T], Generic[T, A]):
    """Items of type T, made from an answer of type A. It is asked when the screen is made; `ask_first` asks."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Asked[A] | None = None

    def on_mount(self) -> None:
        self.asked = Asked(self.console_app, self.heard)
        self.ask_first()

    def on_unmount(self) -> None:
        if self.asked is not None:
            self.asked.stop()

    def ask_first(self) -> None:
        self.asked_again()

    def heard(self) -> None:
        """It was asked, answered or refused."""
        self.show()

    @property
    def answer(self) -> A | None:
        """What was answered last."""
        return self.asked.value if self.asked is not None else None

    def failure(self) -> Problem | None:
        return self.asked.problem if self.asked is not None else None

    def asking(self) -> bool:
        return self.asked is not None and self.asked.asking and self.asked.value is None
