"""`worktop diagnose` in the demo host, as the account of the workers: each of its faults has the right verdict."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any, NamedTuple

import pytest

from console.errors import EXIT_FINDINGS, EXIT_OK
from tests.conftest import DemoHost

pytestmark = pytest.mark.host


class Answer(NamedTuple):
    code: int
    found: list[dict[str, Any]]


@pytest.fixture(scope="module")
def answers(demo_host: DemoHost) -> dict[str, Answer]:
    """What is said of each of these, asked side by side; "job" is the job that the hung worker of exports holds."""
    held = "SELECT id FROM worktop_jobs WHERE queue = 'exports' AND status = 'running'"
    job = demo_host.psql(held).strip()
    asked = {"mail": ["mail@1"], "thumbnails": ["thumbnails"], "job": [job, "--as", "job"], "reports": ["reports"]}
    asked["digests"] = ["digests"]
    children = {
        name: demo_host.popen(
            [demo_host.worktop, "diagnose", *words, "--json"],
            user="deploy",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name, words in asked.items()
    }
    answers = {}
    for name, child in children.items():
        out, err = child.communicate(timeout=90)
        assert out, f"{name}: {err}"
        answers[name] = Answer(child.returncode, json.loads(out))
    return answers


def step(diagnosis: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(step for step in diagnosis["steps"] if step["name"] == name)
    return found


def test_a_healthy_worker_has_nothing_to_be_done(answers: dict[str, Answer]) -> None:
    code, (found,) = answers["mail"]
    assert code == EXIT_OK, found
    assert found["verdict"] == "healthy" and found["key"] == "mail-worker@1.service"
    assert found["do_not"].startswith("do not restart: it works")
    assert step(found, "process")["answer"].endswith("is the one that systemd started")
    assert "database connections" in " ".join(step(found, "near")["evidence"])
    assert re.search(r"it finished job \d+ 0:\d\d ago; mail finished one 0:\d\d ago", step(found, "progress")["answer"])


def test_each_fault_of_thumbnails(answers: dict[str, Answer]) -> None:
    code, (whole, *workers) = answers["thumbnails"]
    assert code == EXIT_FINDINGS
    by_name = {worker["name"]: worker for worker in workers}
    verdicts = {name: worker["verdict"] for name, worker in by_name.items()}
    assert verdicts["@2"] == "crash loop" and verdicts["@3"] == "killed by limit" and verdicts["@4"] == "crash loop"
    assert whole["verdict"] == "crash loop" and whole["key"] == ""
    assert "'high'" in by_name["@2"]["sentence"] and "systemd gave up" in by_name["@2"]["sentence"]
    assert "memory limit 96M" in by_name["@3"]["sentence"] and "MemoryMax=96M" in by_name["@3"]["next"]
    assert "KeyError: 'BUCKET'" in by_name["@4"]["sentence"]
    assert "never stops it" in step(by_name["@4"], "restarts")["answer"]
    assert all(worker["do_not"].startswith("do not restart") for worker in workers)


def test_a_hung_worker_by_its_job(answers: dict[str, Answer]) -> None:
    code, (found,) = answers["job"]
    assert code == EXIT_FINDINGS
    assert found["verdict"] == "hung" and found["key"] == "exports-worker@1.service"
    assert "used no CPU" in found["sentence"] and re.match(r"job \d+ is held for ", found["sentence"])
    assert found["do_not"].startswith("do not restart yet: what it waits for is lost")
    assert re.match(r"worktop reclaim --id \d+", found["commands"][-1])


def test_a_second_owner(answers: dict[str, Answer]) -> None:
    code, (whole, *workers) = answers["reports"]
    assert code == EXIT_FINDINGS and whole["verdict"] == "owned by somebody else"
    assert {worker["verdict"] for worker in workers} == {"owned by somebody else"}
    unit = next(worker for worker in workers if worker["name"] == "@1")
    assert "crontab of deploy, line 4" in unit["sentence"] and "past its lease" in unit["sentence"]


def test_a_role_that_nothing_can_start(answers: dict[str, Answer]) -> None:
    code, (found,) = answers["digests"]
    assert code == EXIT_FINDINGS
    assert found["verdict"] == "misconfigured" and "pgrep finds its own shell" in found["sentence"]
