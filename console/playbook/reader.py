"""Reads a playbook file. Whatever is wrong with it is told with its line; a file with a flaw is not run. Pure.

The file is Markdown: front matter in TOML between two lines of `+++`, then one section per step, `## N. Title`, with
exactly one fenced block marked `toml`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from markdown_it import MarkdownIt
from markdown_it.token import Token

from console.playbook.model import Condition, Flaw, Inverse, Playbook, PlaybookStep, Reversible, Setting, Settings
from console.playbook.settings import Input, placeholders, setting, takes

LONGEST = 256 * 1024  # bytes of a file
MOST_STEPS = 50
_FENCE = "+++"
_HEADING = re.compile(r"(\d{1,3})\.\s+(\S.*)")
_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
_VALUE = re.compile(r"[a-z][a-z0-9_]{0,30}")
_AT_LINE = re.compile(r"\s*\(at line (\d+), column \d+\)|\s*\(at end of document\)")
_STOP = re.compile(r"\*{0,2}if you stop here\b", re.IGNORECASE)
_FRONT_KEYS = ("name", "title", "finding", "reversible", "needs", "defaults")
_STEP_KEYS = ("action", "check", "inputs", "before", "after", "inverse", "skippable", "stop")
_REVERSIBLE: tuple[Reversible, ...] = ("yes", "partly", "no")


class Word(Protocol):
    """An action or a check, as far as a file must know it."""

    @property
    def inputs(self) -> Mapping[str, Input]: ...


class ActionWord(Word, Protocol):
    @property
    def finds(self) -> tuple[str, ...]: ...

    @property
    def changes(self) -> bool: ...


class Vocabulary(Protocol):
    """The actions and checks there are."""

    @property
    def actions(self) -> Mapping[str, ActionWord]: ...

    @property
    def checks(self) -> Mapping[str, Word]: ...


class _Section(NamedTuple):
    """One step of the file: its heading's line (from 0), and the lines up to the next heading."""

    line: int
    number: int
    title: str
    end: int
    blocks: tuple[Token, ...]  # its fences marked toml


def read(text: str, path: str, words: Vocabulary) -> tuple[Playbook | None, tuple[Flaw, ...]]:
    """The playbook, or None and what is wrong. Raises nothing, whatever the text is."""
    return _Reader(text, path, words).read()


