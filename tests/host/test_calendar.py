"""Translations of cron expressions against the two that decide: cronsim and systemd-analyze."""

from __future__ import annotations

import datetime
import random
import time
from collections.abc import Callable
from zoneinfo import ZoneInfo

from console.host.calendar import Translated, compare, prove
from console.schedules.expression import FIELDS, CronExpression, parse
from console.schedules.oncalendar import on_calendar
from console.schedules.proof import AROUND, Window, read_calendar

UTC, BERLIN = ZoneInfo("UTC"), ZoneInfo("Europe/Berlin")
NOW = datetime.datetime(2026, 11, 29, 12, 0, tzinfo=datetime.UTC).timestamp()
EXPRESSIONS = 5000
INSTANTS = 8  # of each, and fifty, as before a unit is offered, of the first two hundred


def one_field(chance: random.Random, low: int, high: int, names: tuple[str, ...]) -> str:
    """Every form that cron takes: stars, steps, lists, names, ranges that run backwards, tails it passes over."""
    if chance.random() < 0.4:
        return "*"
    first = chance.randint(low, high)
    last = chance.randint(first if chance.random() < 0.95 else low, high)
    step = chance.randint(1, high + 5)
    forms = [
        f"{first}",
        f"{first}",
        f"{first}-{last}",
        f"{first}-{last}/{step}",
        f"*/{step}",
        "*/2",
        f"{first}-{first}/{step}",
    ]
    if names:
        forms += [chance.choice(names), chance.choice(names).upper(), "-".join(chance.choices(names, k=2))]
    if chance.random() < 0.05:
        forms += [f"{first}#1", f"{first}~{last}", "*5", f"0{first}"]
    return chance.choice(forms)


def random_expression(chance: random.Random) -> CronExpression:
    fields = (
        ",".join(
            one_field(chance, field.low, field.high, tuple(field.names)) for _ in range(chance.choice((1, 1, 1, 2, 3)))
        )
        for field in FIELDS
    )
    return parse(" ".join(fields))


def translated(expression: CronExpression, zone: ZoneInfo) -> Translated:
    return Translated(expression, on_calendar(expression, zone, NOW).lines)


async def test_random_expressions_fire_when_cron_fires(figure: Callable[[str], None]) -> None:
    chance, began = random.Random(20261129), time.monotonic()
    some = [translated(random_expression(chance), UTC) for _ in range(EXPRESSIONS)]
    proofs = await compare(some, UTC, [Window(after=int(NOW), count=INSTANTS)])
    proofs += await prove(some[:200], UTC, NOW)
    different = [(proof.lines, proof.problem, proof.differences[:3]) for proof in proofs if not proof.equal]
    figure(
        f"schedules: {EXPRESSIONS} random expressions ({sum(one.expression.fires for one in some)} fire), "
        f"{sum(proof.compared for proof in proofs)} instants of cronsim and systemd-analyze compared: "
        f"{len(different)} differences ({time.monotonic() - began:.1f} s)"
    )
    assert not different, different[:3]


async def test_what_differs_when_clocks_change_is_predicted(figure: Callable[[str], None]) -> None:
    chance = random.Random(1129)
    some = [translated(random_expression(chance), BERLIN) for _ in range(100)]
    some += [translated(parse(text), BERLIN) for text in ("30 2 * * *", "*/20 2 * * *", "*/5 * * * *", "0 2 * * sun")]
    proofs = await prove(some, BERLIN, NOW)
    listed = 0
    for one, proof in zip(some, proofs, strict=True):
        assert not proof.problem and len(proof.changes) == 2
        apart = [each for each in proof.differences if all(abs(each.at - change) > AROUND for change in proof.changes)]
        assert not apart, (one, apart)
        told = [each for each in on_calendar(one.expression, BERLIN, NOW).warnings if each.startswith("on ")]
        assert bool(told) == bool(proof.differences), (one, proof.differences, told)
        listed += len(proof.differences)
    figure(f"schedules: {len(some)} through two changes of Berlin's clocks: {listed} differences, all predicted")
    assert listed


async def test_the_differences_are_listed_in_local_time() -> None:
    (proof,) = await prove([translated(parse("30 2 * * *"), BERLIN)], BERLIN, NOW)
    assert [each.text for each in proof.differences] == ["2027-03-28 03:00 CEST: cron runs it, the timer does not"]
    (hourly,) = await prove([translated(parse("*/5 * * * *"), BERLIN)], BERLIN, NOW)
    assert hourly.equal and hourly.compared > 150
    daily = Translated(parse("0 3 * * mon"), ("*-*-* 03:00:00",))
    (wrong,) = await compare([daily], UTC, [Window(after=int(NOW), count=8)])
    assert [each.only for each in wrong.differences] == ["timer"] * 6, "eight days, of which two are Mondays"


async def test_a_line_systemd_refuses_is_a_problem() -> None:
    (proof,) = await prove([Translated(parse("*/90 * * * *"), ("*:0/90",))], UTC, NOW)
    assert not proof.equal and "0/90" in proof.problem
    (never,) = await prove([Translated(parse("0 0 30 2 *"), ("*-02-30 00:00:00",))], UTC, NOW)
    assert never.equal and not never.compared


def test_the_answer_of_systemd_is_read_in_utc() -> None:
    answer = """  Original form: daily
Normalized form: *-*-* 00:00:00
    Next elapse: Mon 2027-03-29 00:00:00 CEST
       (in UTC): Sun 2027-03-28 22:00:00 UTC
       From now: 3 months 27 days left
       Iter. #2: Tue 2027-03-30 00:00:00 CEST
       (in UTC): Mon 2027-03-29 22:00:00 UTC

Normalized form: *-02-30 00:00:00
    Next elapse: never
Normalized form: *-*-* *:17:00 UTC
    Next elapse: Sat 2027-03-27 12:17:00 UTC
"""
    found = read_calendar(answer)
    assert [len(instants) for instants in found] == [2, 0, 1]
    assert found[0][1] - found[0][0] == 86400 and found[2][0] == 1806149820
