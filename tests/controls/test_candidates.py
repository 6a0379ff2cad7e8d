"""Freezing, and each rule of two candidates by itself."""

from __future__ import annotations

import hashlib

import pytest

from skill_effectiveness.controls.candidates import (
    check_candidates,
    freeze_candidate,
    freeze_reference,
    scope_contents,
)
from skill_effectiveness.controls.documents import Candidate, ScopeContents
from skill_effectiveness.controls.errors import ControlCode, ControlError
from tests.support.controls import (
    BRIEF,
    TEXTS,
    brief,
    candidate,
    constraints,
    contents,
    plain,
    plain_hash,
    reference,
    text_hash,
)


def refused(*candidates: Candidate, **limits: int) -> ControlError:
    with pytest.raises(ControlError) as caught:
        check_candidates(brief(), constraints(**limits), candidates)
    return caught.value


class TestFreezing:
    def test_a_candidate_binds_texts_brief_and_declarations(self) -> None:
        """A1: fields and every hash, computed here without the product."""
        texts = {"subagent": TEXTS["one"], "main": TEXTS["one-main"]}
        document = {
            "schema_version": 1,
            "artifact_contract": "skill-effectiveness-active-control-candidate-v1",
            "brief_hash": plain_hash(BRIEF),
            "scope_contents": texts,
            "scope_hashes": {scope: text_hash(text) for scope, text in texts.items()},
            "generation_evidence": {
                "source_kind": "human-author",
                "author_commitment_hash": "sha256:" + hashlib.sha256(b"I, one, wrote it.").hexdigest(),
                "independence_attestation_hash": "sha256:"
                + hashlib.sha256(b"I, one, saw nothing else.").hexdigest(),
                "input_hash": plain_hash(BRIEF),
                "output_hash": plain_hash(texts),
            },
        }
        assert plain(candidate("one")) == document | {"package_hash": plain_hash(document)}

    def test_a_reference_binds_its_texts(self) -> None:
        """A1: the owner's texts."""
        texts = {"subagent": TEXTS["owner"], "main": TEXTS["owner-main"]}
        document = {
            "schema_version": 1,
            "artifact_contract": "skill-effectiveness-active-control-owner-reference-v1",
            "scope_contents": texts,
            "scope_hashes": {scope: text_hash(text) for scope, text in texts.items()},
        }
        assert plain(reference()) == document | {"reference_hash": plain_hash(document)}

    def test_an_owner_may_use_any_word(self) -> None:
        texts = ScopeContents(subagent="the model", main="AGENTS.md")
        assert freeze_reference(texts).scope_contents == texts

    @pytest.mark.parametrize(("commitment", "attestation"), [(b"", b"x"), (b"x", b" \n")])
    def test_a_declaration_says_something(self, commitment: bytes, attestation: bytes) -> None:
        with pytest.raises(ControlError) as caught:
            freeze_candidate(brief(), contents("one"), commitment=commitment, attestation=attestation)
        assert caught.value.code is ControlCode.DECLARATION_EMPTY

    @pytest.mark.parametrize("data", [b"", b"\xff", b"a" * 1_000_001], ids=["empty", "no UTF-8", "long"])
    def test_a_text_that_is_none_is_named(self, data: bytes) -> None:
        with pytest.raises(ControlError) as caught:
            scope_contents(b"fine", data, "candidate")
        assert caught.value.code is ControlCode.DOCUMENT_INVALID
        assert caught.value.where == "candidate, the text for the scope main"

    def test_line_ends_stay(self) -> None:
        assert scope_contents(b"a\r\nb", b"c\n", "candidate") == ScopeContents(subagent="a\r\nb", main="c\n")


