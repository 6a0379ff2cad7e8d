"""A text with the shape of another and none of its words."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.controls.structure import counts
from skill_effectiveness.studies.placebo_prose import Prose
from skill_effectiveness.studies.placebo_text import alike, placebo_text
from tests.support.placebos import BANK, WORDS, letters, of_the_bank

TEXT = """\
# Retry with care

Only retry what is safe to do twice. Use `curl --retry 3`
and never more.

Setext title
============

- Inspect scope carefully.
  1) State **assumptions** clearly.
* [ ] todo: check the log

> quoted advice
> - and more

## 7. Example ##

```python
# not a heading
for n in range(3):
    call(n)

- item in a fence
```

~~~
```
still inside
~~~

| a | b |
|---|---|
| 1 | 2 |

---
\t\tdeep
完了したら報告する
"""
SHAPE = r"""# T

T
T

T
============

- T
  1) T
* T

> T
> - T

## T

```
T
T
    T

- T
```

~~~
T
T
~~~

T
T
T

---
		T
T
"""


def made(text: str) -> str:
    return placebo_text(text, Prose(BANK, bytes(32), "x"))


def test_structure_and_text() -> None:
    """S7: lines, heading levels, list, quote and fence marks are kept; the rest is of the bank."""
    found = made(TEXT).split("\n")
    shape = SHAPE.split("\n")
    assert len(found) == len(shape) == len(TEXT.split("\n"))
    for line, form in zip(found, shape, strict=True):
        lead, text, _ = form.partition("T")
        assert line.startswith(lead)
        assert of_the_bank(line.removeprefix(lead)) if text else line == form, (line, form)


def test_counts() -> None:
    """S7: paragraphs, instructions and tokens, by hand."""
    known = (
        "- Inspect scope carefully.\n- State assumptions clearly.\n\n- Verify evidence before reporting.\n"
    )
    for text in (known, known.replace("\n", "\r\n"), known.replace("\n", "\r")):
        found = counts(made(text))
        assert (found.paragraph_count, found.instruction_count, found.token_count) == (2, 3, 16)
    assert counts(made(TEXT)) == counts(TEXT)


def test_a_fence_may_name_its_language() -> None:
    """S7: the name goes, and its tokens come back in the next text."""
    found = made("```c++\nx\n```\n")
    assert found.split("\n")[0] == "```"
    assert counts(found).token_count == 3 + 3 + 1 + 3


@pytest.mark.parametrize("text", ["", "\n", " \n\t\n", "---\n", "```\n```", "***\n___\n"])
def test_nothing_to_say(text: str) -> None:
    """S7: what holds no words stays."""
    assert made(text) == text


LINES = st.sampled_from(
    [
        "# Zq zq", "###### Zq", "- zq", "12. Zq zq zq", "\t* zq!", "```sh", "```", "~~~~",
        "zq: 'zq', \"é\"", "", "   ",
        "> zq", "===", "---", "- - zq", "#zq", "\u00a0", "漢字 zq", "    zq",
        "| zq | zq |", "<!-- zq -->",
        "- ```sh", "***zq***", "\x0c", "1)zq", "- ", "zq\u2028- zq", "\ufeff# zq",
    ]
)  # fmt: skip


@given(st.lists(LINES, max_size=30), st.sampled_from(["\n", "\r\n", "\r"]))
def test_any_text(lines: list[str], end: str) -> None:
    """S7: whatever it looks like, the counts are equal and no word of it is left."""
    text = end.join([*lines, "zq zq"])
    found = made(text)
    assert alike(text, found)
    ours, theirs = counts(found), counts(text)
    assert (ours.paragraph_count, ours.instruction_count) == (
        theirs.paragraph_count,
        theirs.instruction_count,
    )
    assert letters(found) <= WORDS
    assert found.count("\n") == len(re.findall(r"\r\n|\r|\n", text))
    assert made(text) == found


@given(st.text(max_size=200))
def test_any_characters(text: str) -> None:
    """S7: no letter of any script is left."""
    assert letters(made(text)) <= WORDS


@pytest.mark.parametrize(
    ("text", "other", "same"),
    [
        ("a " * 20, "a " * 18, True),
        ("a " * 20, "a " * 22, True),
        ("a " * 20, "a " * 17, False),
        ("a " * 20, "a " * 23, False),
        ("", "", True),
        ("", "a", False),
        ("- a\n- b", "- a\nx x b", False),
        ("a\n\nb", "a\nb", False),
    ],
)
def test_the_tolerance(text: str, other: str, *, same: bool) -> None:
    """S7: a tenth, both ends included, of each count; nothing is like nothing."""
    assert alike(text, other) is same
