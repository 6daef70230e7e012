"""Files of each kind that a report reads, written by ourselves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rg_env.line_file import encode_group
from rg_env.run.group import Rollout
from tests.support.groups import scored
from tests.support.published import write

UUID = "0123abcd-0000-4000-8000-00000000000{}"


def rollout(text: str, score: float = 0.0, **more: Any) -> Rollout:
    outcome = {1.0: "right", 0.0: "wrong"}.get(score, "partial")
    given = {"reward": score, "outcome": outcome, "answer": text.strip()}
    given |= {"finish_reason": "stop", "prompt_tokens": 9, "completion_tokens": 5}
    question = more.pop("question", "What is 1 + 1?")
    said = [("system", "Think."), ("user", question), ("assistant", text)]
    talk = [{"role": role, "content": content} for role, content in said]
    return Rollout(conversation=talk, score=score, **(given | more))


def group(
    *rollouts: Rollout,
    task: str = "gcd",
    gold: Any = "2",
    level: float | None = None,
    seed: int = 7,
    minute: int = 0,
) -> dict[str, Any]:
    time = f"2026-01-31T12:{minute:02}:00+00:00"
    origin = {"index": seed, "seed": seed, "level": level, "params": {"max_numbers": 2}}
    record = scored(task, rollouts, gold, **origin)
    return record.line({"reasoning_gym": "0.1.25"}, time)


def dump(folder: Path, groups: Iterable[Mapping[str, Any]], run: int = 1) -> Path:
    name = f"reasoning_gym_environment_rollouts_{UUID.format(run)}_0000.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"".join(encode_group(g) + b"\n" for g in groups))
    return folder / name


def published(
    folder: Path, run: str, task: str, answers: Sequence[tuple[str, str, float]]
) -> Path:
    """Write results in the layout of the published ones; answers to a question each."""
    results = [
        {
            "question": question,
            "expected_answer": "2",
            "completions": [
                {
                    "model_answer": answer,
                    "full_model_response": f"<answer>{answer}</answer>",
                    "score": score,
                }
            ],
        }
        for question, answer, score in answers
    ]
    config = {"seed": 45, "size": len(results)}
    head = {"name": task, "category": "arithmetic", "config": config}
    return write(folder, run, {**head, "results": results})


def read_script(path: Path) -> Any:
    """Return what a script of a report hands over."""
    text = path.read_text(encoding="ascii")
    return json.loads(text[text.index("(") + 1 : text.rindex(")")])
