"""Everything about one job."""

from __future__ import annotations

import json
from datetime import UTC, timedelta, timezone

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.fleet.model import Claim, Holder, Job
from console.view.cells import part_columns, plain
from console.view.glyphs import UNICODE
from console.view.job import folds, job_sections, moment, title_parts
from console.view.sections import Section, section_lines
from tests.examples import BOOT, NOW
from tests.tui.hostile import HOSTILE, harmless
from tests.view import anything

RUNNING = Job(
    id="918233",
    queue="thumbnails",
    type="resize",
    state="running",
    attempts=3,
    max_attempts=3,
    priority=5,
    created=NOW - 7200,
    run_after=NOW - 7100,
    started=NOW - 2000,
    running_for=2000.0,
    lease_expires=NOW - 1862,
    heartbeat_age=1890.0,
    overdue=1862.0,
    holder=Holder(host="wrk01", unit="thumbnails-worker@3.service", pid=812, start=99, boot_id=BOOT),
    error="Traceback (most recent call last):\n\tFile x.py\nKeyError: 'BUCKET'",
    payload=json.dumps({"file": "a.png", "password": "hunter2", "width": 200}),
    payload_size=54,
)
DEAD = Claim(job=RUNNING, role="thumbnails", verdict="DEAD", evidence=("pid 812 is another process now",), stuck=True)


def text_of(sections: tuple[Section, ...]) -> str:
    return "\n".join(plain(line) for line in section_lines(sections))


def sections(job: Job, claim: Claim | None = None, width: int = 80, folded: bool = True) -> tuple[Section, ...]:
    return job_sections(job, claim, "thumbnails", width, UNICODE, NOW, UTC, folded)


def test_a_stuck_job() -> None:
    assert (
        text_of(sections(RUNNING, DEAD))
        == """\
JOB
role       thumbnails
type       resize
attempts   3 of 3  priority 5
created    2025-11-29 14:42:07 UTC, 2:00:00 ago
due        2025-11-29 14:43:47 UTC, 1:58:20 ago
started    2025-11-29 16:08:47 UTC, 33:20 ago
runs for   33:20 by the database's clock

HOLDER
held by    thumbnails-worker@3 pid 812  on wrk01
verdict    DEAD
           • pid 812 is another process now
heartbeat  31:30 ago
lease      ran out 31:02 ago by the database's clock
until      2025-11-29 16:11:05 UTC, 31:02 ago

ERROR
Traceback (most recent call last):
    File x.py
KeyError: 'BUCKET'

PAYLOAD
54B
{
  "file": "a.png",
  "password": "••••",
  "width": 200
}"""
    )


def test_a_waiting_and_a_done_job() -> None:
    waiting = Job(id="1", queue="mail", run_after=NOW + 130, waiting_for=-130.0)
    assert text_of(sections(waiting)) == (
        "JOB\nrole       thumbnails  queue mail\nattempts   0\ndue        2025-11-29 16:44:17 UTC, in 2:10"
    )
    done = Job(id="1", queue="thumbnails", state="done", started=NOW - 62, finished=NOW - 60.5)
    assert "took       1.50 s" in text_of(sections(done))


def test_times_are_local_with_their_zone() -> None:
    assert moment(NOW, NOW + 250, timezone(timedelta(hours=2), "EET")) == "2025-11-29 18:42:07 EET, 4:10 ago"
    assert moment(None, NOW, UTC) == ""
    assert moment(float("inf"), NOW, UTC) == "infinity"
    assert moment(float("-inf"), NOW, UTC) == "outside the calendar"
    assert moment(1e18, NOW, UTC) == "outside the calendar"
    assert "16:42" in moment(NOW, NOW, UTC)


def test_nobody_knows_the_holder() -> None:
    text = text_of(sections(msgspec.structs.replace(RUNNING, holder=None, overdue=None, heartbeat_age=None)))
    assert "held by    nobody" in text
    assert "verdict    not judged" in text
    assert "lease      the row has none" in text


def test_a_large_payload_is_folded() -> None:
    payload = json.dumps({f"key{n}": "x" * 40 for n in range(1000)})
    job = msgspec.structs.replace(RUNNING, payload=payload, payload_size=len(payload))
    assert folds(job)
    folded, whole = sections(job)[-1].lines, sections(job, folded=False)[-1].lines
    assert plain(folded[0]) == "53K, e shows more"
    assert len(folded) == 14
    assert plain(folded[-1]) == "… 990 more lines"
    assert plain(whole[0]) == "53K, e shows less"
    assert len(whole) == 1003


def test_a_payload_that_was_cut_says_so() -> None:
    cut = json.dumps({"text": "x" * 100_000})[:65536]
    job = msgspec.structs.replace(RUNNING, payload=cut, payload_size=1_048_576)
    assert plain(sections(job)[-1].lines[0]) == "1M, here the first 65 536 characters, e shows more"
    assert len(sections(job)[-1].lines) == 14


def test_a_payload_that_is_no_json() -> None:
    job = msgspec.structs.replace(RUNNING, payload="\x1b[31mred, token=abc", payload_size=20)
    assert "␛[31mred, token=••••" in text_of(sections(job))


def test_titles() -> None:
    assert plain(title_parts(RUNNING, DEAD, "3 of 7", 80)) == "job 918233  running, stuck  resize  3 of 7"
    assert plain(title_parts(RUNNING, None, "3 of 7", 34)) == "job 918233  running  resize"


def test_hostile_texts() -> None:
    for text in HOSTILE:
        job = Job(
            id=text,
            queue=text,
            type=text,
            state="running",
            error=text,
            payload=text,
            holder=Holder(host=text, unit=text),
        )
        check(job, Claim(job=job, role=text, verdict="HUNG", evidence=(text,)), text, 40)


@given(anything.jobs, st.one_of(st.none(), anything.claims), anything.texts, st.integers(1, 130))
@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_anything_in_any_field(job: Job, claim: Claim | None, role: str, width: int) -> None:
    check(job, claim, role, width)


def check(job: Job, claim: Claim | None, role: str, width: int) -> None:
    for folded in (True, False):
        for line in section_lines(job_sections(job, claim, role, width, UNICODE, NOW, UTC, folded))[1:]:
            assert harmless(plain(line))
            assert "hunter2" not in plain(line)
    parts = title_parts(job, claim, "1 of 2", width)
    assert harmless(plain(parts))
    for section in job_sections(job, claim, role, max(20, width), UNICODE, NOW, UTC, True):
        assert all(part_columns(line) <= max(20, width) for line in section.lines[:5])
