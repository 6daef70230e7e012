"""The task as Inspect runs it, with the command of the package itself.

`test_their_packages.py` runs this file in an environment that holds Inspect.
"""

import asyncio
import json
import math

import pytest

pytest.importorskip("inspect_ai")

from inspect_ai.log import read_eval_log
from inspect_ai.model import ModelName, ModelOutput
from inspect_ai.scorer import Target
from inspect_ai.solver import TaskState

from rg_env import Tasks, score
from rg_env.adapters.inspect import item_score, reasoning_gym
from rg_env.errors import SettingError

pytestmark = pytest.mark.processes

TEXTS = ["<answer>{}</answer>", "<think>no</think><answer>-1</answer>", "{}"]
THINKING = "It may be <answer>-1</answer>."


@pytest.fixture(scope="module")
def items():
    return Tasks("gcd", "lcm").evaluation(2)


@pytest.fixture(scope="module")
def log(items, serve_chat, command, tmp_path_factory):
    """The log of `inspect eval`: right, wrong, no answer, and a separate thinking."""
    golds = [item.gold for item in items]
    texts = [{"content": t.format(g)} for t, g in zip(TEXTS, golds, strict=False)]
    right = f"<answer>{golds[3]}</answer>"
    texts.append({"content": right, "reasoning_content": THINKING})
    by_question = {i.question: t for i, t in zip(items, texts, strict=True)}
    folder = tmp_path_factory.mktemp("evaluated")
    url = serve_chat(by_question)
    model = ("--model", "openai-api/local/p", "--model-base-url", url)
    given = ("-T", "tasks=gcd,lcm", "-T", "samples_per_task=2", "--display", "plain")
    command(
        folder,
        "inspect",
        *("eval", "rg_env/reasoning_gym", *model, *given),
        LOCAL_API_KEY="none",
        INSPECT_LOG_DIR=str(folder),
    )
    (path,) = folder.glob("*.eval")
    return read_eval_log(str(path))


def test_the_samples_are_the_evaluation_items(log, items):
    assert [s.metadata["item"] for s in log.samples] == [i.to_json() for i in items]
    assert log.eval.metadata == {"items_digest": Tasks("gcd", "lcm").digest(items)}
    prompts = [[m.text for m in s.input] for s in log.samples]
    assert prompts == [[m["content"] for m in i.messages] for i in items]
    assert [sample.target for sample in log.samples] == [i.gold for i in items]


def test_each_score_is_that_of_the_library_with_answer_and_outcome(log, items):
    golds = [item.gold for item in items]
    texts = [t.format(g) for t, g in zip([*TEXTS, TEXTS[0]], golds, strict=True)]
    wanted = [score(i, [t])[0] for i, t in zip(items, texts, strict=True)]
    found = [sample.scores["item_score"] for sample in log.samples]
    assert [s.value for s in found] == [1.0, 0.0, 0.0, 1.0]
    assert [(s.value, s.answer, s.explanation) for s in found] == [
        (result.value, result.answer, result.outcome) for result in wanted
    ]
    metrics = log.results.scores[0].metrics
    assert metrics["mean"].value == 0.5
    assert 0 < metrics["lower"].value < 0.5 < metrics["upper"].value < 1


def scored(sample, output):
    state = TaskState(
        model=ModelName("mockllm/model"),
        sample_id=sample.id,
        epoch=1,
        input=sample.input,
        messages=[],
        output=output,
        metadata=sample.metadata,
    )
    return asyncio.run(item_score()(state, Target("")))


def test_what_has_no_score_is_unscored_and_no_0(items):
    (sample,) = reasoning_gym("gcd", 1).dataset
    refused = ModelOutput(model="p", choices=[], error="not for you")
    assert math.isnan(scored(sample, refused).value)
    other = json.dumps(json.loads(sample.metadata["item"]) | {"digest": "0" * 16})
    sample.metadata["item"] = other
    lost = scored(sample, ModelOutput.from_content("p", "<answer>1</answer>"))
    assert math.isnan(lost.value)
    assert lost.answer == "1"
    assert lost.explanation.startswith("unmatched: gcd")


def test_the_items_of_a_preset_are_its_samples():
    samples = reasoning_gym("gcd", preset="rg-hard").dataset
    items = Tasks("gcd").evaluation(preset="rg-hard")
    assert [s.metadata["item"] for s in samples] == [i.to_json() for i in items]
    assert len(samples) == 50


def test_a_prompt_that_was_split_at_commas_is_refused():
    with pytest.raises(SettingError, match="-T splits it at commas"):
        reasoning_gym("gcd", system_prompt=["Think", " then answer."])
