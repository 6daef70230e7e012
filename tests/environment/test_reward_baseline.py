"""The baseline is taken off the rewards, from item to trainer, where it is set so."""

import json

import pytest

from rg_env.tasks import baselines
from rg_env.tasks.baselines import Baseline, Baselines, TaskBaselines
from rg_env.tasks.scales import curriculum_digest
from tests.support.parts import ready_env
from tests.support.runs import rollout_of

pytestmark = pytest.mark.processes

TASK = "sentence_reordering"
"""It scores the share of the words that stand in their place."""

BASELINE = 0.25


def table():
    one = Baseline({}, BASELINE, 0.01, 600, "candidates in random order")
    row = TaskBaselines(curriculum_digest(TASK), 0.0, (one,))
    return Baselines("0.0.1", {TASK: row})


async def test_the_trainer_gets_what_a_score_has_beyond_the_baseline(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(baselines, "load_shipped", table)
    given = {"tasks": [TASK], "reward_baseline": "chance", "dump_rollouts": True}
    async with ready_env(**given, data_dumps_dir=str(tmp_path)) as env:
        item = await env.get_next_item()
        first, second, *rest = item[1]["answer"].split()
        texts = [item[1]["answer"], " ".join([second, first, *rest])]
        rollouts = [rollout_of(item, f"<answer>{text}</answer>") for text in texts]
        group = await env.score(rollouts)
        mean_score = env.metrics.mean_score
    (path,) = tmp_path.glob("*_rollouts_*.jsonl")
    line = json.loads(path.read_text())
    scores = [row["score"] for row in line["rollouts"]]
    assert scores[0] == 1.0 and BASELINE < scores[1] < 1.0
    above = [(score - BASELINE) / (1 - BASELINE) for score in scores]
    assert group["scores"] == pytest.approx(above)
    assert [row["reward"] for row in line["rollouts"]] == group["scores"]
    assert item[2].baseline == line["baseline"] == BASELINE
    assert mean_score == pytest.approx(sum(scores) / len(scores))
