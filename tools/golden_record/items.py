"""Items of every task at each level, seed and shard; draws that follow results."""

from __future__ import annotations

import hashlib
import json

import reasoning_gym.factory

from rg_env import Tasks

LEVELS = (None, 0.0, 0.25, 0.5, 0.75, 1.0)
SHARDS = ((0, 1), (1, 3))
SEEDS = (7, 20_261_126)
NUM_DRAWS = 150
EASY = ("gcd", "chain_sum", "basic_arithmetic", "number_sorting", "letter_counting")


def tell(key: str, value: object) -> None:
    print(json.dumps({"key": key, "value": value}), flush=True)


def described(item: object) -> list[object]:
    if item is None:
        return [None]
    entry = json.dumps(item.entry, default=repr, sort_keys=True)
    digest = hashlib.sha256(entry.encode(errors="surrogatepass")).hexdigest()[:16]
    return [json.loads(item.to_json()), digest, item.messages[0]["content"][:40]]


def result_of(item: object) -> list[float]:
    """Return recorded results of a group, made of the item alone."""
    digest = hashlib.sha256(item.to_json().encode()).digest()
    return [float(byte > 110) for byte in digest[:4]]


def main() -> None:
    for task in sorted(set(reasoning_gym.factory.DATASETS) - {"composite"}):
        for level in LEVELS:
            for seed in SEEDS:
                for shard in SHARDS:
                    key = f"items {task} level={level} seed={seed} shard={shard}"
                    try:
                        tasks = Tasks(task, levels=level, seed=seed, shard=shard)
                        tell(key, [described(tasks.at(i)) for i in range(2)])
                    except Exception as error:  # noqa: BLE001 - it is what is recorded
                        tell(key, [type(error).__name__, str(error)])
                        break
        try:
            found = [described(item) for item in Tasks(task).evaluation(2)]
        except Exception as error:  # noqa: BLE001 - it is what is recorded
            found = [[type(error).__name__, str(error)]]
        tell(f"evaluation {task}", found)
    for how in (
        {"levels": "curriculum"},
        {"choice": "adaptive"},
        {"choice": "in_turn"},
    ):
        tasks = Tasks(*EASY, seed=3, **how)
        for number in range(NUM_DRAWS):
            item = next(tasks)
            tasks.feedback(item, result_of(item))
            tell(f"draws {how} {number}", described(item)[:2])
        tell(f"state {how}", json.loads(json.dumps(tasks.state_dict(), default=repr)))


main()
