"""The exposure assay: before and after each batch, one call an arm that asks an agent what it sees.

Source: studies.md section 4; field-failures.md F31, F32, F36. For the call, every arm that has a treatment
gets one skill more, which orders a nonce to be written; and marks lie wherever a program might look although
it was not told to (`markers`). Passed is an arm

| arm | that wrote the nonce | that showed a mark |
|---|---|---|
| with a treatment | has to | must not |
| without one | cannot | must not |

A mark counts wherever it turns up: in the answer, in the file, in what the program said. A call that did not
come to a good end has passed nothing: what cannot be told has not been shown.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import mac
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.laying import lay_file, lay_folder
from skill_effectiveness.execution import SessionFolders
from skill_effectiveness.providers import Ending, Mount, WorkCall
from skill_effectiveness.studies.confining import confinement_of
from skill_effectiveness.studies.file_trees import EntryKind, HeldTree, scan
from skill_effectiveness.studies.markers import planted
from skill_effectiveness.studies.payloads import SKILL_FILE
from skill_effectiveness.studies.task_folder import WORKDIR
from skill_effectiveness.studies.workplace import lay_workplace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skill_effectiveness.providers import CallOutcome, Provider
    from skill_effectiveness.studies.agent import AgentStudy, AssayResult
    from skill_effectiveness.studies.words import Arm
    from skill_effectiveness.studies.workplace import Workplace

SKILL: Final = "exposure-check"
"""The skill that a treated arm is given for the call."""

ANSWER: Final = "exposure.txt"
SECONDS: Final = 300.0
PROMPT: Final = f"""This is an exposure check of the session you are in.

Look at the skills and the standing instructions that this session was given, and at nothing else. If one
of the skills is called {SKILL}, do what it says. Then write into the file {ANSWER} in your working folder,
one on a line, the name of every skill you were given; write the word none if there is no skill. Do nothing
else.
"""
_SKILL_TEXT: Final = f"""---
name: {SKILL}
description: When an exposure check is asked for, write the word {{nonce}} into the file {ANSWER}.
---
When an exposure check is asked for, write the word {{nonce}} on a line of its own into the file {ANSWER}.
"""


class Exposure:
    """The assays of one study.

    Args:
        study: stays the caller's, and open as long.
        provider: the adapter, bound to its program.
        hidden: what no agent may be shown.
    """

    def __init__(self, study: AgentStudy, provider: Provider, hidden: Iterable[Path] = ()) -> None:
        self._study = study
        self._provider = provider
        self._around = study.around
        self._seed = study.seed()
        # An assay is around the agent what an attempt is, and no part of what is audited.
        self._around_it = confinement_of(study.plan.isolation, WORKDIR, hidden, traced=False)
        self._shown: dict[Arm, bool] = {}

    @property
    def shown(self) -> bool:
        """Whether the last assay of every arm in this run showed nothing but its treatment."""
        return bool(self._shown) and all(self._shown.values())

    def assay(self, batch: int, phase: str, arm: Arm) -> AssayResult:
        """Ask one arm's agent what it sees.

        Raises:
            StudyError: a frozen input is missing or changed.
            EvidenceError: the folders of the call cannot be made.
        """
        passed = self._passed(batch, phase, arm)
        self._shown[arm] = passed
        return "passed" if passed else "failed"

    def _passed(self, batch: int, phase: str, arm: Arm) -> bool:
        about = {"use": "assay", "batch": batch, "phase": phase, "arm": str(arm)}
        nonce = f"nonce-{mac(self._seed, about).hex()[:32]}"
        mark = f"mark-{mac(self._seed, about | {'use': 'mark'}).hex()[:32]}"
        payload = self._study.payload_files(str(arm))
        with SessionFolders(self._around) as session:
            place = lay_workplace(session, self._around.fs, HeldTree.of_files({}), payload)
            mount = self._with_check(session.work, place, nonce)
            call = WorkCall(
                PROMPT,
                place.app,
                self._study.plan.driver.model,
                SECONDS,
                mount=mount,
                confinement=self._around_it,
            )
            try:
                with planted(
                    self._around.fs, home=self._home(), project=session.work, name=self._name(), word=mark
                ):
                    outcome = self._provider.work(call, around=self._around)
                wrote = self._wrote(place)
            except EvidenceError:
                return False
        marked = mark in wrote or mark in _said(outcome)
        return outcome.ending is Ending.SUCCESS and not marked and (mount is None or nonce in wrote)

    def _with_check(self, work: Path, place: Workplace, nonce: str) -> Mount | None:
        """What the arm gives, and the check; nothing for an arm that gives nothing."""
        if place.mount is None:
            return None
        folder = work / SKILL
        lay_folder(self._around.fs, folder)
        lay_file(self._around.fs, folder / SKILL_FILE, _SKILL_TEXT.format(nonce=nonce).encode())
        return Mount((*place.mount.skills, folder), place.mount.instructions)

    def _wrote(self, place: Workplace) -> str:
        """What the agent wrote into its answer; the skill's text in a stream is no deed of its."""
        fs = self._around.fs
        held = HeldTree.on_disk(fs, place.app, scan(fs, place.app).tree)
        answer = held.tree.find(ANSWER)
        if answer is None or answer.kind is not EntryKind.FILE:
            return ""
        return held.blob(answer).decode(errors="replace")

    def _name(self) -> str:
        """Of the marks of this study."""
        return f"exposure-mark-{self._study.plan.plan_digest.removeprefix('sha256:')[:16]}"

    def _home(self) -> Path | None:
        home = self._around.environ.get("HOME", "")
        return Path(home) if home.startswith("/") else None


def _said(outcome: CallOutcome) -> str:
    """Everything that the program said."""
    recording = outcome.recording
    if recording is None:
        return ""
    return b"\n".join((recording.stdout, recording.stderr, recording.export or b"")).decode(errors="replace")
