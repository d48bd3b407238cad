"""A playbook on the demo host, from the keyboard at 80x24: begun, left in a wait, taken up, to its end, and back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.conftest import DemoHost
from tests.e2e.test_actions_console import Operator
from tests.e2e.test_console import first_data, flat
from tests.terminal import Terminal

pytestmark = pytest.mark.host

STATE, OWN = "/run/worktop-wizard", "/run/worktop-wizard-config"
UNIT = "mail-worker@4.service"
WATCH = 'watch = "30s"'
READY, LOOK, ENDED, OVER = "to be agreed to", "row is changed", "⏎ goes on", "done to the end"
BACK = "taken back: everything is as it was before"


@pytest.fixture
def console(demo_host: DemoHost) -> Iterator[Operator]:
    """As root, with an own copy of a shipped playbook that watches for a shorter time."""
    book = demo_host.run([demo_host.worktop, "playbook", "show", "scale-up-safely", "--json"]).stdout
    assert WATCH.replace('"', '\\"') in book, "the shipped one watches longer"
    demo_host.run(["mkdir", "-p", f"{OWN}/worktop/playbooks"])
    copy = (
        "import json,sys; text = json.load(sys.stdin)['text']; "
        f"open('{OWN}/worktop/playbooks/scale-up-safely.md', 'w').write(text.replace('{WATCH}', 'watch = \"2s\"'))"
    )
    demo_host.run(["python3", "-c", copy], input=book)
    argv = ["env", f"WORKTOP_STATE={STATE}", f"XDG_CONFIG_HOME={OWN}", demo_host.worktop]
    try:
        with Terminal(demo_host.exec_argv(argv), 80, 24) as terminal:
            first_data(terminal)
            yield Operator(demo_host, terminal)
    finally:
        demo_host.run(["systemctl", "disable", "--now", UNIT], check=False)
        demo_host.run(["rm", "-rf", STATE, OWN])


def state(console: Operator) -> str:
    return console.host.run(["systemctl", "is-active", UNIT], check=False).stdout.strip()


def type_in(console: Operator, text: str, until: str) -> None:
    console.terminal.tmux("send-keys", "-l", text)
    console.until(lambda screen: until in screen, f"{until!r} after {text!r}")
    console.press("Enter")


def agree(console: Operator) -> None:
    console.until(lambda text: "[ Apply ]" in text, "the plan")
    console.press("A")
    console.until(lambda text: "[ Apply ]" not in text, "the plan to close")


def go_on(console: Operator, *wanted: str) -> str:
    """Enter, and the consent where it is asked for, until one of the words is on the screen."""
    while True:
        screen = console.until(
            lambda text: any(word in text for word in (*wanted, READY, LOOK, ENDED, "failed")), "a step", 60.0
        )
        assert "failed" not in screen, screen
        if any(word in screen for word in wanted):
            return screen
        found = next(word for word in (READY, LOOK, ENDED) if word in screen)
        console.press("Enter")
        if found == READY:
            agree(console)
        else:
            console.until(partial(_gone, found), "the step to go on", 60.0)


def _gone(word: str, text: str) -> bool:
    return word not in text


def take_back(console: Operator, number: int) -> None:
    """b, and the consent where something is to be undone."""

    def gone_back(text: str) -> bool:
        return BACK in flat(text) or (f"Step {number}." in text and ENDED in text)

    console.press("b")
    screen = console.until(lambda text: "[ Apply ]" in text or gone_back(text), f"step {number} to go back", 60.0)
    if "[ Apply ]" in screen:
        agree(console)
        console.until(gone_back, f"step {number} to be undone", 60.0)


def test_more_workers_step_by_step_and_back(console: Operator) -> None:
    console.press("8")
    console.until(lambda text: "PLAYBOOKS" in text and "scale-up-safely" in text, "the playbooks")
    console.press("/")
    type_in(console, "scale-up", "1 of ")
    console.press("Enter")
    console.until(lambda text: "asked for" in text, "what it needs")
    console.press("Enter")
    console.until(lambda text: "More workers, safely: role" in text, "the question for the role")
    type_in(console, "mail", " mail")
    console.until(lambda text: "More workers, safely: count" in text, "the question for the number")
    type_in(console, "4", "as it is typed")
    screen = console.until(lambda text: "step 1 of 7" in text and LOOK in text, "the first step")
    assert "nothing has been changed" in flat(screen)

    go_on(console, "step 4 waits")  # one more runs, and is watched
    assert state(console) == "active"
    console.press("q")
    screen = console.until(lambda text: "PLAYBOOKS" in text and "unfinished" in text, "the list, with the run")
    assert "scale-up-safely mail" in flat(screen)
    console.press("Home")
    console.press("Enter")
    screen = console.until(lambda text: "watches it" in text or LOOK in text or ENDED in text, "the wait that was left")
    if ENDED in screen:  # the person was back before it was let go
        console.press("Enter")
        console.until(lambda text: "watches it" in text or LOOK in text, "the wait that was left")
    console.press("Enter")
    console.until(lambda text: "watches it" not in text and LOOK not in text, "the wait to go on")
    screen = go_on(console, OVER)
    assert "mail has 4 workers" in flat(screen) or "4 by mail-worker@.service" in flat(screen)

    for number in range(7, 0, -1):
        take_back(console, number)
    console.until(lambda text: BACK in flat(text), "the end of the way back")
    assert state(console) == "inactive"
    console.press("q")
    console.until(lambda text: "taken back" in text and "PLAYBOOKS" in text, "the list again")
    console.leave()
