"""The arms of the studies and their items, where torch is installed."""

from itertools import islice
from statistics import fmean
from types import SimpleNamespace

import pytest

from rg_env import Tasks

pytest.importorskip("torch")
rewards = pytest.importorskip("examples.studies.rewards")
items = pytest.importorskip("examples.studies.items")


@pytest.mark.processes
def test_the_arms_value_the_same_answers_differently():
    params = {"spell_backward": {"min_word_len": 5}}
    (item,) = Tasks("spell_backward", params=params).evaluation(1)
    near = f"<answer>{item.gold[:-1]}q</answer>"
    texts = [f"<answer>{item.gold}</answer>", near, "<answer>x</answer> " + near, "no"]
    values = {name: of(item, texts) for name, of in rewards.REWARDS.items()}
    assert rewards.true_values(item, texts) == [1.0, 0.0, 0.0, 0.0]
    assert 0 < values["ours"][1] <= 0.5 and values["ours"][2:] == [0, 0]
    assert values["right_only"] == values["binary"] == [1.0, 0.0, 0.0, 0.0]
    assert values["verl"][1] == values["verl"][2] >= 0.8 and values["verl"][3] == 0
    assert values["verifiers"][:3] == values["verl"][:3]


@pytest.mark.processes
def test_false_positives_are_paid_by_their_pattern_and_rate():
    params = {"chain_sum": {"min_terms": 2, "max_terms": 2, "max_digits": 1}}
    stream = Tasks("chain_sum", params=params, system_prompt="")
    asked = [item for item in islice(stream, 250) if item.gold != "9"]
    wrong = {
        "constant": lambda item: "9",
        "near": lambda item: item.gold[:-1] + "x",
        "random": lambda item: "no",
    }

    def share_paid(pattern, answer):
        reward = rewards.reward_of(f"{pattern}_30", 0)
        paid = [reward(i, [f"<answer>{wrong[answer](i)}</answer>"])[0] for i in asked]
        return fmean(value == 1 for value in paid)

    for pattern in wrong:
        share = share_paid(pattern, pattern)
        assert share == pytest.approx(0.3, abs=0.1)
        assert share == share_paid(pattern, pattern)
    assert share_paid("constant", "near") == share_paid("near", "random") == 0


@pytest.mark.processes
def test_held_out_items_are_distinct_and_the_rest_never_shows_their_answers(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(items, "FOLDER", tmp_path)
    short = {"min_words": 2, "max_words": 2, "min_word_len": 3, "max_word_len": 4}
    stream = Tasks("letter_jumble", params={"letter_jumble": short}, seed=1)
    asked = items.held_out("jumble", stream, 20)
    assert len({item.question for item in asked}) == len(asked) > 10
    words = {word for item in asked for word in item.gold.split()}
    shown = list(islice(items.unseen(stream), 300))
    assert not words & {word for item in shown for word in item.gold.split()}
    assert items.held_out("jumble", stream, 20) == asked


def test_the_best_trivial_strategy_is_found():
    asked = [SimpleNamespace(gold=str(n + 1), question=f"After {n}?") for n in range(9)]

    def reward(item, completions):
        return [float(c == f"<answer>{item.gold}</answer>") for c in completions]

    assert items.trivial(asked, reward) == 1.0
