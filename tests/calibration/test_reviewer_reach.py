"""What a reviewer's process can reach: the question, and nothing of where it comes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.calibration.errors import CallFailed
from skill_effectiveness.calibration.reviewer import Reviewer
from skill_effectiveness.calibration.sample import SampleRequest, Sampling, take_sample
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.protocol.resources import frozen_folder
from skill_effectiveness.providers import CodexProvider
from tests.support.examinations import BANK, MANIFEST, Anything, manifest
from tests.support.fake_program import READ_PROMPT, write_codex
from tests.support.provider_calls import surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator

# Written by the reviewer's own process: what it was given, and every file it opens until it ends.
RECORD = """
opened = []
sys.addaudithook(lambda event, found: opened.append(str(found[0])) if event == 'open' else None)
below = [os.path.join(at, name) for at, _, names in os.walk(os.path.dirname(os.getcwd())) for name in names]
seen = {
    'argv': sys.argv,
    'environ': dict(os.environ),
    'cwd': os.getcwd(),
    'descriptors': [os.path.realpath(f'/proc/self/fd/{number}') for number in os.listdir('/proc/self/fd')],
    'prompt': prompt.decode(),
    'files': {path: open(path, 'rb').read().decode('latin-1') for path in below},
    'links': [os.path.realpath(path) for path in below],
}
seen['opened'] = opened
json.dump(seen, open(folder + '/seen.json', 'w'))
say(*good)
"""


def texts(value: Anything) -> Iterator[str]:
    """Every text in a JSON value, keys included."""
    match value:
        case str():
            yield value
        case dict():
            for key, inner in value.items():
                yield key
                yield from texts(inner)
        case list():
            for inner in value:
                yield from texts(inner)


@pytest.fixture
def seen(tmp_path: Path) -> dict[str, Any]:
    """What a reviewer's process found around itself."""
    around = surroundings(tmp_path)
    adapter = CodexProvider.at(write_codex(tmp_path, READ_PROMPT + RECORD), around=around)
    with PrivateRoot.create(tmp_path / "out", RootKind.OUT, around=around, checkout=None) as root:
        asked = SampleRequest("s-1", "model-1", "family-1", 20, MANIFEST)
        # Its answer judges nothing; what matters here is what it was shown.
        with pytest.raises(CallFailed, match="An answer came and does not count"):
            take_sample(root, asked, Sampling(Reviewer.real(adapter), manifest))
    found: dict[str, Any] = json.loads((tmp_path / "seen.json").read_bytes())
    return found


def test_it_is_handed_no_way_to_a_fixture(seen: dict[str, Any]) -> None:
    """R40: neither argument, variable, folder, descriptor, link nor file of its session names one."""
    assert len(seen["prompt"]) > 10_000
    assert seen["files"]
    places = {str(frozen_folder()), str(Path(__file__).resolve().parents[2]), "fixtures", "known-answers"}
    for text in texts({**seen, "prompt": "", "opened": []}):
        assert not any(place in text for place in places), text


def test_it_opens_no_fixture_and_is_sent_no_answer(seen: dict[str, Any]) -> None:
    """R40 R3: every file that it opened is of its own session or of its own program."""
    fixtures = {path.name for path in (frozen_folder() / "fixtures").iterdir()}
    assert not {Path(path).name for path in seen["opened"]} & fixtures
    for case_id in BANK.case_ids:
        assert not any(case_id in text for text in texts(seen))
