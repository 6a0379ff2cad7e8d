"""Whether two arms are started alike but for the declared treatment (studies.md section 4, S35).

Source: field-failures.md F33. A pure judgement over what an adapter says it would start: the launch of the
arm off, changed exactly as the adapter declares for what the arm gives, is the launch of the arm. Every
difference is named by its place and by nothing else; a value may be a credential, or a skill's text.

| place | what is there |
|---|---|
| `argv[3]` | an argument, counted in the arm's own, the program being 0 |
| `argv[3] of off` | one that the arm lacks |
| `argv --option`, `argv --option of off` | the value of an option that the treatment declares |
| `env NAME` | a variable |
| `tree {session}/data/x`, `tree {copy}/x` | a file, folder or link of the session's or of the working copy |
| `folder`, `stdin`, `writable` | where it runs, what it is told, what it may write |
| `nothing` | the arm is started as off is |

When a study runs, each launch is held against the digest that was frozen for its arm. What belongs to the
user is no part of that digest: the values of inherited variables and where a login is seen, which a person
may change between two runs, and which are the same for every arm of one run. Nor are a task's variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.providers.launch import COPY, FOLDER, digest_word, file_word, link_word
from skill_effectiveness.studies.file_trees import EntryKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skill_effectiveness.providers import LaunchShape, Treatment
    from skill_effectiveness.studies.file_trees import FileTree

NOTHING: Final = "nothing"


@dataclass(frozen=True, slots=True)
class Given:
    """What an arm gives its agent.

    Attributes:
        skills: everything below the folder of its skills.
        instructions: the bytes of its instructions; `None` for none.
    """

    skills: FileTree
    instructions: bytes | None


def tree_words(tree: FileTree) -> dict[str, str]:
    """The words of a launch's tree for what lies in a frozen one, by path."""
    words: dict[str, str] = {}
    for entry in tree.entries:
        match entry.kind:
            case EntryKind.FOLDER:
                words[entry.path] = FOLDER
            case EntryKind.LINK:
                words[entry.path] = link_word(entry.target or "")
            case EntryKind.FILE:
                words[entry.path] = digest_word(entry.sha256 or "", executable=entry.executable)
    return words


def differences(off: LaunchShape, arm: LaunchShape, treatment: Treatment, given: Given) -> tuple[str, ...]:
    """Where the launch of an arm is not that of off with the declared treatment; none where it is.

    Args:
        off: the launch of the arm without a treatment.
        arm: that of the other one.
        treatment: what the adapter declares for it.
        given: what the arm gives.
    """
    if off == arm:
        return (NOTHING,)
    return (
        *_arguments(off, arm, treatment),
        *(name for name in ("folder", "stdin", "writable") if getattr(off, name) != getattr(arm, name)),
        *(f"env {name}" for name in _variables(off, arm, treatment)),
        *(f"tree {path}" for path in _paths(off, arm, treatment, given)),
    )


def _arguments(off: LaunchShape, arm: LaunchShape, treatment: Treatment) -> Iterator[str]:
    ours, theirs = _Parted(off.argv, treatment), _Parted(arm.argv, treatment)
    for option, (without, with_it) in treatment.options.items():
        if ours.values.get(option) != ([] if without is None else [without]):
            yield f"argv {option} of off"
        if theirs.values.get(option) != ([] if with_it is None else [with_it]):
            yield f"argv {option}"
    matcher = SequenceMatcher(None, ours.words, theirs.words, autojunk=False)
    for kind, first, last, begin, end in matcher.get_opcodes():
        if kind == "equal":
            continue
        yield from (f"argv[{theirs.indexes[index]}]" for index in range(begin, end))
        if begin == end:
            yield from (f"argv[{ours.indexes[index]}] of off" for index in range(first, last))


class _Parted:
    """Arguments without the options of a treatment, and the values of these.

    Attributes:
        words: what is left.
        indexes: where each of them stood.
        values: every value of each declared option.
    """

    def __init__(self, argv: tuple[str, ...], treatment: Treatment) -> None:
        self.words: list[str] = []
        self.indexes: list[int] = []
        self.values: dict[str, list[str | None]] = {option: [] for option in treatment.options}
        index = 0
        while index < len(argv):
            word = argv[index]
            if word in self.values:
                self.values[word].append(argv[index + 1] if index + 1 < len(argv) else None)
                index += 2
                continue
            self.words.append(word)
            self.indexes.append(index)
            index += 1


def _variables(off: LaunchShape, arm: LaunchShape, treatment: Treatment) -> list[str]:
    wanted: dict[str, str | None] = dict(off.environment)
    wrong = set()
    for name, (without, with_it) in treatment.environment.items():
        if wanted.get(name) != without:
            wrong.add(name)
        wanted[name] = with_it
    names = wanted.keys() | arm.environment.keys()
    wrong |= {name for name in names if wanted.get(name) != arm.environment.get(name)}
    # Whose a variable is belongs to it: the user's own are no part of what is frozen.
    wrong |= off.users ^ arm.users
    return sorted(wrong)


def _paths(off: LaunchShape, arm: LaunchShape, treatment: Treatment, given: Given) -> list[str]:
    wanted: dict[str, str | None] = dict(off.tree)
    wrong = set()
    for path, (without, with_it) in treatment.files.items():
        if wanted.get(path) != _file(without):
            wrong.add(path)
        _lay(wanted, path, _file(with_it))
    for path, word in tree_words(given.skills).items():
        _lay(wanted, f"{treatment.skills}/{path}", word)
    if given.instructions is not None:
        _lay(wanted, treatment.instructions, file_word(given.instructions))
    paths = wanted.keys() | arm.tree.keys()
    wrong |= {path for path in paths if wanted.get(path) != arm.tree.get(path)}
    wrong |= off.logins ^ arm.logins
    return sorted(wrong)


def _file(data: bytes | None) -> str | None:
    return None if data is None else file_word(data)


def _lay(wanted: dict[str, str | None], path: str, word: str | None) -> None:
    """Want something at a path, and the folders around it, below the session's own."""
    wanted[path] = word
    session, folder, *parts, _ = path.split("/")
    for depth in range(len(parts)):
        around = "/".join((session, folder, *parts[: depth + 1]))
        if wanted.get(around) is None:
            wanted[around] = FOLDER


def launch_digest(shape: LaunchShape) -> str:
    """What a plan freezes of an arm's launch, whatever task and prompt it has.

    Left out are the working copy, which is the task's, folders as such, and what is the user's.
    """
    return digest_object(
        {
            "argv": list(shape.argv),
            "folder": shape.folder,
            "stdin": shape.stdin,
            "writable": None if shape.writable is None else list(shape.writable),
            "environment": {
                name: value for name, value in shape.environment.items() if name not in shape.users
            },
            "tree": {
                path: word
                for path, word in shape.tree.items()
                if word != FOLDER and path not in shape.logins and not path.startswith(f"{COPY}/")
            },
        }
    )


def is_as_frozen(shape: LaunchShape, frozen: str, environment: FileTree) -> bool:
    """Whether an attempt is started as its arm was frozen, on the files of its task and no others.

    Args:
        shape: of the launch.
        frozen: the digest of the arm.
        environment: the files of the task.
    """
    copy: Mapping[str, str] = {
        path.removeprefix(f"{COPY}/"): word
        for path, word in shape.tree.items()
        if path.startswith(f"{COPY}/")
    }
    return launch_digest(shape) == frozen and copy == tree_words(environment)
