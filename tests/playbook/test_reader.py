"""What a playbook file must be, and how its faults are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.errors import ConfigError
from console.playbook.kinds import Action, Check
from console.playbook.library import Library, shipped
from console.playbook.model import Condition, Inverse, Settings
from console.playbook.reader import LONGEST, read
from console.playbook.registry import REGISTRY
from console.playbook.settings import filled, filled_text

HEAD = """\
+++
name = "retire"
title = "Retire a line"
finding = "two-owners"
reversible = "partly"
[needs]
entry = "the line"
[defaults]
count = 2
+++
About {role}.
"""
STEP = """
## 1. Retire the line
First this, of {role}.

```sh
crontab -e
```

If you stop here: nothing new
is started.

```toml
action = "line"
inputs = { verb = "disable", entry = "{entry}" }
before = ["unit-installed"]
after = [{ check = "running", count = "{count}", within = "10s" }]
inverse = "none: it is too late"
skippable = true
```

Then that.
"""


def flaws(text: str) -> list[str]:
    book, found = read(text, "x.md", REGISTRY)
    assert (book is None) == bool(found)
    return [str(flaw) for flaw in found]


def test_a_file_is_read_whole() -> None:
    book, found = read(HEAD + STEP, "x.md", REGISTRY)
    assert book is not None and not found
    assert (book.name, book.findings, book.reversible) == ("retire", ("two-owners",), "partly")
    assert book.needs == (("entry", "the line"),) and book.defaults == {"count": 2} and book.about == "About {role}."
    step = book.steps[0]
    assert step.title == "Retire the line" and step.line == 13 and step.skippable
    assert step.prose == "First this, of {role}.\n\n```sh\ncrontab -e\n```\n\nThen that."
    assert step.stop == "If you stop here: nothing new\nis started."
    assert (step.action, step.inputs) == ("line", {"verb": "disable", "entry": "{entry}"})
    assert step.before == (Condition(check="unit-installed"),)
    assert step.after == (Condition(check="running", inputs={"count": "{count}", "within": "10s"}),)
    assert step.inverse == Inverse(kind="none", reason="it is too late")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("+++\nname", "name", "x.md:1: it does not begin with a line +++"),
        ('title = "Retire a line"', "", "x.md:2: title is missing"),
        ('"retire"', '"Retire me"', "x.md:2: name: found 'Retire me', expected small letters, digits and -"),
        ("finding", "findings", "x.md:4: findings is no key of the front matter"),
        ('"partly"', '"perhaps"', "x.md:5: reversible: found 'perhaps', expected yes, partly or no"),
        ("count = 2", "count = [1]", "x.md:9: defaults.count: expected"),
        ("count = 2", "count = ?", "x.md:9: no TOML: Invalid value"),
        ("## 1.", "## 2.", "x.md:13: step 2: expected number 1"),
        ("## 1. R", "## R", "x.md:13: a heading of this level is a step, “## 1. Title”; found 'Retire the line'"),
        ("If you stop", "Wenn man", "x.md:13: step 1: it does not say what is the case if you stop here"),
        ("```toml", "```text", "x.md:13: step 1: expected one toml block, found none"),
        ("```sh\ncrontab -e", "```toml\na = 1", "x.md:23: step 1: expected one toml block, found 2"),
        ('action = "line"', 'action = "lines"', "x.md:24: there is no action 'lines': "),
        ('action = "line"', "", "x.md:24: expected either action or check"),
        ('verb = "disable"', 'verb = "off"', "x.md:25: verb: found 'off', expected one of disable, restore"),
        ("{entry}", "{entrance}", "x.md:25: {entrance} is not known here: count, entry"),
        (', entry = "{entry}"', "", "x.md:24: action line needs the input entry"),
        ("unit-installed", "installed", "x.md:26: there is no check 'installed'"),
        ('"10s"', '"soon"', "x.md:27: within: found 'soon', expected a time span"),
        ("count = \"{count}\"", 'counts = 1', "x.md:27: counts is no input of check running: at_least, at_most, count"),
        ("none: it", "no: it", 'x.md:28: inverse: expected "undo", "none: REASON", or a table with an action'),
        ("skippable", "skipable", "x.md:29: skipable is no key of a step"),
        ("skippable = true", 'skippable = "yes"', "x.md:29: skippable: expected true or false"),
        ("```toml", "> ```toml", "x.md:23: step 1: its toml block stands in a list or a quote"),
    ],
)  # fmt: skip
def test_every_fault_is_told_with_its_line(old: str, new: str, told: str) -> None:
    text = (HEAD + STEP).replace(old, new, 1)
    assert text != HEAD + STEP
    assert any(flaw.startswith(told) for flaw in flaws(text)), flaws(text)


def test_a_file_without_steps_and_one_that_is_too_long() -> None:
    assert flaws(HEAD) == ["x.md:11: there is no step: a heading such as “## 1. Survey”"]
    assert flaws(HEAD + STEP + "x" * LONGEST) == [f"x.md:1: longer than {LONGEST} bytes"]
    assert flaws("a\n\0") == ["x.md:2: a NUL stands there: it is no Markdown"]
    assert flaws("") and flaws("+++") and flaws("+++\n+++")


def test_line_ends_of_windows_are_line_ends() -> None:
    assert not flaws((HEAD + STEP).replace("\n", "\r\n"))


_pieces = st.sampled_from(
    ["+++\n", "## 1. A\n", "## 2. B\n", "```toml\n", "```\n", 'action = "note"\n', 'check = "wait"\n', "inputs = {}\n",
     "before = [1]\n", "inverse = 3\n", "> ", "- ", "    ", "\n", 'name = "a"\n', 'title = "b"\n', "[needs]\n",
     "If you stop here\n", "{role}", "\r", "\x85", "é", "[", '"', "#", "~~~toml\n", "a.b.c = 1\n",
     "inputs = { for = 1 }\n"]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(max_size=300), st.lists(_pieces, max_size=40).map("".join)))
def test_whatever_the_text_is_it_is_read_or_its_faults_are_told(text: str) -> None:
    for whole in (text, HEAD + STEP + text):
        book, found = read(whole, "x.md", REGISTRY)
        assert (book is None) == bool(found)
        lines = whole.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
        assert all(1 <= flaw.line <= lines + 1 for flaw in found)


def test_placeholders_keep_the_type_of_what_they_stand_for() -> None:
    values: Settings = {"count": 3, "role": "mail", "units": ("a", "b")}
    given_: Settings = {"n": "{count}", "text": "{count} of {role}", "units": "{units}", "more": ("{role}", "x")}
    assert filled(given_, values) == {"n": 3, "text": "3 of mail", "units": ("a", "b"), "more": ("mail", "x")}
    assert filled_text("{role} {nobody} {units}", values) == "mail {nobody} a b"
    with pytest.raises(ConfigError, match=r"\{nobody\} is not known yet"):
        filled({"n": "{nobody}"}, values)


def test_later_folders_win_and_flaws_are_on_the_shelf(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir(), second.mkdir()  # type: ignore[func-returns-value]
    (first / "x.md").write_text(HEAD + STEP)
    (first / "bad.md").write_bytes(b"+++\n\xff")
    (first / "README.md").write_text("no playbook")
    (second / "y.md").write_text((HEAD + STEP).replace("Retire a line", "Mine"))
    library = Library(REGISTRY, (first, second, tmp_path / "none"))
    shelf = library.shelf()
    assert [each.name for each in shelf] == ["bad", "retire"]
    assert str(shelf[0].flaws[0]).endswith("bad.md:2: no UTF-8")
    assert library.book("retire").title == "Mine" and library.book(str(first / "x.md")).title == "Retire a line"
    with pytest.raises(ConfigError, match="there is no such playbook; there are: bad, retire"):
        library.book("nothing")
    with pytest.raises(ConfigError, match=r"bad\.md:2: no UTF-8; worktop playbook check"):
        library.book("bad")


def test_the_shipped_ones_are_without_fault() -> None:
    assert [str(flaw) for each in Library(REGISTRY, (shipped(),)).shelf() for flaw in each.flaws] == []


def test_the_page_on_playbooks_names_every_action_and_check_and_its_example_is_without_fault() -> None:
    page = (Path(__file__).parents[2] / "docs" / "playbooks.md").read_text()
    words: list[Action | Check] = [*REGISTRY.actions.values(), *REGISTRY.checks.values()]
    for word in words:
        inputs = ", ".join(f"`{name}`" for name in word.inputs if name not in ("for", "within"))
        assert f"| `{word.name}` | {word.about} | {inputs} |" in page
    example = page.split("## Writing a playbook\n\n")[1].split("\n\nPut it into")[0]
    assert not flaws("\n".join(line.removeprefix("    ") for line in example.split("\n")))
