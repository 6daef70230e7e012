"""Entries by seed, cached datasets, scorers and their fixes."""

import decimal
import json
import pickle
import random

import pytest

from rg_env.errors import SettingError
from rg_env.library import datasets, registry
from rg_env.library.datasets import UnusableEntryError, cached_dataset
from rg_env.workers.call import JobError

SAMPLE = ["chain_sum", "survo", "acre", "gsm_symbolic"]


@pytest.fixture(scope="module")
def factory():
    return registry.load_factory()


@pytest.mark.parametrize("task", ["list_functions", "decimal_arithmetic"])
def test_an_entry_does_not_depend_on_global_state(task):
    entry = datasets.make_entry(task, {}, 5)
    random.seed(99)
    decimal.getcontext().prec = 3
    assert datasets.make_entry(task, {}, 5) == entry


@pytest.mark.parametrize("task", SAMPLE)
def test_a_dataset_has_the_entries_of_the_library(factory, task):
    config = {"size": 3, "seed": 45}
    dataset = factory.create_dataset(task, **config)
    entries = datasets.dataset_entries(task, json.dumps(config))
    assert entries == [dataset[index] for index in range(3)]


def test_an_entry_of_a_dataset_that_cannot_be_used_is_rejected():
    config = json.dumps({"size": 40, "seed": 45})
    reasons = []
    for index in range(40):
        try:
            datasets.dataset_entry("propositional_logic", config, index)
        except UnusableEntryError as error:
            reasons.append(str(error))
    assert 0 < len(reasons) < 40


@pytest.mark.parametrize(
    ("task", "params", "seed", "reason"),
    [
        ("jugs", {"num_jugs": 4}, 31, "there is no solution"),
        # an address, of which each process has another
        ("codeio", {"difficulty": 7}, 2101905293, "its answer holds"),
    ],
)
def test_an_entry_with_an_incorrect_reference_answer_is_rejected_with_the_reason(
    make_entry, task, params, seed, reason
):
    with pytest.raises(JobError, match=reason) as caught:
        make_entry(task, params, seed)
    assert caught.value.class_name == "UnusableEntryError"


def test_an_entry_with_too_long_an_answer_is_rejected():
    hanoi = {"min_disks": 12, "max_disks": 12, "min_pegs": 3, "max_pegs": 3}
    with pytest.raises(UnusableEntryError, match="20000 characters"):
        datasets.make_entry("tower_of_hanoi", hanoi, 1)


# -- cached datasets -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "levels"),
    [
        ("arc_agi", [{}, {"use_color_permutation": False}, {"use_eval": False}]),
        ("group_anagrams", [{}, {"max_anagram_groups": 50}]),
        ("n_queens", [{"n": 10, "max_remove": 10}, {"n": 6, "max_remove": 3}]),
        ("spell_backward", [{"max_word_len": 5}, {"max_word_len": 11}]),
        ("figlet_font", [{"max_word_len": 5}, {"max_word_len": 30}]),
    ],
)
def test_cached_datasets_make_the_entries_of_new_ones(task, levels):
    for params in levels * 2:
        for seed in (3, 2**31 + 5):
            new = datasets.build_dataset(task, params, seed)[0]
            assert datasets.make_entry(task, params, seed) == new


def test_only_the_newest_datasets_that_are_slow_to_build_are_cached(monkeypatch):
    monkeypatch.setattr(datasets, "MAX_CACHED_DATASETS", 2)
    monkeypatch.setattr(datasets, "_cache", {})
    assert cached_dataset("leg_counting", {}) is not cached_dataset("leg_counting", {})
    long, longer = ({"max_word_len": number} for number in (9, 11))
    first, second = (cached_dataset("spell_backward", how) for how in (long, longer))
    assert cached_dataset("spell_backward", long) is first
    cached_dataset("spell_backward", {"max_word_len": 12})
    assert cached_dataset("spell_backward", long) is first
    assert cached_dataset("spell_backward", longer) is not second


# -- scorers ---------------------------------------------------------------------------


def test_only_a_scorer_that_uses_its_dataset_gets_one_with_the_items_parameters():
    dataset = datasets.scoring_dataset("puzzle24", {"max_value": 9})
    assert dataset.config.max_value == 9
    assert not hasattr(datasets.scoring_dataset("gcd", {}), "config")


def test_a_dataset_of_the_library_is_built_again_from_its_class_and_config(factory):
    theirs = factory.create_dataset("gcd", seed=5, size=1, max_numbers=7)
    cls = type(theirs)
    task, ours = datasets.dataset_from_config(
        f"{cls.__module__}:{cls.__qualname__}", pickle.dumps(theirs.config)
    )
    assert (task, type(ours)) == ("gcd", cls)
    assert ours[0] == theirs[0]
    with pytest.raises(SettingError, match=r"builtins\.dict is not a registered task"):
        datasets.dataset_from_config("builtins:dict", b"")


@pytest.mark.parametrize(
    ("task", "scorer", "score"),
    [
        ("later", {}, 0.0),  # of a later version, with the base scorer
        ("later", lambda self, answer, entry: 0.25, 0.25),
        ("gcd", lambda self, answer, entry: 0.25, 0.25),
        ("complex_arithmetic", lambda self, answer, entry: 0.25, 0.125),
    ],
)
def test_a_task_keeps_its_fix_with_another_scorer_and_the_base_scorer_has_one(
    monkeypatch, factory, task, scorer, score
):
    dataset, config = factory.DATASETS.get(task) or factory.DATASETS["gcd"]
    changed = type("Changed", (dataset,), scorer and {"score_answer": scorer})
    monkeypatch.setitem(factory.DATASETS, task, (changed, config))
    own = datasets.scoring_dataset(task, {}).score_answer
    assert datasets.corrected_scorer(task, own)("57", {"answer": "5"}) == score
