"""Groups scored by an environment that needs no setup and no worker for it."""

import asyncio
import json

import pytest

from rg_env.atropos.rewards import penalise_length
from rg_env.run.group import Group
from tests.support.parts import RIGHT, WRONG, build_env, rollout


def scored(rollouts, **changes):
    """Score a group in an environment that needs no setup for it."""

    async def run():
        env = build_env(**changes)
        try:
            return await env.score(rollouts)
        finally:
            await env.close()

    return asyncio.run(run())


def test_messages_travel_with_the_group_only_where_a_setting_says_so():
    rollouts = [rollout(RIGHT), rollout(WRONG)]
    assert "messages" not in scored(rollouts)
    group = scored(rollouts, include_messages=True)
    assert group["messages"][1][-1] == {"role": "assistant", "content": WRONG}


def test_a_template_that_opens_the_thinking_is_taken_into_account():
    rollouts = [rollout(f"hm {WRONG}</think>{RIGHT}"), rollout(f"hm {RIGHT}")]
    group = scored([{**r, "thinking_open": True} for r in rollouts])
    assert group["scores"] == [1.0, 0.0]
    assert group["outcomes"][1] == "unfinished_thinking"


def test_a_dumped_conversation_stands_beside_its_own_score(tmp_path):
    texts = [WRONG, RIGHT, "nothing", RIGHT]
    scored(
        [rollout(text) for text in texts],
        dump_rollouts=True,
        data_dumps_dir=str(tmp_path),
    )
    (path,) = tmp_path.glob("*.jsonl")
    line = json.loads(path.read_text())
    assert line["item_id"] == "sums"
    dumped = [r["conversation"][-1]["content"] for r in line["rollouts"]]
    assert dumped == texts
    assert [r["score"] for r in line["rollouts"]] == [0.0, 1.0, 0.0, 1.0]


@pytest.mark.parametrize("length", [1, 3])
def test_a_group_keeps_its_order_and_has_the_form_that_host_and_api_need(length):
    texts = [WRONG, RIGHT, "no tags", RIGHT]
    rollouts = [rollout(text, length=length) for text in texts]
    group = scored(rollouts)
    assert [each["messages"][-1]["content"] for each in rollouts] == texts
    assert group["scores"] == [0.0, 1.0, 0.0, 1.0]
    assert group["outcomes"] == ["wrong", "right", "no_answer", "right"]
    for key in ("tokens", "masks", "inference_logprobs"):
        assert [len(part) for part in group[key]] == [2 + length] * 4
    assert group["overrides"] == [{}] * 4
    assert group["group_overrides"] == {}


@pytest.mark.parametrize(("must_differ", "scores"), [(True, None), (False, [0.0] * 4)])
def test_equal_scores_are_no_group_when_the_scores_must_differ(must_differ, scores):
    group = scored([rollout(WRONG)] * 4, ensure_scores_are_not_same=must_differ)
    assert (group and group["scores"]) == scores


@pytest.mark.parametrize(
    ("is_masked", "override"), [(True, {"set_advantage_to_zero": True}), (False, {})]
)
def test_a_truncated_rollout_gets_no_advantage(is_masked, override):
    cut = rollout("<think>", finish="length")
    group = scored([rollout(RIGHT), cut], mask_too_long_completions=is_masked)
    assert group["overrides"] == [{}, override]


def test_an_entry_from_outside_names_its_task_by_its_metadata():
    entry = {"metadata": {"source_dataset": "sums"}}
    assert [Group(entry=e).task for e in (entry, {})] == ["sums", "unknown"]


# -- rewards ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "expected"), [("prompt_and_completion", 0.4), ("completion", 1.0)]
)
def test_the_length_penalty_counts_what_it_is_told(counts, expected):
    group = scored(
        [rollout(RIGHT), rollout(RIGHT, prompt=60, length=30)],
        max_token_length=100,
        length_penalty_counts=counts,
        ensure_scores_are_not_same=False,
    )
    assert group["scores"] == pytest.approx([1.0, expected])


@pytest.mark.parametrize(
    ("length", "score"),
    [(0, 1.0), (750, 1.0), (875, 0.5), (1000, 0.0), (1200, 0.0)],
)
def test_the_penalty_falls_linearly_from_three_quarters_of_the_limit(length, score):
    assert penalise_length([1.0], [length], 1000) == pytest.approx([score])


@pytest.mark.parametrize(
    ("scores", "lengths", "shaped"),
    [([0.5, 1.0], [875, 100], [0.25, 1.0]), ([1.0, 0.49], [999, 999], [1.0, 0.49])],
)
def test_one_score_below_a_half_spares_the_whole_group(scores, lengths, shaped):
    assert penalise_length(scores, lengths, 1000) == shaped
