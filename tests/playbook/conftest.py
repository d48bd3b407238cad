"""Playbooks on a real database: their actions are the real ones."""

from __future__ import annotations

from tests.actions.conftest import agent, sleepers, world

__all__ = ["agent", "sleepers", "world"]
