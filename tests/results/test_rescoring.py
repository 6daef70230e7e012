"""Saved completions are scored again with their own items, or not at all."""

import asyncio
import json

import jobs_for_items
import pytest

from rg_env.library import datasets, worker_jobs
from rg_env.results.rescoring import rescore_samples
from rg_env.results.sources import Sources, find_files
from rg_env.task_rules.table import fault_of
from tests.support import published
from tests.support.reported import write_lines

pytestmark = pytest.mark.processes

GCD = published.config_of(min_numbers=3, max_numbers=3)


def first_items(task, config, count):
    """Return the first items of a dataset."""
    given = json.dumps(config)
    return [datasets.dataset_entry(task, given, index) for index in range(count)]


def scored_again(pool, path):
    samples = list(Sources(find_files([str(path)])).samples())
    places = [sample.row["place"] for sample in samples]
    new = asyncio.run(rescore_samples(pool, samples))
    return sorted(new, key=lambda sample: places.index(sample.row["place"]))


def of_lines(pool, tmp_path, *lines):
    return scored_again(pool, write_lines(tmp_path / "lines.jsonl", lines))


def line_of(make_entry, task, answer, seed=3, params=None, **more):
    entry = make_entry(task, params or {}, seed)
    text = f"<answer>{entry['answer'] if answer is None else answer}</answer>"
    line = {"task": task, "seed": seed, "params": params or {}, "text": text}
    return line | {"question": entry["question"]} | more


# -- what a score becomes --------------------------------------------------------------

SCORES = {
    "right": ((1.0, 1.0, 1.0), "right"),
    "formatted": (("saved", 1.0, 1.0), "right"),
    "wrong": ((0.0, 0.0, 0.0), "wrong"),
    "twice": ((0.0, 0.0, 0.0), "several_answers"),
    "untagged": ((0.0, 0.0, 0.0), "no_answer"),
}


@pytest.mark.parametrize("way", SCORES)
def test_a_published_completion_has_three_scores_beside_the_saved_one(
    pool, tmp_path, way
):
    gcd = first_items("gcd", GCD, 4)
    found = published.document("gcd", "arithmetic", GCD, gcd, lambda place: [way])
    new = scored_again(pool, published.write(tmp_path, "run", found))
    values, outcome = SCORES[way]
    for sample, entry in zip(new, gcd, strict=True):
        assert sample.outcome == outcome
        assert sample.score == values[-1]
        saved = published.WAYS[way](entry["answer"])[2]
        expected = [saved, *(saved if v == "saved" else v for v in values)]
        assert list(sample.row["scores"].values()) == pytest.approx(expected)
        assert sample.row["gold_answer"] == entry["answer"]


@pytest.mark.parametrize(
    ("saved", "outcome"),
    [
        ({"score": 1.0, "outcome": "right"}, "right"),
        ({}, "right"),
        # The template had begun the thinking, and nobody ended it.
        ({"score": 0.0, "outcome": "unfinished_thinking"}, "unfinished_thinking"),
    ],
)
def test_a_score_of_ours_is_the_same_again(pool, make_entry, tmp_path, saved, outcome):
    (new,) = of_lines(pool, tmp_path, line_of(make_entry, "gcd", None, **saved))
    assert (new.outcome, new.score) == (outcome, float(outcome == "right"))


def test_a_request_that_failed_has_no_score(pool, make_entry, tmp_path):
    line = line_of(make_entry, "gcd", None, outcome="request_failed")
    del line["text"]
    (new,) = of_lines(pool, tmp_path, line)
    assert (new.score, new.outcome) == (None, "request_failed")


def test_an_answer_whose_scoring_takes_too_long_has_no_score_rather_than_0(
    pool, make_entry, tmp_path, monkeypatch
):
    monkeypatch.setattr("rg_env.results.rescoring.ANSWER_DEADLINE_S", 1e-4)
    (new,) = of_lines(pool, tmp_path, line_of(make_entry, "simple_integration", "x"))
    assert (new.score, new.outcome) == (None, "timeout")
    assert "used up 0.0001 s of CPU time" in new.row["reason"]


def test_an_answer_whose_workers_are_killed_has_no_score_rather_than_0(
    pool, make_entry, tmp_path, monkeypatch
):
    line = line_of(make_entry, "gcd", jobs_for_items.KILLED)
    for job in ("score_answers", "prepare_scores"):
        monkeypatch.setattr(worker_jobs, job, getattr(jobs_for_items, job))
    (new,) = of_lines(pool, tmp_path, line)
    assert (new.score, new.outcome) == (None, "unscored")
    assert "signal 9" in new.row["reason"]


# -- which item it is ------------------------------------------------------------------


def test_items_with_one_question_are_told_apart_by_their_index(pool, tmp_path):
    task, config = "puzzle24", {"size": 30, "seed": 45, "max_value": 4}
    entries = first_items(task, config, 30)
    asked = [entry["question"] for entry in entries]
    golds = [entry["answer"] for entry in entries]
    assert len(set(asked)) < len(set(zip(asked, golds, strict=True)))
    found = published.document(task, "c", config, entries, lambda place: ["right"])
    new = scored_again(pool, published.write(tmp_path, "run", found))
    assert [sample.row["gold_answer"] for sample in new] == golds
    assert {sample.score for sample in new} == {1.0}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"question": "What is the gcd of 1 and 2?"}, "the library now makes"),
        ({"seed": -1}, "Seed must be between 0"),
        ({"task": "gdc"}, "no such task"),
        ({"seed": None}, "neither a seed nor an index"),
        ({"params": {"max_number": 3}}, ""),
        ({"params": {"min_numbers": 10**9, "max_numbers": 10**9}}, "its item was not"),
        ({"dataset": {"size": 10**12, "seed": 1}}, ""),
    ],
)
def test_a_completion_without_its_item_has_no_score_and_a_reason(
    pool, make_entry, tmp_path, monkeypatch, changes, reason
):
    monkeypatch.setattr("rg_env.results.rescoring.ITEM_DEADLINE_S", 1.0)
    line = line_of(make_entry, "gcd", None, score=1.0) | changes
    (new,) = of_lines(pool, tmp_path, line)
    assert (new.score, new.outcome) == (None, "unmatched")
    assert new.row["scores"] == {"saved": 1.0}
    assert new.row["reason"] and new.row["reason"].startswith(reason)


def test_an_answer_to_an_item_that_is_not_used_has_no_score_rather_than_0(
    pool, tmp_path
):
    task = "propositional_logic"
    entries = ((s, datasets.make_entry(task, {}, s, checked=False)) for s in range(100))
    seed, entry = next(made for made in entries if fault_of(task, made[1]))
    line = {"task": task, "seed": seed, "question": entry["question"], "text": "x"}
    as_dataset = {k: v for k, v in line.items() if k != "seed"}
    as_dataset |= {"dataset": {"size": 1, "seed": seed}, "index": 0}
    for new in of_lines(pool, tmp_path, line, as_dataset):
        assert (new.score, new.outcome) == (None, "not_used")
        assert "premises" in new.row["reason"]
