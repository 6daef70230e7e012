"""Results in the layout of the published ones, with completions of our own.

    FOLDER/RUN/CATEGORY/TASK.json

The items are the library's; each completion is written here in one of a few ways.
"""

import json
import statistics

from rg_env.library import worker_jobs

SIZE, SEED = 50, 45
DEADLINE_S = 120.0
WAYS = {
    "right": lambda gold: (f"So <answer>{gold}</answer>", gold, 1.0),
    "formatted": lambda gold: (
        f"<answer>**{gold}**</answer>",
        f"**{gold}**",
        len(gold) / (len(gold) + 4),
    ),
    "wrong": lambda gold: ("<answer>x</answer>", "x", 0.0),
    "negated": lambda gold: (f"<answer>-{gold}</answer>", f"-{gold}", 0.5),
    "twice": lambda gold: (f"<answer>{gold}</answer>" * 2, gold, 1.0),
    "untagged": lambda gold: (f"It is {gold}.", None, 0.0),
    "empty": lambda gold: ("", None, 0.0),
}
"""Way to what a completion of it is, from the gold answer: text, what the published
extraction takes of it, and a score of then."""


def config_of(**params):
    return {"size": SIZE, "seed": SEED, **params}


def entries_of(pool, task, config):
    """Return the first ten entries of a task, made in a worker."""
    call = (worker_jobs.dataset_entry, task, json.dumps(config))
    return [pool.call(*call, place, deadline_s=DEADLINE_S) for place in range(10)]


def document(
    task,
    category,
    config,
    entries,
    ways,
):
    """Return one TASK.json; `ways` says how the completions of an item are written."""
    results, means = [], []
    for place, entry in enumerate(entries):
        rows = [WAYS[way](entry["answer"]) for way in ways(place)]
        completions = [
            {"model_answer": answer, "full_model_response": text, "score": score}
            for text, answer, score in rows
        ]
        means.append(statistics.fmean(score for _, _, score in rows))
        results.append(
            {
                "question": entry["question"],
                "expected_answer": entry["answer"],
                "completions": completions,
            }
        )
    return {
        "name": task,
        "category": category,
        "average_mean_score": statistics.fmean(means),
        "config": dict(config),
        "results": results,
    }


def write(folder, run, found):
    """Write one TASK.json where the published results have it."""
    path = folder / run / found["category"] / f"{found['name']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=2))
    return path
