"""Results of whole completions, by `score` and `score_async`."""

import dataclasses
import subprocess
import sys
from collections import Counter

import jobs_for_items
import pytest

from rg_env import Item, Result, Tasks, outcome_counts, score, score_async
from rg_env.errors import SettingError
from rg_env.reward.score import MAX_WRONG_VALUE
from tests.support.hostile_texts import HOSTILE
from tests.support.parts import REPO_ROOT

pytestmark = pytest.mark.processes


@pytest.fixture
def item(pool):
    return next(Tasks("gcd"))


def test_results_come_in_the_order_of_the_completions(item):
    right = f"<think>so</think> <answer>{item.gold}</answer>"
    results = score(item, ["no tags", right, "<answer>-7</answer>", right])
    assert results == [
        Result(0.0, "no_answer", None),
        Result(1.0, "right", item.gold),
        Result(0.0, "wrong", "-7"),
        Result(1.0, "right", item.gold),
    ]
    (unfinished,) = score(item, [f"<answer>{item.gold}</answer>"], thinking_open=True)
    assert unfinished == Result(0.0, "unfinished_thinking", None)


async def test_boxed_items_ask_for_a_box_and_score_it_from_json_too(pool):
    tasks = Tasks("gcd", answer_format="boxed")
    item = next(tasks)
    for one in (item, Item.from_json(item.to_json()), *tasks.evaluation(1)):
        assert r"\boxed{}" in one.messages[0]["content"]
        texts = [rf"\boxed{{{one.gold}}}", f"<answer>{one.gold}</answer>"]
        outcomes = [result.outcome for result in await score_async(one, texts)]
        assert outcomes == ["right", "no_answer"]
    assert "boxed" not in next(Tasks("gcd")).to_json()
    with pytest.raises(SettingError, match=r"^answer_format: 'box' is not allowed"):
        Tasks("gcd", answer_format="box")


@pytest.mark.parametrize(("credit", "value"), [(True, 0.25), (False, 0.0)])
async def test_partial_credit_is_a_part_of_a_result_whether_it_counts_or_not(
    pool, credit, value
):
    item = next(Tasks("word_sorting", partial_credit=credit))
    first, second, *rest = item.gold.split(", ")
    answers = [", ".join([second, first, *rest]), item.gold]
    texts = [*(f"<answer>{answer}</answer>" for answer in answers), "no answer"]
    for one in (item, Item.from_json(item.to_json())):
        results = await score_async(one, texts)
        assert [result.value for result in results] == [value, 1.0, 0.0]
        assert [result.parts for result in results] == [
            {"format": 1.0, "correct": 0.0, "partial": 0.25},
            {"format": 1.0, "correct": 1.0, "partial": 1.0},
            {"format": 0.0, "correct": 0.0, "partial": 0.0},
        ]
        assert results[0].outcome == "partial"


@pytest.mark.parametrize("wanted", [None, "a text", [None], [b"5"]])
def test_what_is_no_item_or_no_list_of_texts_is_refused(item, wanted):
    with pytest.raises(TypeError):
        score(item, wanted)
    with pytest.raises(TypeError, match=r"^item: .*expected an Item"):
        score({"task": "gcd", "params": {}, "seed": 1}, ["a text"])


def test_nothing_that_a_model_writes_raises(item):
    texts = [one.text for one in HOSTILE]
    texts += [f"<answer>{text}</answer>" for text in texts]
    values = [result.value for result in score(item, texts)]
    assert len(values) == len(texts)
    assert max(values) <= MAX_WRONG_VALUE


def test_a_thousand_answers_and_megabytes_of_them_have_a_result_each(item):
    texts = [f"<answer>{number}</answer>" for number in range(1000, 2000)]
    texts += [f"<answer>{'9' * 100_000}{number}</answer>" for number in range(100)]
    results = score(item, texts)
    assert [r.outcome for r in results] == ["wrong"] * 1000 + ["rejected"] * 100


# -- no score --------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def nothing_counted(monkeypatch):
    monkeypatch.setattr("rg_env.stream.completion_scores._counts", Counter())


@pytest.mark.usefixtures("odd_jobs", "pool")
def test_an_answer_whose_workers_are_killed_has_no_score_and_is_counted():
    texts = ["7", jobs_for_items.KILLED, "no answer"]
    texts = [f"<answer>{text}</answer>" for text in texts]
    right, lost, _ = results = score(Item("gcd", {}, 7), texts)
    assert right.value == 1.0
    assert (lost.value, lost.outcome) == (None, "unscored")
    assert lost.reason
    assert outcome_counts() == Counter(result.outcome for result in results)


@pytest.mark.parametrize(
    "change",
    [{"digest": "0" * 16}, {"task": "no_such_task"}, {"params": {"no_such": 1}}],
    ids=str,
)
def test_an_item_that_the_library_does_not_make_has_no_scores(item, change, logged):
    lost = Item.from_json(dataclasses.replace(item, **change).to_json())
    results = score(lost, ["<answer>1</answer>", "no tags"])
    assert [(r.value, r.answer) for r in results] == [(None, "1"), (None, None)]
    assert outcome_counts() == {"unmatched": 2}
    assert "2 completions without a score so far" in logged.text


@pytest.mark.parametrize("fault", ["os.close(0); os.close(1)", "no_folder()"])
def test_workers_that_can_never_start_are_an_error_and_no_missing_scores(fault):
    program = f"""
import os, sys, tempfile
from rg_env import Item, score
def no_folder():
    tempfile._candidate_tempdir_list = lambda: ["/proc/none"]
{fault}
item = Item.from_json('{{"task": "gcd", "params": {{}}, "seed": 1}}')
print([score(item, ["<answer>1</answer>"])])
"""
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, cwd=REPO_ROOT, capture_output=True, text=True)
    assert "rg_env.errors.LibraryError: " in ended.stderr
