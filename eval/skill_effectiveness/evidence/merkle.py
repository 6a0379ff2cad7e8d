"""Merkle trees over files: one root for many, short proofs for one of them or for an earlier state.

Source: RFC 6962, section 2.1 (trees and proofs); RFC 9162, sections 2.1.3.2 and 2.1.4.2 (checking proofs);
evidence.md, section 9. A leaf is the hash of an entry, a node the hash of two; different first bytes keep one
from being taken for the other. `Tree` makes proofs, `verify_inclusion` and `verify_consistency` check them.

A root alone does not tell how many leaves it stands for (leaf 0 has the same path in a tree of three and in
one of four), so both are trusted together, as a `TreeHead`. How many hashes a proof must have follows from
its numbers, so a proof of another size, index or length is refused before anything is hashed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from skill_effectiveness.evidence.canonical import digest_bytes, dump
from skill_effectiveness.evidence.faults import EvidenceError, Fault, MerkleCode
from skill_effectiveness.evidence.strict import LARGEST_INTEGER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HASH_BYTES: Final = 32

_LEAF: Final = b"\x00"
_NODE: Final = b"\x01"


class MerkleError(EvidenceError):
    """A Merkle proof is refused, or none can be made."""


_HashText = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Size = Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]


class InclusionProof(BaseModel):
    """That a leaf stands at a place in a tree.

    Attributes:
        leaf_index: its place, from 0.
        tree_size: number of leaves of the tree.
        hashes: the siblings on the way from the leaf to the root, each as 64 hex digits.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    leaf_index: _Size
    tree_size: _Size
    hashes: tuple[_HashText, ...]


