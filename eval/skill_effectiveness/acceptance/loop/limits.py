"""How much of everything, in one place. Source: loop.md, sections 4, 6 and 12."""

from __future__ import annotations

from typing import Final

CONTEXT_BYTES: Final = 61_440
"""One context file (L18)."""
PROMPT_BYTES: Final = 122_880
"""A whole prompt (L19); below what Linux takes as one word of an argument vector."""
FEEDBACK_BYTES: Final = 16_384
"""What a prompt holds of verdict feedback and check output (L32)."""
VERDICT_BYTES: Final = 65_536
"""A verdict file (L56)."""
OUTPUT_FILE_BYTES: Final = 10_485_760
"""One file of an output (L43)."""
OUTPUT_BYTES: Final = 67_108_864
"""All files of an output (L43)."""
OUTPUT_ENTRIES: Final = 2_000
"""Files and folders of an output (L43)."""
OUTPUT_DEPTH: Final = 32
"""Folders in folders of an output."""
STREAM_BYTES: Final = 67_108_864
"""What is digested of a stream of a process; the rest is read and dropped."""
TOLD_BYTES: Final = 49_152
"""What a verbose event holds of one text, head and tail, and what is kept of the output of a check."""
READ_BYTES: Final = 67_108_864
"""A file that a condition reads."""
CONFIG_BYTES: Final = 1_048_576
"""The configuration file."""
