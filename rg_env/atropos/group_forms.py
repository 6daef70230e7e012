"""The forms that a group takes on its way: rollout dicts, record, trainer data.

All three list the rollouts in the same order and the same number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.inference.completions import PROMPT_MASK, Completion
from rg_env.inference.prompts import Prompt
from rg_env.items.group_scorer import GroupScorer, TaskHandle
from rg_env.off_loop import off_loop
from rg_env.rollouts.group_record import GroupRecord, Provenance, RolloutRecord
from rg_env.scoring.extraction import Extraction, extract_answer
from rg_env.scoring.score import Score

FEW_CHARS, FEW_TAGS = 2**18, 2**9
"""A group with so much text and so many tags is searched in place, in half a
millisecond."""

Rollout = Mapping[str, Any]
"""messages, rg_item, dataset_obj, finish_reason, tokens, masks, logprobs; and
thinking_open where the chat template began the thinking."""


def build_rollout(
    prompt: Prompt, completion: Completion, entry: Mapping[str, Any], dataset: Any
) -> dict[str, Any]:
    """Return a rollout as `score` takes it."""
    reply = {"role": "assistant", "content": completion.text}
    return {
        "messages": [*prompt.messages, reply],
        "rg_item": entry,
        "dataset_obj": dataset,
        "finish_reason": completion.finish_reason,
        "tokens": completion.tokens,
        "masks": completion.masks,
        "logprobs": completion.logprobs,
        "thinking_open": prompt.thinking_open,
    }


def completion_tokens(rollout: Rollout) -> int:
    """Return the length of a rollout's completion, in tokens."""
    masks = list(rollout["masks"])
    return len(masks) - masks.count(PROMPT_MASK)


def extract_from(rollout: Rollout) -> Extraction:
    """Extract the answer of a rollout's last message."""
    return extract_answer(
        rollout["messages"][-1]["content"],
        thinking_open=rollout.get("thinking_open", False),
    )


async def _extract_all(rollouts: Sequence[Rollout]) -> list[Extraction]:
    texts = [rollout["messages"][-1]["content"] for rollout in rollouts]
    num_chars = sum(map(len, texts))
    if num_chars <= FEW_CHARS and sum(t.count("<") for t in texts) <= FEW_TAGS:
        return list(map(extract_from, rollouts))
    return await off_loop(list, map(extract_from, rollouts))


async def score_rollouts(
    scorer: GroupScorer, rollouts: Sequence[Rollout]
) -> list[Score]:
    """Extract the answers of one item's rollouts and score those that exist.

    Returns:
        One score per rollout, shape (G,); without an answer 0, with the reason.

    Raises:
        ScoringUnavailable: The worker pool gave no scores.
    """
    extractions = await _extract_all(rollouts)
    answers = [e.answer for e in extractions if e.answer is not None]
    item = rollouts[0]
    scored = await scorer.score_group(item["dataset_obj"], item["rg_item"], answers)
    scores = iter(scored)
    return [
        Score(0.0, e.failure, None) if e.failure is not None else next(scores)
        for e in extractions
    ]


def task_of(entry: Mapping[str, Any], dataset: Any) -> str:
    """Return the task that made an entry."""
    if isinstance(dataset, TaskHandle):
        return dataset.task
    return str((entry.get("metadata") or {}).get("source_dataset", "unknown"))


def baseline_of(rollouts: Sequence[Rollout]) -> float:
    """Return the baseline of one item's rollouts; 0 for an item from outside."""
    dataset = rollouts[0]["dataset_obj"]
    return dataset.baseline if isinstance(dataset, TaskHandle) else 0.0


def _provenance(dataset: Any) -> Provenance | None:
    """Return what regenerates an item of ours; None for one from outside."""
    if not isinstance(dataset, TaskHandle):
        return None
    return Provenance(
        split=dataset.split,
        index=dataset.index,
        seed=dataset.seed,
        level=dataset.level,
        params=dict(dataset.params),
    )


def _rollout_record(rollout: Rollout, score: Score, reward: float) -> RolloutRecord:
    length = completion_tokens(rollout)
    return RolloutRecord(
        conversation=[dict(message) for message in rollout["messages"]],
        score=score.value,
        reward=reward,
        outcome=score.outcome,
        answer=score.answer,
        finish_reason=rollout.get("finish_reason"),
        prompt_tokens=len(rollout["tokens"]) - length,
        completion_tokens=length,
    )


def build_record(
    rollouts: Sequence[Rollout], scores: Sequence[Score], rewards: Sequence[float]
) -> GroupRecord:
    """Put together what is known of a scored group."""
    entry, dataset = rollouts[0]["rg_item"], rollouts[0]["dataset_obj"]
    return GroupRecord(
        task=task_of(entry, dataset),
        rollouts=[
            _rollout_record(*parts)
            for parts in zip(rollouts, scores, rewards, strict=True)
        ],
        gold_answer=entry.get("answer"),
        provenance=_provenance(dataset),
        baseline=baseline_of(rollouts),
    )


def build_trainer_group(
    rollouts: Sequence[Rollout],
    record: GroupRecord,
    overrides: list[dict[str, Any]],
    *,
    sampling: Mapping[str, Any],
    with_messages: bool,
) -> dict[str, Any]:
    """Return what the trainer gets, and what makes the rows of `process` useful.

    The API takes the fields it knows and our sending leaves the others out.
    """
    logprobs = [rollout.get("logprobs") for rollout in rollouts]
    group = {
        "tokens": [rollout["tokens"] for rollout in rollouts],
        "masks": [rollout["masks"] for rollout in rollouts],
        "scores": [rollout.reward for rollout in record.rollouts],
        "inference_logprobs": None if None in logprobs else logprobs,
        "overrides": overrides,
        "group_overrides": {},
        "generation_params": dict(sampling),
        "task": record.task,
        "gold_answer": record.gold_answer,
        "answers": [rollout.answer for rollout in record.rollouts],
        "outcomes": [rollout.outcome for rollout in record.rollouts],
        **record.origin,
    }
    if with_messages:
        group["messages"] = [
            [dict(message) for message in rollout["messages"]] for rollout in rollouts
        ]
    return group