class _Reader:
    def __init__(self, text: str, path: str, words: Vocabulary) -> None:
        self._text = re.sub(r"\r\n?", "\n", text)  # as markdown-it counts lines
        self._path = path
        self._words = words
        self._lines = self._text.split("\n")
        self._flaws: list[Flaw] = []
        self._known: set[str] = {"role"}  # names a placeholder may have, so far

    def _flaw(self, line: int, text: str) -> None:
        """`line` from 0."""
        self._flaws.append(Flaw(path=self._path, line=line + 1, text=text))

    def read(self) -> tuple[Playbook | None, tuple[Flaw, ...]]:
        if len(self._text.encode("utf-8", "replace")) > LONGEST:
            self._flaw(0, f"longer than {LONGEST} bytes")
            return None, tuple(self._flaws)
        if "\0" in self._text:
            self._flaw(self._text[: self._text.index("\0")].count("\n"), "a NUL stands there: it is no Markdown")
            return None, tuple(self._flaws)
        front, body = self._front()
        head = self._head(front) if front is not None else Playbook(name="", title="")
        self._known |= {name for name, _ in head.needs} | head.defaults.keys()
        sections = self._sections(body)
        steps = tuple(self._step(section) for section in sections)
        first = sections[0].line if sections else len(self._lines)
        if self._flaws:
            return None, tuple(sorted(self._flaws, key=lambda flaw: flaw.line))
        about = "\n".join(self._lines[body:first]).strip()
        return (
            Playbook(
                name=head.name, title=head.title, findings=head.findings, needs=head.needs, defaults=head.defaults,
                reversible=head.reversible, about=about, steps=steps, path=self._path, text=self._text,
            ),
            (),
        )  # fmt: skip

    # --- front matter ------------------------------------------------------------------------------------------------

    def _front(self) -> tuple[dict[str, Any] | None, int]:
        """The front matter, and the first line behind it."""
        if self._lines[0].rstrip() != _FENCE:
            self._flaw(0, f"it does not begin with a line {_FENCE}")
            return None, 0
        end = next((n for n, line in enumerate(self._lines[1:], 1) if line.rstrip() == _FENCE), None)
        if end is None:
            self._flaw(0, f"the front matter has no second line {_FENCE}")
            return None, len(self._lines)
        return self._toml("\n".join(self._lines[1:end]), 1), end + 1

    def _toml(self, text: str, offset: int) -> dict[str, Any] | None:
        """`offset`: the line of its first line."""
        try:
            return tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
            told = str(error)
            at = _AT_LINE.search(told)
            line = int(at[1]) - 1 if at is not None and at[1] else 0
            self._flaw(offset + line, f"no TOML: {_AT_LINE.sub('', told)}")
            return None

    def _head(self, front: dict[str, Any]) -> Playbook:
        where = _Places(self._lines, 1, len(self._lines))
        for key in front.keys() - set(_FRONT_KEYS):
            self._flaw(where.of(key), f"{key} is no key of the front matter: {', '.join(_FRONT_KEYS)}")
        name = self._word(front, "name", where)
        if name and not _NAME.fullmatch(name):
            self._flaw(where.of("name"), f"name: found {name!r}, expected small letters, digits and -")
        title = self._word(front, "title", where)
        reversible = front.get("reversible", "yes")
        if reversible not in _REVERSIBLE:
            self._flaw(where.of("reversible"), f"reversible: found {reversible!r}, expected yes, partly or no")
            reversible = "yes"
        needs: list[tuple[str, str]] = []
        for key, about in self._table(front, "needs", where).items():
            if not isinstance(about, str) or not about or not _VALUE.fullmatch(key):
                self._flaw(where.of(key), f"needs.{key}: expected a name in small letters and what it is, a text")
            else:
                needs.append((key, about))
        defaults: Settings = {}
        for key, value in self._table(front, "defaults", where).items():
            found = setting(value)
            if found is None or not _VALUE.fullmatch(key):
                self._flaw(where.of(key), f"defaults.{key}: expected a name in small letters, and text, number, truth")
            else:
                defaults[key] = found
        return Playbook(
            name=name, title=title, findings=self._texts(front, "finding", where), needs=tuple(needs),
            defaults=defaults, reversible=reversible,
        )  # fmt: skip

    def _word(self, data: dict[str, Any], key: str, where: _Places) -> str:
        found = data.get(key)
        if isinstance(found, str) and found.strip():
            return found
        self._flaw(where.of(key), f"{key} is missing" if found is None else f"{key}: expected a text")
        return ""

    def _table(self, data: dict[str, Any], key: str, where: _Places) -> dict[str, Any]:
        found = data.get(key, {})
        if isinstance(found, dict):
            return found
        self._flaw(where.of(key), f"{key}: expected a table")
        return {}

    def _texts(self, data: dict[str, Any], key: str, where: _Places) -> tuple[str, ...]:
        found = data.get(key, [])
        if isinstance(found, str):
            return (found,)
        if isinstance(found, list) and all(isinstance(each, str) for each in found):
            return tuple(found)
        self._flaw(where.of(key), f"{key}: expected a text or a list of texts")
        return ()

    # --- steps -------------------------------------------------------------------------------------------------------

    def _sections(self, body: int) -> list[_Section]:
        tokens = _markdown("\n".join(self._lines[body:]))
        heads = list(self._heads(tokens, body))
        if not heads:
            self._flaw(body, "there is no step: a heading such as “## 1. Survey”")
        if len(heads) > MOST_STEPS:
            self._flaw(heads[MOST_STEPS][0], f"more than {MOST_STEPS} steps")
            heads = heads[:MOST_STEPS]
        fences = [token for token in tokens if token.type == "fence" and token.info.split()[:1] == ["toml"]]
        found: list[_Section] = []
        for place, (line, number, title) in enumerate(heads):
            end = heads[place + 1][0] if place + 1 < len(heads) else len(self._lines)
            own = tuple(fence for fence in fences if fence.map and line <= fence.map[0] + body < end)
            found.append(_Section(line, number, title, end, tuple(_moved(fence, body) for fence in own)))
        first = heads[0][0] if heads else len(self._lines)
        for fence in fences:
            if fence.map and fence.map[0] + body < first:
                self._flaw(fence.map[0] + body, "a toml block before the first step")
        return found

    def _heads(self, tokens: Sequence[Token], body: int) -> Iterator[tuple[int, int, str]]:
        expected = 1
        for place, token in enumerate(tokens):
            if token.type != "heading_open" or token.tag != "h2" or token.level or not token.map:
                continue
            line, text = token.map[0] + body, tokens[place + 1].content
            heading = _HEADING.fullmatch(" ".join(text.split()))
            if heading is None:
                self._flaw(line, f"a heading of this level is a step, “## {expected}. Title”; found {text[:60]!r}")
                continue
            if int(heading[1]) != expected:
                self._flaw(line, f"step {heading[1]}: expected number {expected}")
            yield line, expected, heading[2]
            expected += 1

    def _step(self, section: _Section) -> PlaybookStep:
        step = PlaybookStep(number=section.number, title=section.title, line=section.line + 1)
        if len(section.blocks) != 1:
            found = "none" if not section.blocks else str(len(section.blocks))
            line = section.line if not section.blocks else _lines_of(section.blocks[1])[0]
            self._flaw(line, f"step {section.number}: expected one toml block, found {found}")
            return step
        block = section.blocks[0]
        start, end = _lines_of(block)
        if block.level or not block.markup.startswith(("`", "~")):
            self._flaw(start, f"step {section.number}: its toml block stands in a list or a quote")
        data = self._toml(block.content, start + 1)
        rest = [*self._lines[section.line + 1 : start], *self._lines[end : section.end]]
        prose, stop = _without_stop("\n".join(rest))
        if data is None:
            return step
        return self._block(step, data, _Places(self._lines, start + 1, end), prose, stop)

    def _block(self, step: PlaybookStep, data: dict[str, Any], where: _Places, prose: str, stop: str) -> PlaybookStep:
        for key in data.keys() - set(_STEP_KEYS):
            self._flaw(where.of(key), f"{key} is no key of a step: {', '.join(_STEP_KEYS)}")
        action, check = data.get("action", ""), data.get("check", "")
        if bool(action) == bool(check) or not isinstance(action, str) or not isinstance(check, str):
            self._flaw(where.first, "expected either action or check")
            return step
        what, name = ("action", action) if action else ("check", check)
        inputs = self._inputs(what, name, self._table(data, "inputs", where), where)
        skippable = data.get("skippable", False)
        if not isinstance(skippable, bool):
            self._flaw(where.of("skippable"), "skippable: expected true or false")
        said = data.get("stop", stop)
        if not isinstance(said, str):
            self._flaw(where.of("stop"), "stop: expected a text")
            said = ""
        word = self._words.actions.get(action)
        before = self._conditions(data, "before", where)
        if word is not None:
            self._known |= set(word.finds)
            if word.changes and not said.strip():
                self._flaw(step.line - 1, f"step {step.number}: it does not say what is the case if you stop here")
        return PlaybookStep(
            number=step.number, title=step.title, line=step.line, prose=prose, stop=said.strip(), action=action,
            check=check, inputs=inputs, before=before, after=self._conditions(data, "after", where),
            inverse=self._inverse(data.get("inverse", "undo"), where), skippable=bool(skippable),
        )  # fmt: skip

    def _conditions(self, data: dict[str, Any], key: str, where: _Places) -> tuple[Condition, ...]:
        found = data.get(key, [])
        if not isinstance(found, list):
            self._flaw(where.of(key), f"{key}: expected a list of checks")
            return ()
        conditions: list[Condition] = []
        for each in found:
            table = {"check": each} if isinstance(each, str) else each
            if not isinstance(table, dict) or not isinstance(table.get("check"), str):
                self._flaw(where.of(key), f'{key}: expected names of checks, or tables such as {{ check = "running" }}')
                continue
            inputs = {name: value for name, value in table.items() if name != "check"}
            name = table["check"]
            conditions.append(Condition(check=name, inputs=self._inputs("check", name, inputs, where, key)))
        return tuple(conditions)

    def _inverse(self, found: Any, where: _Places) -> Inverse:
        if found == "undo":
            return Inverse()
        if isinstance(found, str) and found.startswith("none:") and found[5:].strip():
            return Inverse(kind="none", reason=found[5:].strip())
        if isinstance(found, dict) and isinstance(found.get("action"), str):
            inputs = {name: value for name, value in found.items() if name != "action"}
            name = found["action"]
            return Inverse(kind="action", action=name, inputs=self._inputs("action", name, inputs, where, "inverse"))
        self._flaw(where.of("inverse"), 'inverse: expected "undo", "none: REASON", or a table with an action')
        return Inverse()

    def _inputs(self, what: str, name: str, given: dict[str, Any], where: _Places, key: str = "inputs") -> Settings:
        """The inputs of an action or check, as its word takes them."""
        there: Mapping[str, Word] = self._words.actions if what == "action" else self._words.checks
        word = there.get(name)
        if word is None:
            known = ", ".join(sorted(there))
            self._flaw(where.of(what if key == "inputs" else key, name), f"there is no {what} {name!r}: {known}")
            return {}
        taken: Settings = {}
        for each, value in given.items():
            line, found = where.of(each if key == "inputs" else key, each), setting(value)
            spec = word.inputs.get(each)
            if spec is None:
                known = ", ".join(sorted(word.inputs)) or "it has none"
                self._flaw(line, f"{each} is no input of {what} {name}: {known}")
            elif found is None:
                self._flaw(line, f"{each}: expected text, number, truth or a list of texts")
            elif fault := takes(spec, found):
                self._flaw(line, f"{each}: {fault}")
            else:
                taken[each] = found
                self._placeholders(found, line)
        for each, spec in word.inputs.items():
            if spec.required and each not in given and not (each == "role" and "role" in self._known):
                self._flaw(where.of(what if key == "inputs" else key, name), f"{what} {name} needs the input {each}")
        return taken

    def _placeholders(self, found: Setting, line: int) -> None:
        for name in placeholders(found):
            if name not in self._known:
                known = ", ".join(sorted(self._known))
                self._flaw(line, f"{{{name}}} is not known here: {known}")