class TestRules:
    def test_two_fit(self) -> None:
        """A2: nothing is wrong with these."""
        check_candidates(brief(), constraints(), [candidate("one"), candidate("two")])

    @pytest.mark.parametrize("number", [0, 1, 3])
    def test_there_are_two(self, number: int) -> None:
        """A2: neither fewer nor more."""
        error = refused(*[candidate("one"), candidate("two"), candidate("one")][:number])
        assert error.code is ControlCode.CANDIDATES_UNFIT
        assert f"{number} were given" in error.sentence

    def test_for_one_brief(self) -> None:
        """A2: also when both were written for the same other brief."""
        other = brief(instruction="Write something else for both scopes.")
        for pair in (
            (candidate("one"), candidate("two", asked=other)),
            (candidate("one", asked=other), candidate("two", asked=other)),
        ):
            assert "this brief" in refused(*pair).sentence

    def test_by_two_authors(self) -> None:
        """A2: distinct commitments."""
        error = refused(candidate("one", commitment=b"same"), candidate("two", commitment=b"same"))
        assert "two authors" in error.sentence

    def test_with_two_attestations(self) -> None:
        """A2: distinct attestations."""
        error = refused(candidate("one", attestation=b"same"), candidate("two", attestation=b"same"))
        assert "attestation" in error.sentence

    @pytest.mark.parametrize("scope", ["subagent", "main"])
    def test_that_differ_in_more_than_line_ends(self, scope: str) -> None:
        """A2: one text saved in two editors is one text."""
        saved = "\ufeff" + getattr(contents("one"), scope).replace("\n", "\r\n") + "\r\n"
        error = refused(
            candidate("one"),
            candidate("two", texts=contents("two").model_copy(update={scope: saved})),
        )
        assert error.code is ControlCode.CANDIDATES_UNFIT
        assert f"for the scope {scope} are the same" in error.sentence

    @pytest.mark.parametrize("scope", ["subagent", "main"])
    @pytest.mark.parametrize(
        "declared", ["author_commitment_hash", "independence_attestation_hash", "output_hash"]
    )
    def test_that_do_not_name_the_other(self, scope: str, declared: str) -> None:
        """A4: by a digest in any case, with or without its algorithm, or with an invisible sign in it."""
        other = candidate("one")
        for digest in (getattr(other.generation_evidence, declared), other.package_hash):
            plain = digest.removeprefix("sha256:")
            for spelled in (digest, plain.upper(), f"{plain[:9]}\u200b{plain[9:]}"):
                text = f"{getattr(contents('two'), scope)}\n{spelled}."
                error = refused(
                    other, candidate("two", texts=contents("two").model_copy(update={scope: text}))
                )
                assert error.code is ControlCode.RESERVED_WORD
                assert error.where == f"candidate 2#/scope_contents/{scope}"
                assert spelled not in error.sentence

    @pytest.mark.parametrize("scope", ["subagent", "main"])
    def test_that_do_not_name_their_own_author(self, scope: str) -> None:
        """A4: refused when it is frozen."""
        digest = candidate("one").generation_evidence.author_commitment_hash
        texts = contents("one").model_copy(update={scope: f"{getattr(contents('one'), scope)}\n{digest}"})
        with pytest.raises(ControlError) as caught:
            candidate("one", texts=texts)
        assert (caught.value.code, caught.value.where) == (
            ControlCode.RESERVED_WORD,
            f"candidate#/scope_contents/{scope}",
        )

    @pytest.mark.parametrize("scope", ["subagent", "main"])
    def test_that_differ_in_each_scope(self, scope: str) -> None:
        """A2: one equal text is enough to refuse."""
        texts = contents("two").model_copy(update={scope: getattr(contents("one"), scope)})
        assert (
            f"for the scope {scope} are the same"
            in refused(candidate("one"), candidate("two", texts=texts)).sentence
        )

    @pytest.mark.parametrize("scope", ["subagent", "main"])
    def test_within_the_bounds(self, scope: str) -> None:
        """A2: in code points, both ends included, in either scope of either candidate."""
        for number in (1, 2):
            texts = contents("one").model_copy(update={scope: "検" * 30})
            fitting = [candidate("two"), candidate("two")]
            fitting[number - 1] = candidate("one", texts=texts)
            longest = max(len(text) for text in TEXTS.values())
            for limits in (
                {"minimum_characters_per_scope": 31},
                {"minimum_characters_per_scope": 1, "maximum_characters_per_scope": 29},
            ):
                error = refused(*fitting, **limits)
                assert error.code is ControlCode.LENGTH_OUT_OF_BOUNDS
            check_candidates(
                brief(),
                constraints(minimum_characters_per_scope=30, maximum_characters_per_scope=longest),
                fitting,
            )
        assert error.where.startswith("candidate ")
