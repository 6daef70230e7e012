"""Scores and outcomes: right, nearly right, otherwise written, and hostile texts."""

from __future__ import annotations

import json

import reasoning_gym.factory

from rg_env import Tasks, score

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


def tell(key: str, value: object) -> None:
    print(json.dumps({"key": key, "value": value}), flush=True)


def answers_to(gold: str) -> dict[str, str]:
    """Return right answers in other forms and near misses, by what they are."""
    middle = len(gold) // 2
    return {
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
        "hashed": f"{gold}#",
        "digits": "".join(str((int(c) + 1) % 10) if c in "012" else c for c in gold),
        "first word": (gold.split() or [""])[0],
        "number": "3",
        "yes": "Yes",
    }


def completions(answer: str) -> dict[str, str]:
    right = f"<answer>{answer}</answer>"
    return {
        "plain": right,
        "thinking": f"<think>{answer} <answer>0</answer></think>{right}",
        "twice": f"{right} {right}",
        "none": answer,
        "open": f"<think> so {right}",
        "nested": f"<answer><answer>{answer}</answer></answer>",
        "channel": "<|channel|>analysis<|message|>so<|end|>"
        f"<|start|>assistant<|channel|>final<|message|>{right}",
    }


def main() -> None:
    for task in sorted(set(reasoning_gym.factory.DATASETS) - {"composite"}):
        for level in (None, 0.4):
            tasks = Tasks(task, levels=level, seed=11)
            try:
                items = [tasks.at(i) for i in range(3)]
            except Exception as error:  # noqa: BLE001 - it is what is recorded
                tell(f"scores {task} {level}", [type(error).__name__, str(error)])
                continue
            for number, item in enumerate(items):
                if item is None:
                    continue
                gold = item.gold if item.gold is not None else "3"
                texts = {
                    f"answer {name}": f"<answer>{text}</answer>"
                    for name, text in answers_to(gold).items()
                }
                if number == 0:
                    texts |= {f"form {n}": t for n, t in completions(gold).items()}
                    texts |= {
                        f"hostile {i}": f"<answer>{text}</answer>"
                        for i, text in enumerate(HOSTILE)
                    }
                results = score(item, list(texts.values()))
                for name, result in zip(texts, results, strict=True):
                    tell(
                        f"scores {task} {level} {number} {name}",
                        [result.value, result.outcome, result.answer],
                    )


main()
