"""The gate from data to display: nothing dangerous passes, nothing secret passes, columns are what they say."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from console.text import (
    MASK,
    clean,
    clean_block,
    columns,
    duration,
    fit,
    grouped,
    mask,
    mask_arguments,
    pad,
    size,
    visible,
)

HOSTILE = "\x1b[31mred\x1b[0m \x1b]52;c;ZXZpbA==\x07 [/red] \u202eevil\u2066 \x9b31m \x00 \x7f"


@given(st.text())
@example(HOSTILE)
@example("a\u0301\u0301\u0301\u0301\u0301")
def test_no_control_format_or_bidirectional_character_passes(text: str) -> None:
    for char in visible(text):
        assert unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(st.text())
@example(HOSTILE)
def test_visible_is_idempotent(text: str) -> None:
    assert visible(visible(text)) == visible(text)


@given(st.text(), st.integers(0, 200))
def test_fit_and_pad_keep_the_columns(text: str, width: int) -> None:
    line = clean(text, width)
    assert columns(line) <= width
    assert columns(pad(line, width)) == width


@given(st.text())
def test_clean_is_one_line(text: str) -> None:
    assert len(clean(text).splitlines()) <= 1


@given(st.text())
def test_clean_block_keeps_only_line_ends(text: str) -> None:
    for char in clean_block(text):
        assert char == "\n" or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_wide_characters_take_two_columns() -> None:
    assert columns("日本") == 4
    assert fit("日本語", 5) == "日本…"
    assert pad("日", 4) == "日  "


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("postgresql://app:s3cr%40et@db/app", "s3cr%40et"),
        ("redis://:hunter2@cache:6379/0", "hunter2"),
        ('{"api_token": "tok-12345", "user": "u"}', "tok-12345"),
        ('{"api_token": "a\\"b-secret", "user": "u"}', "b-secret"),
        ("{'password': 'x y z'}", "x y z"),
        ("DB_PASSWORD=hunter2 run", "hunter2"),
        ("worker --token hunter2 --role mail", "hunter2"),
        ("worker --token=hunter2 --role mail", "hunter2"),
        ("worker --token-file hunter2", "hunter2"),
        ("Authorization: Bearer abcdefgh.ijkl", "abcdefgh.ijkl"),
        ("authorization: basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("key is ghp_abcdefghijklmnopqrstuvwxyz0123", "ghp_abc"),
        ("AKIAABCDEFGHIJKLMNOP", "AKIAABCDEFGHIJKLMNOP"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "eyJzdWIi"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "MIIE"),
        ("dsn host=db password=hunter2 user=app", "hunter2"),
        ("client_secret: hunter2", "hunter2"),
        ('Environment="DB_PASSWORD=correct horse battery" "X=1"', "horse"),
        ("sh -c 'API_TOKEN=\"a b\" run'", "a b"),
        ('raise RuntimeError("password=hunter2 is wrong")', "hunter2"),
    ],
)
def test_secrets_are_masked(text: str, secret: str) -> None:
    assert secret not in mask(text)
    assert MASK in mask(text)
    assert mask(mask(text)) == mask(text)


@pytest.mark.parametrize(
    "text",
    [
        "worker --role mail --lease 60",
        "KeyError: 'BUCKET'",
        "tokenizer finished in 3 s",
        "bot --token-file /etc/bot.token --password-file=./pw",
        "PGPASSFILE=/home/deploy/.pgpass",
        "https://example.org/a?b=c",
        "keyboard: us",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask(text) == text


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=300))
def test_masking_never_fails_and_is_idempotent(text: str) -> None:
    once = mask(text)
    assert mask(once) == once


def test_quantities() -> None:
    assert [size(n) for n in (None, 0, 999, 44 * 1024**2, 1536 * 1024**2, 1024**3)] == [
        "?",
        "0B",
        "999B",
        "44M",
        "1.5G",
        "1G",
    ]
    assert [duration(s) for s in (None, 0, 41, 1102, 3730, 280000)] == [
        "?",
        "0:00",
        "0:41",
        "18:22",
        "1:02:10",
        "3d 5h",
    ]
    assert grouped(1204) == "1 204"


@pytest.mark.parametrize("unit", ["x", "-", '"', '"token=', "token=x ", "://a:", '"token=\\', "a.b-", "eyJ"])
def test_masking_takes_time_in_proportion_to_the_text(unit: str) -> None:
    """A payload must not stop the console: these took minutes when a pattern looked ahead without bound."""
    began = time.process_time()
    mask(unit * (65_536 // len(unit)))
    assert time.process_time() - began < 5.0


def test_the_value_of_an_option_is_masked_where_it_is_an_argument_of_its_own() -> None:
    given = ("/srv/run", "--token", "hunter2", "--loop", "--token-file", "/etc/t", "--api-key=hunter2", "-v", "token")
    masked = ("/srv/run", "--token", "••••", "--loop", "--token-file", "/etc/t", "--api-key=••••", "-v", "token")
    assert mask_arguments(given) == masked == mask_arguments(masked)
