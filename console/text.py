"""The only gate from data to display: control characters made visible, widths right, secrets masked.

Everything that came from outside (errors, payloads, command lines, unit names, journal lines) passes `clean` or
`clean_block` before it reaches a terminal, in the console as in the commands. What comes out holds no control,
format or bidirectional character: escape sequences cannot be smuggled through it, and it keeps its column.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from wcwidth import wcwidth

MASK = "••••"

_CONTROL_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}
# Format (Cf), surrogate (Cs), private (Co) and unassigned (Cn) characters, and the line and paragraph separators
# (Zl, Zp), can reorder, hide or break what stands on the line. ZWJ and variation selectors only join emoji, but a
# terminal and wcwidth rarely agree on the width of the result, so they go too.
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


@lru_cache(maxsize=4096)
def _visible(char: str) -> str:
    code = ord(char)
    if code in _CONTROL_PICTURES:
        return _CONTROL_PICTURES[code]
    if unicodedata.category(char) in _UNSAFE_CATEGORIES or 0xFE00 <= code <= 0xFE0F:
        return f"‹{code:02X}›" if code < 0x100 else f"‹U+{code:04X}›"
    if code in _UNSTEADY or (wcwidth(char) < 1 and not unicodedata.combining(char)):
        return f"‹U+{code:04X}›"
    return char


# Flags (regional indicators) and skin tones: terminals, wcwidth and Rich each give them another width.
_UNSTEADY = frozenset((*range(0x1F1E6, 0x1F200), *range(0x1F3FB, 0x1F400)))

_PLAIN = re.compile(r"[ -~]*\Z")


def visible(text: str) -> str:
    """Every control, format and bidirectional character as a visible stand-in; newlines and tabs too (␊ ␉).

    Combining marks stay behind the character they belong to; one without a base, and more than three on one
    base, are shown as code points, so that no column can be stacked full.
    """
    if _PLAIN.match(text):
        return text
    out: list[str] = []
    marks = 0
    for char in text:
        if unicodedata.combining(char):
            marks += 1
            if not out or marks > 3:
                out.append(f"‹U+{ord(char):04X}›")
                continue
        else:
            marks = 0
        out.append(_visible(char))
    return "".join(out)


# --- secrets -----------------------------------------------------------------------------------------------------

# Each starts once per word and looks a bounded way ahead: 64 K dashes in a payload must not take minutes.
_SECRET_NAME = (
    r"[\w.-]*(?:passw(?:or)?d|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential"
    r"|authorization|auth[_-]?key|session[_-]?(?:id|key)|cookie|signature|pgpass)[\w.-]{0,60}"
    # where a secret lies is none: --token-file /etc/bot.token
    r"""(?:(?<!file)(?<!path)|(?!["']?\s{0,4}[=:]?\s{0,4}["']?[~.]{0,2}/))"""
)
_URL_PASSWORD = re.compile(r"(?<![a-z0-9+.-])([a-z0-9+.-]+://[^\s:/@]*:)([^\s@/]+)(@)", re.IGNORECASE)
_QUOTED_PAIR = re.compile(
    rf"""(["']{_SECRET_NAME}["']\s*[:=]\s*)(["'])((?:\\.|(?!\2).)*)(\2)""", re.IGNORECASE | re.DOTALL
)
_QUOTED_WHOLE = re.compile(rf"""(["'])({_SECRET_NAME}=)(?!{MASK})((?:\\.|(?!\1)[^\n])*)(\1)""", re.IGNORECASE)
_BARE_PAIR = re.compile(
    rf"""(?<![\w.-])(-{{0,2}}{_SECRET_NAME}["']?\s*[=:]\s*)(?!["']?{MASK})("[^"\n]*"|'[^'\n]*'|(?:bearer|basic)\s+\S+|[^\s,;&}}\]"']+)""",
    re.IGNORECASE,
)
_OPTION_PAIR = re.compile(rf"(?<!\S)(--?{_SECRET_NAME}\s+)(?!-|{MASK})(\S+)", re.IGNORECASE)
_BEARER = re.compile(r"\b((?:bearer|basic)\s+)([A-Za-z0-9._~+/=-]{8,})", re.IGNORECASE)
_KNOWN_TOKENS = re.compile(
    r"\b(?:"
    r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}"  # GitHub
    r"|glpat-[\w-]{16,}"  # GitLab
    r"|xox[abeprs]-[A-Za-z0-9-]{10,}"  # Slack
    r"|sk[-_](?:live|test|proj|ant|or)[-_][\w-]{12,}|sk-[A-Za-z0-9]{20,}"  # Stripe, services of models
    r"|[rp]k_(?:live|test)_\w{12,}"  # Stripe
    r"|AKIA[0-9A-Z]{16}|ASIA[0-9A-Z]{16}"  # AWS
    r"|AIza[\w-]{30,}"  # Google
    r"|eyJ[\w-]{8,2000}\.[\w-]{8,}\.[\w-]*"  # JSON web token
    r"|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{30,}|SG\.[\w-]{16,}\.[\w-]{16,}"
    r")"
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)


def mask(text: str) -> str:
    """The text with passwords, tokens and keys replaced by `••••`; names and user names stay.

    Knows URLs with a password, `name=value` and `"name": "value"` pairs whose name tells of a secret, `--token X`
    options, Bearer and Basic headers, tokens of known services by their form, and private key blocks. Idempotent.
    """
    text = _PRIVATE_KEY.sub(MASK, text)
    text = _URL_PASSWORD.sub(rf"\1{MASK}\3", text)
    text = _QUOTED_PAIR.sub(lambda m: f"{m[1]}{m[2]}{MASK}{m[4]}", text)
    text = _QUOTED_WHOLE.sub(lambda m: f"{m[1]}{m[2]}{MASK}{m[4]}", text)
    text = _BARE_PAIR.sub(rf"\1{MASK}", text)
    text = _OPTION_PAIR.sub(rf"\1{MASK}", text)
    text = _BEARER.sub(rf"\1{MASK}", text)
    return _KNOWN_TOKENS.sub(MASK, text)


def mask_arguments(arguments: Iterable[str]) -> tuple[str, ...]:
    """Arguments, each masked as a text, and whole where it is the value of an option that tells of a secret."""
    found: list[str] = []
    before = ""
    for argument in arguments:
        found.append(MASK if is_secret_value(before, argument) else mask(argument))
        before = argument
    return tuple(found)


def is_secret_value(option: str, argument: str) -> bool:
    """Whether an argument is what the option before it keeps secret: --token X."""
    if not option.startswith("-") or "=" in option:
        return False
    return mask(f"{option} {argument}") != f"{option} {mask(argument)}"


# --- to the screen -----------------------------------------------------------------------------------------------

_SHOWN_AT_MOST = 200_000  # characters of one value; masking a gigabyte to show 80 columns of it helps nobody


def clean(text: object, width: int | None = None) -> str:
    """Anything from outside as one safe line: masked, control characters visible, cut to `width` columns with `…`."""
    raw = str(text)
    budget = _SHOWN_AT_MOST if width is None else min(_SHOWN_AT_MOST, width * 4 + 4096)
    line = visible(mask(raw[:budget]))
    if len(raw) > budget and width is None:
        line += "…"
    return line if width is None else fit(line, width)


def clean_block(text: object) -> str:
    """Anything from outside as safe lines: as `clean`, but line ends are kept and tabs become spaces."""
    raw = str(text)
    cut = raw[:_SHOWN_AT_MOST]
    lines = mask(cut).replace("\r\n", "\n").split("\n")
    block = "\n".join(visible(line.expandtabs(4)) for line in lines)
    return block if len(raw) == len(cut) else f"{block}…\n({len(raw) - len(cut):,} more characters)"


def columns(text: str) -> int:
    """How many terminal columns the text takes; it has passed `visible`."""
    if _PLAIN.match(text):
        return len(text)
    return sum(max(0, wcwidth(char)) for char in text)


def fit(text: str, width: int) -> str:
    """The text cut to at most `width` columns, the last one an ellipsis when something was cut."""
    if width <= 0:
        return ""
    if columns(text) <= width:
        return text
    room = width - 1
    out: list[str] = []
    for char in text:
        taken = max(0, wcwidth(char))
        if taken > room:
            break
        room -= taken
        out.append(char)
    return "".join(out) + "…"


def pad(text: str, width: int, right: bool = False) -> str:
    """The text cut or filled with spaces to exactly `width` columns."""
    text = fit(text, width)
    blanks = " " * (width - columns(text))
    return blanks + text if right else text + blanks


# --- quantities --------------------------------------------------------------------------------------------------


def size(amount: int | None) -> str:
    """Bytes in at most five characters: 44M, 1.5G; ? when not known."""
    if amount is None:
        return "?"
    value = float(amount)
    for unit in ("B", "K", "M", "G", "T", "P"):
        if abs(value) < 1000 or unit == "P":
            break
        value /= 1024
    return f"{value:.0f}{unit}" if value >= 10 or unit == "B" or value == int(value) else f"{value:.1f}{unit}"


def duration(seconds: float | None) -> str:
    """Seconds as 0:41, 18:22, 1:02:10 or 3d 4h; ? when not known."""
    if seconds is None:
        return "?"
    whole = max(0, int(seconds))
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    if hours >= 48:
        days, hour = divmod(hours, 24)
        return f"{days}d {hour}h"
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


def ago(seconds: float | None) -> str:
    """Seconds in words a sentence can hold: "4 s", "12 min", "3 h", "2 d"."""
    if seconds is None:
        return "an unknown time"
    if seconds < 90:
        return f"{max(0, seconds):.1f} s" if seconds < 1 else f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.0f} d"


def grouped(number: int) -> str:
    """1204 as "1 204": thousands apart by a space, from four digits on."""
    return f"{number:,}".replace(",", " ")
