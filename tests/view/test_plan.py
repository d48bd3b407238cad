"""A plan as lines: what is read, that it fits, and that nothing of it can harm a terminal."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from console.errors import Problem
from console.fleet.model import Claim, Count, Holder, Job
from console.fleet.plan import Blocked, Consent, Outcome, Plan, Progress, Statement, Step, StepOutcome
from console.text import columns
from console.view.cells import part_columns, plain
from console.view.glyphs import ASCII, UNICODE
from console.view.plan import consent_lines, lines_text, outcome_lines, plan_lines, plan_text, progress_parts
from tests.tui.hostile import HOSTILE, harmless, spoil

JOB = Job(id="12", queue="mail", type="send", state="running", attempts=2, max_attempts=3, running_for=95.0)
PLAN = Plan(
    id="20261129T203107Z-3f2a91",
    made=1.0,
    verb="reclaim",
    title="Reclaim 2 jobs of mail",
    role="mail",
    rows=Count(2),
    reasons=("the holder is proved dead",),
    warnings=("mail-worker@1.service (pid 8) keeps 1 job: its lease is valid for another 7 s",),
    claims=(
        Claim(
            job=Job(id="12", holder=Holder(unit="mail-worker@3.service", pid=812)),
            role="mail",
            verdict="DEAD",
            evidence=("pid 812 no longer exists",),
        ),
    ),
    samples=(JOB,),
    behind=("3 jobs wait for the lock report-7",),
    late_finish="rejected",
    steps=(
        Step(
            kind="sql",
            title="return 2 jobs to waiting",
            statement=Statement(sql="UPDATE jobs\n  SET lease_token = NULL", parameters=(("batch", "1000"),)),
            rows=Count(2),
            undo="worktop undo",
        ),
    ),
    command="worktop reclaim --role mail",
    psql="UPDATE jobs SET lease_token = NULL;",
    why="out of memory",
)
OUTCOME = Outcome(
    plan=PLAN.id,
    state="partly",
    text="returned to waiting: 1 job",
    steps=(StepOutcome(state="done", text="1 job in 1 batch", rows=1, took=0.2, problem=Problem("a", "b", "c")),),
    rows=1,
    blocked=(Blocked(id="13", why="job 14 has its key", by="14", choices=("worktop discard --id 13",)),),
    verified=("1 of 1 job that was looked at waits again",),
    not_verified=("no worker of the role runs now",),
    undo=f"worktop undo {PLAN.id}",
)


def test_what_is_read() -> None:
    assert lines_text(plan_lines(PLAN, 78, UNICODE, "brief")) == (
        """\
Reclaim 2 jobs of mail                               risk: low · can be undone
the holder is proved dead
▲ mail-worker@1.service (pid 8) keeps 1 job: its lease is valid for another 7
  s

HOLDER
  DEAD    mail-worker@3 pid 812  job 12
          pid 812 no longer exists

STEPS
  1 return 2 jobs to waiting  2 rows
      undone by: worktop undo

JOBS 1 of 2
  12  send  2 of 3 tries  runs 1:35

behind them  3 jobs wait for the lock report-7
late finish  rejected: a former holder that ends its job after all changes
             nothing
why          out of memory
command      worktop reclaim --role mail"""
    )
    whole = plan_text(PLAN)
    assert "SET lease_token = NULL" in whole and "batch = 1000" in whole, "its own SQL is shown as it is run"


def test_a_change_of_a_file_tells_new_lines_from_old_ones() -> None:
    text = "--- /etc/x\n+++ /etc/x\n@@ -1,2 +1,2 @@\n a\n-b [red]\n+c"
    plan = msgspec.structs.replace(PLAN, steps=(Step(kind="file", title="write /etc/x", text=text),))
    assert tones_of(plan) == {"--- /etc/x": "dim", "+++ /etc/x": "dim", "a": "dim", "-b [red]": "bad", "+c": "ok"}
    other = msgspec.structs.replace(plan, steps=(Step(kind="file", title="write", text="-b [red]\n+c"),))
    assert tones_of(other) == {"-b [red]": "dim", "+c": "dim"}


def tones_of(plan: Plan) -> dict[str, str]:
    """How the lines of the file are toned."""
    toned = {plain(line).strip(): line[-1][1] for line in plan_lines(plan, 78, UNICODE) if line}
    return {text: tone for text, tone in toned.items() if text in ("--- /etc/x", "+++ /etc/x", "a", "-b [red]", "+c")}


def test_what_is_asked() -> None:
    assert consent_lines(Consent(), 80) == ()
    typed = lines_text(consent_lines(Consent(kind="typed", word="mail", why=("it may live",)), 80))
    assert typed == "▲ it may live\ntype mail to go on"
    refused = Consent(kind="refused", why=("no right",), allow=("GRANT UPDATE ON jobs TO ann;",))
    assert lines_text(consent_lines(refused, 80)).splitlines() == [
        "× refused",
        "  no right",
        "  allowed by",
        "    GRANT UPDATE ON jobs TO ann;",
    ]


def test_what_came_of_it() -> None:
    text = lines_text(outcome_lines(PLAN, OUTCOME, 100))
    assert text.startswith("partly  returned to waiting: 1 job\n  1 done    1 job in 1 batch  0.2 s")
    for part in ("13  job 14 has its key  (job 14)", "worktop discard --id 13", f"worktop undo {PLAN.id}"):
        assert part in text
    now = Progress(step=0, done=120, total=Count(412), per_second=850.4, remaining=1.0)
    assert plain(progress_parts(PLAN, now, 80)).startswith("1/1 return 2 jobs to waiting  120 of 412  850/s")


@pytest.mark.parametrize("width", [20, 40, 80, 132])
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_within_its_lines(text: str, width: int) -> None:
    plan: Any = spoil(PLAN, text)
    outcome: Any = spoil(OUTCOME, text)
    for glyphs in (UNICODE, ASCII):
        lines = (
            *plan_lines(plan, width, glyphs),
            *consent_lines(Consent(kind="typed", word=text, why=(text,)), width, glyphs),
            *consent_lines(Consent(kind="refused", why=(text,), allow=(text,)), width, glyphs),
            *outcome_lines(plan, outcome, width, glyphs),
        )
        for line in lines:
            assert part_columns(line) <= width and harmless(plain(line)), plain(line)
    assert columns(plain(progress_parts(plan, Progress(step=0, text=text), width))) <= max(width, 14)