class _Places:
    """Where a key stands within lines of TOML."""

    def __init__(self, lines: Sequence[str], first: int, end: int) -> None:
        self._lines = lines
        self.first = first
        self._end = end

    def of(self, key: str, near: str = "") -> int:
        """The line of `key =`, of `near` in a line behind it, or the first line."""
        pattern = re.compile(rf"(?:^|[\s{{,\[])[\"']?{re.escape(key)}[\"']?\s*(?:=|\])")
        within = range(self.first, min(self._end, len(self._lines)))
        at = next((line for line in within if pattern.search(self._lines[line])), self.first)
        if near:
            return next((line for line in within if line >= at and near in self._lines[line]), at)
        return at


def _markdown(text: str) -> list[Token]:
    """The blocks of a Markdown text. A text nested deeper than Python follows has none."""
    try:
        return MarkdownIt("commonmark").parse(text)
    except RecursionError:
        return []


def _lines_of(block: Token) -> tuple[int, int]:
    """First line, and the line behind the last."""
    return (block.map[0], block.map[1]) if block.map else (0, 0)


def _moved(fence: Token, by: int) -> Token:
    assert fence.map is not None
    return fence.copy(map=[fence.map[0] + by, fence.map[1] + by])


def _without_stop(prose: str) -> tuple[str, str]:
    """The prose without its paragraph "If you stop here …", and that paragraph."""
    kept: list[str] = []
    stop = ""
    for paragraph in re.split(r"\n{2,}", prose.strip()):
        if _STOP.match(paragraph.lstrip()) and not stop:
            stop = paragraph.strip()
        else:
            kept.append(paragraph)
    return "\n\n".join(kept).strip(), stop
