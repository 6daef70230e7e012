"""Prints what a checkout makes, to compare two versions with `diff`.

    PYTHONHASHSEED=0 PYTHONPATH=CHECKOUT python tools/golden_record.py [PART ...] >FILE

A line is the JSON of a key and its value: the items of every task at each level, seed
and shard, draws that follow results, the scores of right, nearly right, otherwise
written and hostile answers, and what runs of the commands and of subclasses with hooks
of their own leave. They come from the public names of the checkout, with the packages
of this Python. Whoever changes one of these compares the lines of both versions: what
differs must be meant.

A PART is how keys begin, such as `runs`, `"runs serve"` or `"scores gcd"`; by default
all. `runs` takes two minutes on two cores, the other parts much longer.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import reasoning_gym.factory

from rg_env import Tasks, score

LEVELS = (None, 0.0, 0.25, 0.5, 0.75, 1.0)
SHARDS = ((0, 1), (1, 3))
SEEDS = (7, 20_261_126)
NUM_DRAWS = 150
EASY = ("gcd", "chain_sum", "basic_arithmetic", "number_sorting", "letter_counting")
HOSTILE = (
    "9**9**9",
    "1e9999999",
    "[" * 3000,
    "__import__('os')._exit(3)",
    "A+999999999",
    "nan",
    "inf",
    "\ud800",
    "(" * 500 + "1" + ")" * 500,
    "x" * 20_001,
    "R1000000",
)
Pairs = Iterator[tuple[str, Any]]  # keys and values of a record


def digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def described(item: Any) -> list[Any]:
    if item is None:
        return [None]
    entry = json.dumps(item.entry, default=repr, sort_keys=True)
    prompt = item.messages[0]["content"][:40]
    return [json.loads(item.to_json()), digest(entry), prompt]


def tried(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - it is what is recorded
        return [type(error).__name__, str(error)]


def items(task: str) -> Pairs:
    def first(**how: Any) -> list[Any]:
        tasks = Tasks(task, **how)
        return [described(tasks.at(i)) for i in range(2)]

    for level in LEVELS:
        for seed in SEEDS:
            for shard in SHARDS:
                how = {"levels": level, "seed": seed, "shard": shard}
                yield f"items {task} {how}", tried(lambda how=how: first(**how))
    yield (
        f"evaluation {task}",
        tried(lambda: [described(item) for item in Tasks(task).evaluation(2)]),
    )


def draws() -> Pairs:
    for how in ({"levels": "curriculum"}, {"choice": "adaptive"}):
        tasks = Tasks(*EASY, seed=3, **how)
        for number in range(NUM_DRAWS):
            item = next(tasks)
            chance = hashlib.sha256(item.to_json().encode()).digest()
            tasks.feedback(item, [float(byte > 110) for byte in chance[:4]])
            yield f"draws {how} {number}", described(item)[:2]
        yield f"state {how}", json.loads(json.dumps(tasks.state_dict(), default=repr))


def completions(gold: str) -> dict[str, str]:
    """Return the right answer in other forms and near misses, by what they are."""
    middle = len(gold) // 2
    answers = {
        "gold": gold,
        "newlines": f"\n {gold} \n",
        "bold": f"**{gold}**",
        "boxed": rf"$\boxed{{{gold}}}$",
        "fenced": f"```\n{gold}\n```",
        "sentence": f"The answer is {gold}.",
        "quoted": f'"{gold}"',
        "more": f"{gold} 1",
        "less": gold[:-1],
        "swapped": gold[:middle] + gold[middle + 1 :] + gold[middle : middle + 1],
        "doubled": f"{gold}{gold}",
        "upper": gold.upper(),
        "digits": "".join(str((int(c) + 1) % 10) if c in "012" else c for c in gold),
        "first word": (gold.split() or [""])[0],
        "number": "3",
        "yes": "Yes",
        **{f"hostile {i}": text for i, text in enumerate(HOSTILE)},
    }
    right = f"<answer>{gold}</answer>"
    return {name: f"<answer>{text}</answer>" for name, text in answers.items()} | {
        "thinking": f"<think>{gold} <answer>0</answer></think>{right}",
        "twice": f"{right} {right}",
        "none": gold,
        "open": f"<think> so {right}",
        "nested": f"<answer><answer>{gold}</answer></answer>",
        "channel": "<|channel|>analysis<|message|>so<|end|>"
        f"<|start|>assistant<|channel|>final<|message|>{right}",
    }


def scores(task: str) -> Pairs:
    for level in (None, 0.4):
        made = tried(lambda level=level: [Tasks(task, levels=level, seed=11).at(0)])
        (item, *_) = made
        if item is None or isinstance(item, str):
            yield f"scores {task} {level}", made if isinstance(item, str) else None
            continue
        texts = completions(item.gold if item.gold is not None else "3")
        results = score(item, list(texts.values()))
        for name, result in zip(texts, results, strict=True):
            value = [result.value, result.outcome, result.answer]
            yield f"scores {task} {level} {name}", value


def is_wanted(key: str) -> bool:
    return not sys.argv[1:] or key.startswith((*sys.argv[1:],))


def record() -> Pairs:
    if is_wanted("draws"):
        yield from draws()
    for task in sorted(set(reasoning_gym.factory.DATASETS) - {"composite"}):
        for name, part in {"items": items, "scores": scores}.items():
            if is_wanted(f"{name} {task}"):
                yield from part(task)
    from golden_runs import runs  # which imports the framework

    yield from runs(is_wanted)


if __name__ == "__main__":
    for key, value in record():
        print(json.dumps({"key": key, "value": value}), flush=True)
