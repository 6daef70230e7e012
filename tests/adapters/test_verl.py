"""The reward that verl loads from a file beside the items."""

import importlib.util

import pytest

from rg_env import Item, Result, Tasks
from rg_env.adapters import dataset_export, verl
from rg_env.adapters.verl import MAX_TRIES
from rg_env.errors import RunError

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def item(own_pool):
    return next(Tasks("gcd", levels="random"))


@pytest.fixture
def call(item, tmp_path):
    """Return what calls the function as verl does: by a path, with keywords."""
    pytest.importorskip("pyarrow")
    with dataset_export.new_export(tmp_path / "x", "verl", "parquet") as export:
        rows = list(
            dataset_export.verl_rows(
                "train", dataset_export.item_rows(Tasks("gcd"), [item])
            )
        )
        export.write("train", rows)
    path = tmp_path / "x" / "compute_score.py"
    spec = importlib.util.spec_from_file_location("custom_module", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def compute(text, **how):
        return module.compute_score(
            data_source=rows[0]["data_source"],
            solution_str=text,
            ground_truth=rows[0]["reward_model"]["ground_truth"],
            extra_info=rows[0]["extra_info"] | {"num_turns": 2},
            **how,
        )

    return compute


def test_a_completion_has_the_score_of_the_item_with_the_same_keys(call, item):
    right = call(f"<answer>{item.gold}</answer>", reward_router_address="x")
    parts = {"format": 1.0, "correct": 1.0, "partial": 1.0}
    assert right == {"score": 1.0, "right": 1.0, "outcome": "right", **parts}
    for text in ("", "<answer></answer>", "<answer>0.5</answer>"):
        wrong = call(text)
        assert wrong["right"] == 0.0 and tuple(wrong) == tuple(right)


def scoring(monkeypatch, *results):
    """Let `score` return these one after the other; return the calls."""
    left, pauses = list(results), []
    monkeypatch.setattr(verl, "score", lambda *_, **__: [left.pop(0)])
    monkeypatch.setattr(verl.time, "sleep", pauses.append)
    return left, pauses


LOST = Result(None, "unscored", "4", "workers were killed")


def test_a_completion_that_no_worker_has_scored_is_scored_again(call, monkeypatch):
    left, pauses = scoring(monkeypatch, LOST, LOST, Result(0.5, "partial", "4"))
    assert call("<answer>4</answer>")["score"] == 0.5
    assert not left and pauses == sorted(pauses) and len(pauses) == 2


def test_a_completion_without_a_score_is_an_error_and_never_a_reward(call, monkeypatch):
    scoring(monkeypatch, *[LOST] * MAX_TRIES)
    with pytest.raises(RunError, match="gcd: unscored: workers were killed"):
        call("<answer>4</answer>")


def test_an_item_that_the_library_no_longer_makes_is_an_error_at_once(item):
    text = item.to_json().replace(item.digest, "0" * 16)
    other = {"item": Item.from_json(text).to_json()}
    with pytest.raises(RunError, match=r"unmatched: .* makes another item"):
        verl.compute_score("reasoning_gym/gcd", "<answer>4</answer>", None, other)
