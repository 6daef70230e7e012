"""What a scored group says of its item."""

from rg_env.atropos import group_scoring
from tests.support.parts import RIGHT, rollout


def test_completion_tokens_are_those_the_masks_leave_unmasked():
    assert group_scoring.completion_tokens(rollout(RIGHT, prompt=7, length=5)) == 5


def test_an_entry_from_outside_names_its_task_by_its_metadata():
    entry = {"metadata": {"source_dataset": "sums"}}
    assert group_scoring.task_of(entry, object()) == "sums"
    assert group_scoring.task_of({}, object()) == "unknown"
