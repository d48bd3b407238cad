"""What makes a console in a pilot cheap: some four hundred of them are started here, and thousands of keys pressed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.tui import settling


@pytest.fixture(scope="package", autouse=True)
def quick_pilots() -> Iterator[None]:
    with settling.quick_pilots():
        yield
