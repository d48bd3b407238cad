"""worktop.toml: what is read, and that every error names file, key, what was found and what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.config import Config, load, parse
from console.errors import ConfigError

WHOLE = """
[database]
dsn = "postgresql://app:hunter2@db/app"
schema = "jobs"

[host]
manager = "user"
agent = ["sudo", "-n", "worktop", "agent"]
reserve = "1.5G"
account_processes = 400

[roles.mail]
unit = "mail-worker@.service"
instances = 3
budget = 8
match = "--role mail"
oldest = "1h 30min"
progress = 90
health = ["/usr/bin/check", "%i"]

[roles.hooks]
queue = ["hooks", "hooks-slow"]
instances = ["eu"]
"""


def test_a_health_check_is_a_command_an_address_or_finished_jobs() -> None:
    for written, read in (
        ('"curl -fsS localhost"', ("curl", "-fsS", "localhost")),
        ('"finishes jobs"', ("finishes jobs",)),
        ('"https://x/a b"', ("https://x/a b",)),
    ):
        assert parse(f"[roles.mail]\nhealth = {written}").roles[0].health == read


def test_a_whole_file() -> None:
    config = parse(WHOLE)
    mail, hooks = config.roles
    assert mail.desired_units() == tuple(f"mail-worker@{n}.service" for n in (1, 2, 3))
    assert (mail.queues, mail.match, mail.oldest_limit, mail.progress_limit) == (
        ("mail",),
        ("--role mail",),
        5400.0,
        90.0,
    )
    assert (hooks.queues, hooks.instances, hooks.desired_units()) == (("hooks", "hooks-slow"), ("eu",), ())
    assert (mail.health, hooks.health) == (("/usr/bin/check", "%i"), ())
    assert config.limits.memory_reserve == 1536 * 1024**2
    assert config.agent[0] == "sudo"
    assert config.database.configured
    assert "hunter2" not in repr(config)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('[roles.mail]\nbudget = "x"', ("roles.mail.budget", "'x'", "int")),
        ("[roles.a]\nbudget = 1\n[roles.b]\nbudget = []", ("roles.b.budget", "[]")),
        ('[roles.mail]\nhealth = "curl \'x"', ("roles.mail.health", "No closing quotation")),
        ("[roles.mail]\nbudgets = 3", ("roles.mail.budgets", "unknown key", "budget, health, instances")),
        ("foo = 1", ("foo", "unknown key", "database, host, roles")),
        ("[database]\ndsn = 3", ("database.dsn", "str")),
        ('[roles.mail]\noldest = "3 parsecs"', ("roles.mail.oldest", "3 parsecs", "15min")),
        ('[roles.mail]\nunit = "mail.service"', ("roles.mail.unit", "mail.service", "template unit")),
        ("[roles.mail]\ninstances = -1", ("roles.mail.instances", "-1", "0 to 1000")),
        ('[roles.mail]\nmatch = "("', ("roles.mail.match", "regular expression")),
        ('[host]\nreserve = "lots"', ("host.reserve", "lots", "512M")),
        ('[host]\nmanager = "both"', ("host.manager", "both")),
        ("[database]\ndsn = 'a'\nservice = 'b'", ("database", "both dsn and service")),
        ("x =", ("not TOML",)),
    ],
)
def test_errors_name_file_key_found_and_expected(text: str, parts: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, "/etc/worktop/worktop.toml")
    message = str(caught.value)
    assert message.startswith("/etc/worktop/worktop.toml")
    assert "\n" not in message.strip()
    for part in parts:
        assert part in message


def test_the_password_of_a_dsn_is_in_no_error() -> None:
    with pytest.raises(ConfigError) as caught:
        parse('[database]\ndsn = ["postgresql://app:hunter2@db/app"]')
    assert "hunter2" not in str(caught.value)


def test_a_named_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load(str(tmp_path / "missing.toml"))


def test_no_file_and_no_environment_is_no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("WORKTOP_CONFIG", "PGHOST", "PGHOSTADDR", "PGSERVICE", "PGDATABASE", "PGUSER"):
        monkeypatch.delenv(name, raising=False)
    assert not load().database.configured
    monkeypatch.setenv("PGSERVICE", "app")
    assert load().database.configured


@given(st.text())
def test_any_text_is_a_configuration_or_a_clear_error(text: str) -> None:
    try:
        assert isinstance(parse(text), Config)
    except ConfigError as error:
        assert error.problem.why
