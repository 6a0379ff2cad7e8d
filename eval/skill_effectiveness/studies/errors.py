"""What a study command refuses, in closed words (studies.md section 10).

| code | refused because |
|---|---|
| `study_invalid` | the study file is not of its form; line, column and key are named |
| `study_name` | a name for a new example is none |
| `study_exists` | a new example would lie where something lies already |
| `study_missing` | there is no study file, or no study at this place |
| `input_missing` | a file or folder that the study file names cannot be read |
| `input_refused` | it can be read and is not what it has to be |
| `no_task` | the folder of tasks holds none |
| `import_occupied` | the place for imported tasks holds something else |
| `task_refused` | a task folder is refused; every reason is named with its line |
| `driver_unsupported` | this version cannot drive the provider |
| `driver_differs` | the program that was frozen is not the one that is there now |
| `licence_refused` | a reviewer's licence cannot be used |
| `plan_exists` | the place holds another plan |
| `plan_missing` | the place holds no plan |
| `plan_invalid` | the plan is not of its form, or its digest is not that of its fields |
| `plan_changed` | a frozen input is not what the plan says; the field is named |
| `plan_seal` | the seal over the plan does not hold |
| `row_invalid` | a row of the journal is none of a study, or contradicts those before it |
| `amendment_refused` | only study budgets and a reviewer that has not voted can be amended |
| `amendment_late` | it is too late for this amendment |
| `slots_open` | slots have not ended yet |
| `votes_open` | reviewers have not voted yet |
| `vote_invalid` | a vote's file is not what was written |
| `grader_unusable` | the grader cannot be run here at all |
| `report_missing` | there is no report yet, so there is nothing to seal |
| `report_changed` | the report is not the one that the journal names |
| `bundle_occupied` | the place for a bundle or a proof holds something else |
| `bundle_invalid` | a bundle cannot be read, or does not verify |
| `cluster_address` | an address of a cluster is none |
| `cluster_plain` | a plain connection would leave this machine |
| `cluster_tls` | an encrypted connection lacks its certificates |
| `cluster_missing` | what a cluster needs is not installed |
| `cluster_unreachable` | nobody answers at the address of a cluster |
| `order_invalid` | an order, or an input it names, is not what a worker can take |
| `trial_unknown` | a bundle holds no trial of this name |
| `activation_invalid` | results or an activation record are edited, lack their limitations, or are none |
"""

from __future__ import annotations

from enum import StrEnum


class StudyCode(StrEnum):
    """Why a study command is refused; see the table above."""

    STUDY_INVALID = "study_invalid"
    STUDY_NAME = "study_name"
    STUDY_EXISTS = "study_exists"
    STUDY_MISSING = "study_missing"
    INPUT_MISSING = "input_missing"
    INPUT_REFUSED = "input_refused"
    NO_TASK = "no_task"
    IMPORT_OCCUPIED = "import_occupied"
    TASK_REFUSED = "task_refused"
    DRIVER_UNSUPPORTED = "driver_unsupported"
    DRIVER_DIFFERS = "driver_differs"
    LICENCE_REFUSED = "licence_refused"
    PLAN_EXISTS = "plan_exists"
    PLAN_MISSING = "plan_missing"
    PLAN_INVALID = "plan_invalid"
    PLAN_CHANGED = "plan_changed"
    PLAN_SEAL = "plan_seal"
    ROW_INVALID = "row_invalid"
    AMENDMENT_REFUSED = "amendment_refused"
    AMENDMENT_LATE = "amendment_late"
    SLOTS_OPEN = "slots_open"
    VOTES_OPEN = "votes_open"
    VOTE_INVALID = "vote_invalid"
    GRADER_UNUSABLE = "grader_unusable"
    REPORT_MISSING = "report_missing"
    REPORT_CHANGED = "report_changed"
    BUNDLE_OCCUPIED = "bundle_occupied"
    BUNDLE_INVALID = "bundle_invalid"
    CLUSTER_ADDRESS = "cluster_address"
    CLUSTER_PLAIN = "cluster_plain"
    CLUSTER_TLS = "cluster_tls"
    CLUSTER_MISSING = "cluster_missing"
    CLUSTER_UNREACHABLE = "cluster_unreachable"
    ORDER_INVALID = "order_invalid"
    TRIAL_UNKNOWN = "trial_unknown"
    ACTIVATION_INVALID = "activation_invalid"


class StudyError(Exception):
    """A study command is refused.

    Attributes:
        code: the closed word.
        where: a field, a JSON pointer or the name of a file; never a machine path.
        sentence: what is wrong and what to do, for people.
    """

    def __init__(self, code: StudyCode, where: str, sentence: str) -> None:
        self.code = code
        self.where = where
        self.sentence = sentence
        super().__init__(f"{where}: {sentence}" if where else sentence)