class ConsistencyProof(BaseModel):
    """That a tree begins with all leaves of an earlier one, in the same order.

    Attributes:
        first: number of leaves of the earlier tree, at least 1 to prove anything.
        second: number of leaves of the later tree.
        hashes: the nodes needed to rebuild both roots, each as 64 hex digits.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    first: _Size
    second: _Size
    hashes: tuple[_HashText, ...]


@dataclass(frozen=True, slots=True)
class TreeHead:
    """What identifies a tree, as it was sealed.

    Attributes:
        size: number of leaves.
        root: 32 bytes.
    """

    size: int
    root: bytes


def file_entry(path: str, size: int, digest: str) -> bytes:
    """The entry that stands for a file: its canonical `{path, size, sha256}`.

    Args:
        path: relative, with forward slashes.
        size: in bytes.
        digest: 64 hex digits, or the same behind `sha256:`.

    Raises:
        CanonicalError: the path is not text that has a canonical form.
    """
    return dump({"path": path, "size": size, "sha256": digest.removeprefix("sha256:")})


def leaf_hash(entry: bytes) -> bytes:
    """The leaf of an entry: SHA-256 of a zero byte and the entry; 32 bytes."""
    return _sha256(_LEAF + entry)


def merkle_root(leaves: Iterable[bytes]) -> bytes:
    """The root of a tree; of no leaves, the SHA-256 of nothing.

    Args:
        leaves: what `leaf_hash` gave, in order.
    """
    return Tree(leaves).root


def inclusion_proof(leaves: Iterable[bytes], index: int) -> InclusionProof:
    """The proof for one leaf; see `Tree.inclusion_proof`, which many proofs of one tree should use."""
    return Tree(leaves).inclusion_proof(index)


def consistency_proof(leaves: Iterable[bytes], first: int) -> ConsistencyProof:
    """The proof for the tree of the first leaves; see `Tree.consistency_proof`."""
    return Tree(leaves).consistency_proof(first)


class Tree:
    """A tree of leaves.

    Args:
        leaves: what `leaf_hash` gave, in order.

    Raises:
        ValueError: a leaf is not 32 bytes long.
    """

    def __init__(self, leaves: Iterable[bytes]) -> None:
        level = list(leaves)
        if any(len(leaf) != HASH_BYTES for leaf in level):
            raise ValueError("a leaf is a hash of 32 bytes; use leaf_hash first")
        # Level k holds the nodes over 2^k leaves each. A node without a sibling moves up as it is, which
        # gives the same tree as splitting at the largest power of two below the size (RFC 6962, section 2.1).
        self._levels = [level]
        while len(level) > 1:
            pairs = zip(level[::2], level[1::2], strict=False)
            level = [*(_node(left, right) for left, right in pairs), *level[len(level) & ~1 :]]
            self._levels.append(level)

    @property
    def size(self) -> int:
        """Number of leaves."""
        return len(self._levels[0])

    @property
    def root(self) -> bytes:
        """The root; of no leaves, the SHA-256 of nothing."""
        return self._levels[-1][0] if self.size else _sha256(b"")

    @property
    def head(self) -> TreeHead:
        """Size and root."""
        return TreeHead(self.size, self.root)

    def inclusion_proof(self, index: int) -> InclusionProof:
        """The proof that a leaf stands where it does.

        Raises:
            MerkleError: `proof_range`: there is no such leaf.
        """
        if not 0 <= index < self.size:
            raise _refused(MerkleCode.PROOF_RANGE, f"The tree of {self.size} leaves has no leaf {index}.")
        hashes = [
            level[sibling]
            for height, level in enumerate(self._levels[:-1])
            if (sibling := index >> height ^ 1) < len(level)
        ]
        return InclusionProof(leaf_index=index, tree_size=self.size, hashes=_texts(hashes))

    def consistency_proof(self, first: int) -> ConsistencyProof:
        """The proof that the tree of the first leaves is the beginning of this one.

        Raises:
            MerkleError: `proof_range`: `first` is 0, of which nothing can be proved, or more than the size.
        """
        if not 0 < first <= self.size:
            sentence = f"A tree of {self.size} leaves does not go on from one of {first}; ask for 1 or more."
            raise _refused(MerkleCode.PROOF_RANGE, sentence)
        hashes = [] if first == self.size else self._consistency(first)
        return ConsistencyProof(first=first, second=self.size, hashes=_texts(hashes))

    def _consistency(self, first: int) -> list[bytes]:
        # The last leaf of the earlier tree, seen from the highest node that both trees share above it.
        height = _trailing_zeros(first)
        place = (first - 1) >> height
        # When the earlier tree is one full node, its root is known to the verifier already.
        hashes = [self._levels[height][place]] if place else []
        for level in self._levels[height:-1]:
            if (sibling := place ^ 1) < len(level):
                hashes.append(level[sibling])
            place >>= 1
        return hashes


def verify_inclusion(leaf: bytes, proof: InclusionProof, head: TreeHead) -> None:
    """Accept that a leaf stands at its place in a tree.

    Args:
        leaf: what `leaf_hash` gave for the entry at hand.
        proof: from anywhere.
        head: the tree that is trusted.

    Raises:
        MerkleError: `proof_range`, `proof_length` (both before hashing), `proof_root`.
    """
    index, size = proof.leaf_index, proof.tree_size
    if size != head.size:
        raise _refused(MerkleCode.PROOF_RANGE, f"The proof is for a tree of {size} leaves, not {head.size}.")
    if index >= size:
        raise _refused(MerkleCode.PROOF_RANGE, "The proof names a leaf beyond the end of its tree.")
    inner, border = _path_lengths(index, size)
    _demand_length(proof.hashes, inner + border)
    if _climb(leaf, _hashes(proof.hashes), index, inner) != head.root:
        raise _refused(MerkleCode.PROOF_ROOT, "The proof does not lead from this entry to the root.")


def verify_consistency(first: TreeHead, second: TreeHead, proof: ConsistencyProof) -> None:
    """Accept that a tree begins with an earlier one.

    Args:
        first: the earlier tree that is trusted.
        second: the later tree that is trusted.
        proof: from anywhere.

    Raises:
        MerkleError: `proof_range`, `proof_length` (both before hashing), `proof_root`.
    """
    if (proof.first, proof.second) != (first.size, second.size):
        raise _refused(MerkleCode.PROOF_RANGE, "The proof is about trees of other sizes.")
    if not 0 < first.size <= second.size:
        raise _refused(MerkleCode.PROOF_RANGE, "The proof is not about a tree and an earlier, not empty one.")
    if first.size == second.size:
        _demand_length(proof.hashes, 0)
        if first.root != second.root:
            raise _refused(MerkleCode.PROOF_ROOT, "Two trees of the same size have different roots.")
        return
    _verify_growth(first, second, proof.hashes)


def _verify_growth(first: TreeHead, second: TreeHead, texts: Sequence[str]) -> None:
    """Accept a proof between trees of different sizes."""
    height = _trailing_zeros(first.size)
    inner, border = _path_lengths(first.size - 1, second.size)
    inner -= height
    full = first.size == 1 << height
    _demand_length(texts, inner + border + (not full))
    hashes = _hashes(texts)
    seed, way = (first.root, hashes) if full else (hashes[0], hashes[1:])
    place = (first.size - 1) >> height
    # Both roots are rebuilt over the same way: the earlier one sees only what lies to the left.
    earlier = seed
    for step, sibling in enumerate(way):
        if step >= inner or place >> step & 1:
            earlier = _node(sibling, earlier)
    if earlier != first.root or _climb(seed, way, place, inner) != second.root:
        raise _refused(MerkleCode.PROOF_ROOT, "The later tree does not begin with the earlier one.")


def _path_lengths(index: int, size: int) -> tuple[int, int]:
    """How many siblings stand on the way up: below the split of the tree, and along its left edge."""
    inner = (index ^ (size - 1)).bit_length()
    return inner, (index >> inner).bit_count()


def _climb(seed: bytes, way: Sequence[bytes], place: int, inner: int) -> bytes:
    """The root that a node reaches with its siblings."""
    for step, sibling in enumerate(way):
        on_the_left = step >= inner or place >> step & 1
        seed = _node(sibling, seed) if on_the_left else _node(seed, sibling)
    return seed


def _trailing_zeros(number: int) -> int:
    return (number & -number).bit_length() - 1


def _demand_length(hashes: Sequence[str], needed: int) -> None:
    if len(hashes) != needed:
        sentence = f"The proof has {len(hashes)} hashes, but with its numbers it must have {needed}."
        raise _refused(MerkleCode.PROOF_LENGTH, sentence)


def _node(left: bytes, right: bytes) -> bytes:
    return _sha256(_NODE + left + right)


def _sha256(data: bytes) -> bytes:
    return bytes.fromhex(digest_bytes(data).removeprefix("sha256:"))


def _texts(hashes: Sequence[bytes]) -> tuple[str, ...]:
    return tuple(data.hex() for data in hashes)


def _hashes(texts: Sequence[str]) -> list[bytes]:
    return [bytes.fromhex(text) for text in texts]


def _refused(code: MerkleCode, sentence: str) -> MerkleError:
    return MerkleError(Fault(code, "", sentence))
