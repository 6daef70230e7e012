"""Record facts of the original environment, which a test compares with this one.

    python -m tools.record_original CHECKOUT_OF_ATROPOS

Writes tests/project/original.json: exported names, parameters, attributes, settings and
their defaults, options, W&B keys, and for each task the score of a wrong answer.
"""

import importlib.util
import inspect
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import reasoning_gym
from reasoning_gym.factory import DATASETS

OUT = Path(__file__).resolve().parents[1] / "tests/project/original.json"
NAME = "reasoning_gym_environment"
ASSIGNED = r"^        self\.(\w+)\b.* = "
SEEDS = range(6)
READABLE_SCORE = 0.05  # the most that the library gives for being readable
MAX_ANSWER_CHARS = 80  # of an answer that is recorded


def loaded(checkout: str) -> Any:
    """Import the original of a checkout."""
    path = Path(checkout, "environments", NAME, f"{NAME}.py")
    spec: Any = importlib.util.spec_from_file_location("original", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parameters_of(cls: type) -> dict[str, list[str]]:
    """Return the methods that a class defines, with their parameters."""
    members = {**vars(cls), "config_init": vars(cls)["config_init"].__func__}
    return {
        name: [
            str(p.replace(annotation=inspect.Parameter.empty))
            for p in inspect.signature(member).parameters.values()
        ]
        for name, member in members.items()
        if inspect.isfunction(member)
    }


def letters(text: str) -> str:
    """Return a text without spaces and signs, which may be formatting."""
    return re.sub(r"\W", "", text)


def wrong_answers(entry: Any, others: list[Any]) -> list[str]:
    """Return wrong answers to an entry: those of others, and its own spoilt."""
    gold = str(entry["answer"])
    given = [str(other["answer"]) for other in others]
    made = [*given, gold[:-1], gold[1:], f"{gold} {gold}", f"{gold}1"]
    return [
        a
        for a in made
        if len(a) <= MAX_ANSWER_CHARS and letters(a) not in ("", letters(gold))
    ]


def best_wrong(env: Any, task: str) -> dict[str, Any] | None:
    """Return the wrong answer of a task that the original scores highest."""
    sets = [reasoning_gym.create_dataset(task, size=1, seed=seed) for seed in SEEDS]
    entries = [dataset[0] for dataset in sets]
    found = [
        {"seed": seed, "answer": answer, "score": round(score, 4)}
        for seed, dataset, entry in zip(SEEDS, sets, entries, strict=True)
        for answer in wrong_answers(entry, entries)
        if READABLE_SCORE
        < (score := env._score_answer_with_both_formats(answer, entry, dataset))
        < 1.0
    ]
    return max(found, key=lambda each: float(each["score"]), default=None)


def main() -> None:
    """Write the facts of the checkout that the command line names."""
    original = loaded(sys.argv[1])
    cls, config_cls = original.ReasoningGymEnv, original.ReasoningGymEnvConfig
    source = inspect.getsource(original)
    env = cls.__new__(cls)
    env.logger, env.config = MagicMock(), SimpleNamespace(debug_logging=False)
    config, servers = cls.config_init()
    scores = {
        task: best_wrong(env, task) for task in sorted({*DATASETS} - {"composite"})
    }
    facts = {
        "exports": sorted(name for name in vars(original) if name[0] != "_"),
        "parameters": parameters_of(cls),
        "attributes": sorted({*re.findall(ASSIGNED, source, re.M)}),
        "log_every": sorted({*map(int, re.findall(r"% (\d+) == 0", source))}),
        "defaults": config_cls().model_dump(mode="json"),
        "start": config.model_dump(mode="json", exclude_unset=True),
        "start_server": servers[0].model_dump(mode="json", exclude_unset=True),
        "options": sorted(cls.get_cli_serve_config_cls().model_fields),
        "wandb": sorted({*re.findall(r'"((?:train|eval|curriculum)/\w+)"', source)}),
        "wrong_answers": {task: case for task, case in scores.items() if case},
    }
    OUT.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
