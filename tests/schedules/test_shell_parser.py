"""The grammar of the shell is native code: no text may end the process, and every text comes back as it was."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from console.schedules.shell.syntax import between, parse, text_of

HARD = st.sampled_from(["${", "$(", "`", "<<E\n", "'", '"', "((", "\0", "\n", "é", "日", "\u2028", "|", "&", "\\"])


@settings(max_examples=500, deadline=None)
@given(st.lists(HARD | st.characters(codec="utf-8"), max_size=12).map("".join))
@example("${\U000eab6a")  # asked of a table that ends at U+00FF
@example("echo é${日")
def test_no_text_ends_the_process_and_none_is_changed(text: str) -> None:
    root = parse(text)
    whole = between(root, root.start_byte, root.end_byte)
    assert whole == text_of(root)
    assert whole in text.replace("\r\n", "\n")
