"""The baseline is taken off the rewards, from item to trainer, where it is set so."""

import asyncio
import json

import pytest

from rg_env.tasks import baselines
from rg_env.tasks.baselines import Baseline, Baselines, TaskBaselines
from rg_env.tasks.scales import curriculum_digest
from tests.support.parts import rollout
from tests.support.real_api import LIMIT, SIZE, RealApi, in_time, registered

pytestmark = pytest.mark.processes

TASK = "sentence_reordering"
"""It scores the share of the words that stand in their place."""

BASELINE = 0.25
LONG = LIMIT - 12
"""Completion tokens at which the length penalty leaves little."""


def table():
    one = Baseline({}, BASELINE, 0.01, 600, "candidates in random order")
    row = TaskBaselines(curriculum_digest(TASK), 0.0, (one,))
    return Baselines("0.0.1", {TASK: row})


def group_of(item, answers, lengths=(3, 3)):
    _, entry, handle = item
    return [
        rollout(f"<answer>{answer}</answer>", dataset=handle, entry=entry, length=n)
        for answer, n in zip(answers, lengths, strict=True)
    ]


def with_two_words_exchanged(text):
    first, second, *rest = text.split()
    return " ".join([second, first, *rest])


async def run(api, folder, setting):
    """Have a right answer and a half right one of an item scored and sent.

    Returns:
        The handle of the item, its line in the dump file, what the trainer got, the
        mean score that the metrics know, and the rewards of two right answers of which
        the second is nearly as long as the limit.
    """
    given = {
        "tasks": [TASK],
        "complexity_mode": None,
        "reward_baseline": setting,
        "dump_rollouts": True,
        "data_dumps_dir": str(folder),
        "num_eval_samples_per_task": 1,
    }
    async with registered(api.url, **given) as env:
        await env.setup()
        item = await env.get_next_item()
        gold = item[1]["answer"]
        answers = [gold, with_two_words_exchanged(gold)]
        group = await env.score(group_of(item, answers))
        mean_score = env.metrics.mean_score
        long = await env.score(group_of(item, [gold] * SIZE, (3, LONG)))
        env.ledger.query(SIZE)
        await in_time(env.handle_send_to_api(group))
        (sent,) = api.batches()
    (path,) = folder.glob("*_rollouts_*.jsonl")
    line = json.loads(path.read_text().splitlines()[0])
    return item[2], line, sent, mean_score, long["scores"]


@pytest.fixture(scope="module")
def runs(only_api, tmp_path_factory):
    folder = tmp_path_factory.mktemp("baseline")
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "load_shipped", table)
        for setting in ("none", "chance"):
            api = RealApi(only_api, folder)
            api.forget()
            api.start_trainer()
            found[setting] = asyncio.run(run(api, folder / setting, setting))
    return found


def test_the_trainer_gets_what_a_score_has_beyond_the_baseline_and_the_rest_the_score(
    runs,
):
    handle, line, sent, mean_score, _ = runs["chance"]
    scores = [row["score"] for row in line["rollouts"]]
    assert scores[0] == 1.0 and BASELINE < scores[1] < 1.0
    above = [(score - BASELINE) / (1 - BASELINE) for score in scores]
    assert sent["scores"] == pytest.approx(above)
    assert [row["reward"] for row in line["rollouts"]] == sent["scores"]
    assert handle.baseline == line["baseline"] == BASELINE
    assert mean_score == pytest.approx(sum(scores) / len(scores))
