"""Merkle trees: known answers, every proof of small trees, and no proof of anything else."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from skill_effectiveness.evidence import merkle
from skill_effectiveness.evidence.documents import parse
from skill_effectiveness.evidence.faults import EvidenceError, MerkleCode
from skill_effectiveness.evidence.merkle import (
    ConsistencyProof,
    InclusionProof,
    MerkleError,
    Tree,
    TreeHead,
    consistency_proof,
    file_entry,
    inclusion_proof,
    leaf_hash,
    merkle_root,
    verify_consistency,
    verify_inclusion,
)
from skill_effectiveness.evidence.strict import Profile

if TYPE_CHECKING:
    from collections.abc import Callable

INPUTS = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
LEAVES = [leaf_hash(data) for data in INPUTS]
NUMBERED = [leaf_hash(str(number).encode()) for number in range(65)]
SIZES = range(1, 65)


def slow_root(entries: list[bytes]) -> bytes:
    """The definition of RFC 6962, section 2.1, word for word."""
    if not entries:
        return hashlib.sha256(b"").digest()
    if len(entries) == 1:
        return hashlib.sha256(b"\x00" + entries[0]).digest()
    split = 1
    while split * 2 < len(entries):
        split *= 2
    return hashlib.sha256(b"\x01" + slow_root(entries[:split]) + slow_root(entries[split:])).digest()


def code_of(call: Callable[..., object], *arguments: object) -> MerkleCode:
    """The code with which a call is refused."""
    with pytest.raises(MerkleError) as caught:
        call(*arguments)
    assert isinstance(caught.value, EvidenceError)
    return MerkleCode(caught.value.code)


class TestRoots:
    @pytest.mark.parametrize(
        ("count", "root"),
        [
            (0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"),
            (7, "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"),
            (8, "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"),
        ],
    )
    def test_known_answers(self, count: int, root: str) -> None:
        assert merkle_root(LEAVES[:count]).hex() == root

    @given(st.lists(st.binary(max_size=40), max_size=70))
    def test_equals_the_definition(self, entries: list[bytes]) -> None:
        assert merkle_root([leaf_hash(entry) for entry in entries]) == slow_root(entries)

    def test_the_entry_of_a_file_is_its_canonical_record(self) -> None:
        digest = "ab" * 32
        expected = ('{"path":"a/é.json","sha256":"' + digest + '","size":7}').encode()
        assert file_entry("a/é.json", 7, digest) == expected
        assert file_entry("a/é.json", 7, f"sha256:{digest}") == expected

    def test_an_entry_in_place_of_a_leaf_is_refused(self) -> None:
        with pytest.raises(ValueError, match="32 bytes"):
            merkle_root([b"entry"])


class TestInclusion:
    def test_known_paths(self) -> None:
        """The audit paths of RFC 6962, section 2.1.3, for its tree of seven leaves."""
        a, b, c, d, e, f, j = LEAVES[:7]
        g, h, i = (hashlib.sha256(b"\x01" + x + y).digest() for x, y in ((a, b), (c, d), (e, f)))
        k = hashlib.sha256(b"\x01" + g + h).digest()
        l_ = hashlib.sha256(b"\x01" + i + j).digest()
        paths = {0: [b, h, l_], 3: [c, g, l_], 4: [f, j, k], 6: [i, k]}
        for index, path in paths.items():
            proof = inclusion_proof(LEAVES[:7], index)
            assert proof.hashes == tuple(node.hex() for node in path)

    def test_every_leaf_proves_and_no_other_does(self) -> None:
        """E48: in trees of 1 to 64 leaves, each leaf proves with its own proof and with no other one."""
        for size in SIZES:
            tree = Tree(NUMBERED[:size])
            for index in range(size):
                proof = tree.inclusion_proof(index)
                for other in range(size + 1):
                    if other == index:
                        verify_inclusion(NUMBERED[other], proof, tree.head)
                    else:
                        with pytest.raises(MerkleError):
                            verify_inclusion(NUMBERED[other], proof, tree.head)

    def test_another_index_or_size_never_proves(self) -> None:
        """E48: the same hashes under every other index, and the same leaf under every other size, fail."""
        for size in range(1, 20):
            tree = Tree(NUMBERED[:size])
            for index in range(size):
                proof = tree.inclusion_proof(index)
                others = [{"leaf_index": other} for other in range(size + 2) if other != index]
                others += [{"tree_size": other} for other in range(size + 4) if other != size]
                for change in others:
                    with pytest.raises(MerkleError):
                        verify_inclusion(NUMBERED[index], proof.model_copy(update=change), tree.head)

    @pytest.mark.parametrize("size", [1, 2, 5, 8, 13])
    def test_shape_is_judged_before_hashing(self, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """E48: a wrong length, index or size is refused without computing a single hash."""
        tree = Tree(NUMBERED[:size])
        head, proofs = tree.head, [tree.inclusion_proof(index) for index in range(size)]

        def never(_data: bytes) -> str:
            raise AssertionError("hashed")

        monkeypatch.setattr(merkle, "digest_bytes", never)
        for proof in proofs:
            longer = proof.model_copy(update={"hashes": (*proof.hashes, "00" * 32)})
            assert code_of(verify_inclusion, NUMBERED[0], longer, head) is MerkleCode.PROOF_LENGTH
            if proof.hashes:
                shorter = proof.model_copy(update={"hashes": proof.hashes[:-1]})
                assert code_of(verify_inclusion, NUMBERED[0], shorter, head) is MerkleCode.PROOF_LENGTH
            beyond = proof.model_copy(update={"leaf_index": size})
            assert code_of(verify_inclusion, NUMBERED[0], beyond, head) is MerkleCode.PROOF_RANGE
            empty = proof.model_copy(update={"tree_size": 0})
            assert code_of(verify_inclusion, NUMBERED[0], empty, head) is MerkleCode.PROOF_RANGE

    def test_an_enormous_tree_costs_nothing(self) -> None:
        """E48: the needed length of a proof is arithmetic, whatever size it names."""
        proof = InclusionProof(leaf_index=2**52, tree_size=2**53 - 1, hashes=())
        assert (
            code_of(verify_inclusion, NUMBERED[0], proof, TreeHead(2**53 - 1, b"\0" * 32))
            is MerkleCode.PROOF_LENGTH
        )

    def test_a_node_is_no_leaf(self) -> None:
        """The first byte keeps two leaves from passing for an entry."""
        head = TreeHead(1, merkle_root(NUMBERED[:2]))
        forged = leaf_hash(NUMBERED[0] + NUMBERED[1])
        proof = InclusionProof(leaf_index=0, tree_size=1, hashes=())
        assert code_of(verify_inclusion, forged, proof, head) is MerkleCode.PROOF_ROOT

    @pytest.mark.parametrize("index", [-1, 5])
    def test_no_proof_of_a_leaf_that_is_not_there(self, index: int) -> None:
        assert code_of(inclusion_proof, NUMBERED[:5], index) is MerkleCode.PROOF_RANGE

    @given(st.integers(1, 64), st.data())
    def test_a_changed_hash_never_proves(self, size: int, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, size - 1))
        tree = Tree(NUMBERED[:size])
        proof = tree.inclusion_proof(index)
        if not proof.hashes:
            return
        at = data.draw(st.integers(0, len(proof.hashes) - 1))
        hashes = list(proof.hashes)
        hashes[at] = hashes[at][:-1] + ("0" if hashes[at][-1] != "0" else "1")
        changed = proof.model_copy(update={"hashes": tuple(hashes)})
        assert code_of(verify_inclusion, NUMBERED[index], changed, tree.head) is MerkleCode.PROOF_ROOT


class TestConsistency:
    def test_known_proofs(self) -> None:
        """The consistency proofs of RFC 6962, section 2.1.3, for its tree of seven leaves."""
        a, b, c, d, e, f, j = LEAVES[:7]
        g, h, i = (hashlib.sha256(b"\x01" + x + y).digest() for x, y in ((a, b), (c, d), (e, f)))
        k = hashlib.sha256(b"\x01" + g + h).digest()
        l_ = hashlib.sha256(b"\x01" + i + j).digest()
        proofs = {3: [c, d, g, l_], 4: [l_], 6: [i, j, k]}
        for first, nodes in proofs.items():
            assert consistency_proof(LEAVES[:7], first).hashes == tuple(node.hex() for node in nodes)

    def test_every_earlier_tree_proves(self) -> None:
        """E49: each beginning of a tree of 1 to 64 leaves is proved, and proves no other root."""
        heads = [Tree(NUMBERED[:size]).head for size in range(65)]
        for second in SIZES:
            tree = Tree(NUMBERED[:second])
            for first in range(1, second + 1):
                proof = tree.consistency_proof(first)
                verify_consistency(heads[first], heads[second], proof)
                for wrong in {first - 1, first + 1, second + 1} - {first, 65}:
                    with pytest.raises(MerkleError):
                        verify_consistency(heads[wrong], heads[second], proof)
                    forged = TreeHead(first, heads[wrong].root)
                    assert code_of(verify_consistency, forged, heads[second], proof) is MerkleCode.PROOF_ROOT
                with pytest.raises(MerkleError):
                    verify_consistency(heads[first], heads[second - 1], proof)

    def test_fails_after_a_removed_row(self) -> None:
        """E49: when a row of the earlier state is missing later, no proof of the later tree connects them."""
        for size in range(2, 24):
            earlier = Tree(NUMBERED[:size]).head
            for removed in range(size):
                leaves = [*NUMBERED[:removed], *NUMBERED[removed + 1 : size + 6]]
                later = Tree(leaves)
                proof = later.consistency_proof(size)
                assert code_of(verify_consistency, earlier, later.head, proof) is MerkleCode.PROOF_ROOT

    def test_shape_is_judged_before_hashing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """E48: a consistency proof of wrong length or sizes is refused without computing a single hash."""
        trees = {second: Tree(NUMBERED[:second]) for second in range(1, 18)}
        proofs = [
            tree.consistency_proof(first) for second, tree in trees.items() for first in range(1, second + 1)
        ]
        roots = trees[17].root, trees[16].root

        def never(_data: bytes) -> str:
            raise AssertionError("hashed")

        def heads_for(proof: ConsistencyProof) -> tuple[TreeHead, TreeHead]:
            return TreeHead(proof.first, roots[0]), TreeHead(proof.second, roots[1])

        monkeypatch.setattr(merkle, "digest_bytes", never)
        for proof in proofs:
            longer = proof.model_copy(update={"hashes": (*proof.hashes, "00" * 32)})
            assert code_of(verify_consistency, *heads_for(longer), longer) is MerkleCode.PROOF_LENGTH
            if proof.hashes:
                shorter = proof.model_copy(update={"hashes": proof.hashes[1:]})
                assert code_of(verify_consistency, *heads_for(shorter), shorter) is MerkleCode.PROOF_LENGTH
            for change in ({"first": 0}, {"first": proof.second + 1}, {"second": proof.first - 1}):
                wrong = proof.model_copy(update=change)
                assert code_of(verify_consistency, *heads_for(wrong), wrong) is MerkleCode.PROOF_RANGE
                assert code_of(verify_consistency, *heads_for(proof), wrong) is MerkleCode.PROOF_RANGE

    def test_equal_sizes_need_equal_roots(self) -> None:
        proof = consistency_proof(NUMBERED[:5], 5)
        assert proof.hashes == ()
        assert (
            code_of(verify_consistency, TreeHead(5, NUMBERED[0]), TreeHead(5, NUMBERED[1]), proof)
            is MerkleCode.PROOF_ROOT
        )

    @pytest.mark.parametrize("first", [-1, 0, 6])
    def test_no_proof_of_what_is_no_beginning(self, first: int) -> None:
        assert code_of(consistency_proof, NUMBERED[:5], first) is MerkleCode.PROOF_RANGE


class TestForm:
    def test_proofs_are_documents(self) -> None:
        proof = inclusion_proof(LEAVES[:7], 6)
        assert set(json.loads(proof.model_dump_json())) == {"leaf_index", "tree_size", "hashes"}
        assert parse(InclusionProof, proof.model_dump_json().encode(), Profile.WIRE) == proof
        other = consistency_proof(LEAVES[:7], 3)
        assert set(json.loads(other.model_dump_json())) == {"first", "second", "hashes"}
        assert parse(ConsistencyProof, other.model_dump_json().encode(), Profile.WIRE) == other

    @pytest.mark.parametrize(
        "change",
        [{"leaf_index": -1}, {"tree_size": 2**53}, {"hashes": ("AB" * 32,)}, {"hashes": ("ab" * 31,)}],
    )
    def test_other_forms_are_no_proofs(self, change: dict[str, object]) -> None:
        with pytest.raises(ValidationError):
            InclusionProof.model_validate({"leaf_index": 0, "tree_size": 1, "hashes": ()} | change)
