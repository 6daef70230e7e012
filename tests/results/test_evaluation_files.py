"""The folder of an evaluation, begun beside others and continued."""

import asyncio
import json
import shutil
from types import SimpleNamespace

from rg_env.results.evaluation_files import EvaluationFiles
from rg_env.run.group import Ending, Group, Rollout
from rg_env.run.loop import Lost

SETTINGS = "versions: {}\nenv: {}\nopenai: []\n"
KNOWN = [{"task": "gcd", "question": "?", "completion": i} for i in range(3)]
UNANSWERED = Lost(Ending.UNANSWERED)
PROGRESS = SimpleNamespace(advance=lambda mean: None)


def evaluated(folder, *steps, resumes=True, gave_up=True, settings=SETTINGS):
    """Evaluate what is missing: `steps` are scores, None, or what is done between."""

    async def run():
        how = {"resumes": resumes, "has_tokens": True}
        async with EvaluationFiles(str(folder), settings, KNOWN, **how) as files:
            files.progress = PROGRESS
            missing = iter(files.missing)
            for step in steps:
                if callable(step):
                    step()
                elif step is None:
                    await files.give_up(Group(known=next(missing)), UNANSWERED)
                else:
                    rollouts = [
                        Rollout(score=step, outcome="wrong", answer="half \ud800")
                    ]
                    await files.take(Group(known=next(missing), rollouts=rollouts))
            return await files.finish(files.rows, gave_up=gave_up)

    return asyncio.run(run())


def lines(folder):
    text = (folder / "samples.jsonl").read_text()
    return [json.loads(each) for each in text.splitlines()]


def test_a_continued_evaluation_has_one_line_of_each_completion(tmp_path):
    evaluated(tmp_path, 0.5, None, None)
    evaluated(tmp_path, 0.0, None)
    assert [line.get("score") for line in lines(tmp_path)] == [0.5, 0.0, None]
    assert [line["completion"] for line in lines(tmp_path)] == [0, 1, 2]


def test_an_evaluation_beside_a_training_leaves_earlier_ones_alone(tmp_path):
    first = tmp_path / "results"
    evaluated(first, 0.5, 0.5, 0.5)
    before = {path: path.read_bytes() for path in first.iterdir()}
    (tmp_path / "results_1").touch()
    other = SETTINGS.replace("{}", "{x: 1}", 1)
    found = evaluated(first, 0.0, resumes=False, gave_up=False, settings=other)
    assert found.name == "results_2"
    assert {path: path.read_bytes() for path in first.iterdir()} == before
    assert (found / "evaluate_config.yaml").read_text() == other


def test_a_folder_that_somebody_removes_is_made_again_with_its_settings(tmp_path):
    folder = tmp_path / "results"
    evaluated(folder, 0.5, lambda: shutil.rmtree(folder), 0.5)
    assert (folder / "evaluate_config.yaml").read_text() == SETTINGS
    assert len(lines(folder)) == 1
