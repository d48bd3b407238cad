"""Which units `worktop logs` means, and what it writes of a line."""

from __future__ import annotations

import pytest

from console.cli.logs import units_of
from console.errors import ConfigError
from console.fleet.model import LogLine, Role
from console.host.log_query import mention_of
from console.view.log import record_text

ROLES = (
    Role(name="mail", template="mail-worker@.service"),
    Role(name="exports", template="exports-worker@.service"),
    Role(name="webhooks"),
)


@pytest.mark.parametrize(
    ("what", "units"),
    [
        ("mail", ("mail-worker@*.service",)),
        ("mail@2", ("mail-worker@2.service",)),
        ("cron.service", ("cron.service",)),
        ("mail-worker@2.service", ("mail-worker@2.service",)),
        (None, ("mail-worker@*.service", "exports-worker@*.service")),
    ],
)
def test_units(what: str | None, units: tuple[str, ...]) -> None:
    assert units_of(ROLES, what) == units


@pytest.mark.parametrize("what", ["webhooks", "nothing", "mail worker.service", "../x.service"])
def test_what_has_no_log(what: str) -> None:
    with pytest.raises(ConfigError):
        units_of(ROLES, what)


def test_nothing_has_a_unit() -> None:
    with pytest.raises(ConfigError, match="no role has a unit"):
        units_of((ROLES[2],), None)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("job 77 done", True),
        ("job=77", True),
        ("(77)", True),
        ("job 771 done", False),
        ("a-77 done", False),
        ("77x", False),
        ("x_77", False),
    ],
)
def test_a_job_is_mentioned_where_its_id_stands_alone(text: str, found: bool) -> None:
    assert bool(mention_of("77").search(text)) is found


def test_a_record_is_one_safe_line_with_secrets_masked() -> None:
    line = LogLine(at=1764434527.25, unit="mail@1.service", priority=3, text="a\x1b[2J\npassword=hunter2", pid=812)
    text = record_text(line)
    assert text.startswith("2025-11-29T16:42:07.250Z mail@1.service[812] error: a")
    assert "hunter2" not in text and "\x1b" not in text and "\n" not in text
