"""What the room of active controls refuses, as closed codes with a sentence each (controls.md section 9).

| code | refused because |
|---|---|
| `document_invalid` | a document is not of its exact form, or one of its hashes is not that of its content |
| `reserved_word` | a text that a selector will read tells where it comes from, by a word or a digest |
| `candidates_unfit` | there are not two candidates by two authors for one brief, different in both scopes |
| `declaration_empty` | an author's commitment or attestation says nothing |
| `length_out_of_bounds` | a text is shorter or longer than the constraints allow |
| `root_foreign` | the folder holds something that no step of this protocol makes |
| `root_used` | the step was taken here before; its result stays as it is |
| `root_spent` | what was claimed here is gone, or another choice was sealed; start in a new folder |
| `step_missing` | an earlier step has not been taken here |
| `decision_unfit` | the decision is about another selector input or rubric, or names no candidate |
| `reference_differs` | another owner reference than the one committed to |
| `chain_broken` | artifacts do not belong to each other |
| `pair_reused` | the two candidates were prepared in another folder before |
| `bundle_id_free` | a bundle id that is not derived from slot and scope |
| `scope_mismatch` | an evidence file has not the name of its scope |
| `measurement_failed` | the owner-relative measurement did not pass |
| `contents_equal` | control and oracle read the same, so nothing could be told apart |
"""

from __future__ import annotations

from enum import StrEnum


class ControlCode(StrEnum):
    """Why a step is refused; see the table above."""

    DOCUMENT_INVALID = "document_invalid"
    RESERVED_WORD = "reserved_word"
    CANDIDATES_UNFIT = "candidates_unfit"
    DECLARATION_EMPTY = "declaration_empty"
    LENGTH_OUT_OF_BOUNDS = "length_out_of_bounds"
    ROOT_FOREIGN = "root_foreign"
    ROOT_USED = "root_used"
    ROOT_SPENT = "root_spent"
    STEP_MISSING = "step_missing"
    DECISION_UNFIT = "decision_unfit"
    REFERENCE_DIFFERS = "reference_differs"
    CHAIN_BROKEN = "chain_broken"
    PAIR_REUSED = "pair_reused"
    BUNDLE_ID_FREE = "bundle_id_free"
    SCOPE_MISMATCH = "scope_mismatch"
    MEASUREMENT_FAILED = "measurement_failed"
    CONTENTS_EQUAL = "contents_equal"


class ControlError(Exception):
    """A step cannot be taken.

    Attributes:
        code: what machine output may print.
        where: the document or file it is about, with a JSON pointer after `#` where one applies.
        sentence: what is wrong and what to do, for people.
    """

    def __init__(self, code: ControlCode, where: str, sentence: str) -> None:
        self.code = code
        self.where = where
        self.sentence = sentence
        super().__init__(f"{where}: {sentence}")
