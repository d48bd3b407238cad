"""What a unit does not take over from its line is said."""

from __future__ import annotations

import pytest

from console.schedules.model import Source
from tests.schedules.case import explained

SOURCE = Source(kind="cron.d", path="/etc/cron.d/images")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("envdir /etc/images/env /srv/images/worker", "without `envdir /etc/images/env`"),
        ("chpst -u deploy -e /etc/images/env setsid /srv/images/worker", "EnvironmentFile="),
        ("chpst -u deploy -/ /srv/jail /bin/worker", "RootDirectory="),
        ("numactl --cpunodebind=0 /srv/images/worker", "NUMAPolicy="),
        ("/srv/images/worker --token sk_live_0123456789abcdef", "password or token of its command line"),
    ],
)
def test_what_is_lost_is_said(command: str, said: str) -> None:
    (found,) = explained(f"* * * * * deploy {command} &\n", SOURCE, {})
    assert any(said in warning for warning in found.warnings), found.warnings
    assert not any("sk_live" in warning for warning in found.warnings)


@pytest.mark.parametrize("command", ["/srv/images/worker", "chpst -u deploy /srv/images/worker", "nice /srv/worker"])
def test_nothing_is_said_of_what_the_unit_does_itself(command: str) -> None:
    (found,) = explained(f"* * * * * deploy {command} &\n", SOURCE, {})
    assert not any("without" in warning or "command line" in warning for warning in found.warnings)
