"""The evaluation items as a task of Inspect (the package `inspect_ai`).

    inspect eval rg_env/reasoning_gym --model openai/gpt-5 -T tasks=gcd,lcm
    inspect eval rg_env/reasoning_gym --model openai/gpt-5 -T preset=rg-hard

The items and scores are those of the command `evaluate`. A completion without a score
is an unscored sample; no metric counts it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessageSystem,
    ChatMessageUser,
    ContentReasoning,
    ModelOutput,
)
from inspect_ai.scorer import Score, Scorer, Target, ci_wilson, grouped, mean, scorer
from inspect_ai.solver import TaskState, generate

from rg_env import Item, Tasks, score_async
from rg_env.errors import not_allowed

METRICS = [mean(), ci_wilson(), grouped(mean(), "category", all=False)]


@scorer(metrics=METRICS)  # type: ignore[untyped-decorator]
def item_score(
    thinking_open: bool = False, task_modules: str | Sequence[str] = ()
) -> Scorer:
    """Score the completion of a sample in [0, 1], or leave it unscored.

    Args:
        thinking_open: Whether the chat template ends the prompt with `<think>`.
        task_modules: Names or paths of modules of a user's own tasks.
    """

    async def score(state: TaskState, target: Target) -> Score:
        item = Item.from_json(state.metadata["item"], task_modules)
        text = _text(state.output)
        if text is None:
            return Score.unscored(explanation=f"no text: {state.output.error}")
        (result,) = await score_async(item, [text], thinking_open=thinking_open)
        if result.value is None:
            why = f"{result.outcome}: {result.reason}"
            return Score.unscored(answer=result.answer, explanation=why)
        return Score(
            value=result.value,
            answer=result.answer,
            explanation=result.outcome,
            metadata=dict(result.parts),
        )

    return score


def _text(output: ModelOutput) -> str | None:
    """Return the completion with its thinking; None if there is none."""
    if output.empty or output.error or output.stop_reason == "content_filter":
        return None
    content = output.message.content
    parts = [] if isinstance(content, str) else content
    thinking = [part.text for part in parts if isinstance(part, ContentReasoning)]
    return "".join([*thinking, output.completion])


@task  # type: ignore[untyped-decorator]
def reasoning_gym(
    tasks: str | Sequence[str] = (),
    samples_per_task: int = 5,
    seed: int = 123,
    level: float | None = None,
    preset: str | None = None,
    *,
    categories: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    params: Mapping[str, Mapping[str, Any]] | None = None,
    system_prompt: str | None = None,
    answer_format: Literal["tags", "boxed"] = "tags",
    partial_credit: bool = True,
    thinking_open: bool = False,
    task_modules: str | Sequence[str] = (),
) -> Task:
    """Evaluate a model on fixed items of the tasks.

    Args:
        tasks: Names or patterns; none means all.
        samples_per_task: The number of items of each task.
        seed: The seed of the items.
        level: Difficulty in [0, 1]; None for the library's default parameters.
        preset: `rg-easy` or `rg-hard`: the items of a published evaluation.
        categories: Categories of further tasks.
        exclude: Names or patterns of tasks to leave out.
        params: Task to dataset parameters of the library.
        system_prompt: A replacement of the built-in one.
        answer_format: The marks of the answer.
        partial_credit: If false, a score below 1 counts as 0.
        thinking_open: Whether the chat template ends the prompt with `<think>`.
        task_modules: Names or paths of modules of a user's own tasks.

    Raises:
        SettingError: An argument is invalid.
    """
    if not isinstance(system_prompt, (str, type(None))):
        allowed = "text; -T splits it at commas: put it into a file for --task-config"
        raise not_allowed("system_prompt", system_prompt, allowed)
    stream = Tasks(
        *_names(tasks),
        categories=_names(categories) or None,
        exclude=_names(exclude),
        params=params,
        system_prompt=system_prompt,
        answer_format=answer_format,
        partial_credit=partial_credit,
        task_modules=task_modules,
    )
    items = stream.evaluation(samples_per_task, seed, level, preset)
    categories_of = stream.categories()
    samples = [_sample(item, categories_of[item.task]) for item in items]
    return Task(
        dataset=MemoryDataset(samples),
        solver=generate(),
        scorer=item_score(thinking_open, task_modules),
        metadata={"items_digest": stream.digest(items)},
    )


def _names(value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _sample(item: Item, category: str) -> Sample:
    system, user = (message["content"] for message in item.messages)
    return Sample(
        id=f"{item.task}-{item.index}",
        input=[ChatMessageSystem(content=system), ChatMessageUser(content=user)],
        target=item.gold or "",
        metadata={
            "task": item.task,
            "category": category,
            "level": item.level,
            "item": item.to_json(),
        },
    )
