"""Alarms ring for a policy that is up to something, and for no healthy one."""

import dataclasses
import random

import pytest

from rg_env.demo.policy import KeyEntry, PolicyProfile, sample_completion
from rg_env.reports.alarms import (
    ALL,
    GOLD_CHARS,
    OF_TASKS,
    WINDOW,
    Alarms,
)
from rg_env.rollouts.group import Rollout
from rg_env.scoring.extraction import extract_answer
from tests.support.groups import scored

GROUP_SIZE = 8
HEALTHY_GROUPS = 2000
MAX_TOKENS = 400


def yes_or_no(rng):
    return rng.choice(["yes", "no"])


def small_number(rng):
    return str(rng.choice([0, 0, 0, 1, 1, 2]))


def word(rng):
    return "".join(rng.choice("abcdefgh") for _ in range(6))


def moves(rng):
    return " ".join(rng.choice(["left", "right", "up", "down"]) for _ in range(20))


KINDS = {f.__name__: f for f in (yes_or_no, small_number, word, moves)}
TASKS = [f"{kind}_{i}" for i in range(4) for kind in KINDS]


def rollout(text, gold, score=None):
    """A completion, scored as a task does that knows its gold answer."""
    found = extract_answer(text, thinking_open=False)
    words = len(text.split())
    if found.failure is not None:
        score, outcome = 0.0, found.failure
    else:
        score = float(found.answer == gold) if score is None else score
        outcome = "right" if score == 1.0 else "partial" if score else "wrong"
    is_cut = words > MAX_TOKENS or outcome == "unfinished_thinking"
    return Rollout(
        conversation=[],
        score=score,
        reward=score,
        outcome=outcome,
        answer=found.answer,
        finish_reason="length" if is_cut else "stop",
        prompt_tokens=100,
        completion_tokens=min(words, MAX_TOKENS),
    )


def simulated(seed, groups, tasks=TASKS, **profile):
    """Yield groups of the demo's policy."""
    rng = random.Random(seed)
    for index in range(groups):
        task = rng.choice(tasks)
        gold = KINDS[task.rpartition("_")[0]](rng)
        entry = KeyEntry(task, f"Question number {index} please", gold, rng.random())
        policy = PolicyProfile(**profile)
        texts = [sample_completion(entry, policy, rng).text for _ in range(GROUP_SIZE)]
        rollouts = [rollout(text, gold) for text in texts]
        known = None if task.startswith("moves") else gold
        yield scored(task, rollouts, known, index=index)


def gamed(groups, answer, *, gold=str, score=1.0):
    """Yield groups of a policy whose one answer scores what it should not."""
    text = f"<think>so</think><answer>{answer}</answer>"
    for index in range(groups):
        scores = [0.0] + [score] * (GROUP_SIZE - 1)
        rollouts = [rollout(text, None, score) for score in scores]
        yield scored("gcd", rollouts, gold(index))


def with_outcome(groups, outcome, share):
    """Give a share of the rollouts an outcome of the scorer."""
    rng = random.Random(1)
    for group in groups:
        rollouts = [
            dataclasses.replace(r, outcome=outcome, score=0.0, reward=0.0)
            if rng.random() < share
            else r
            for r in group.rollouts
        ]
        yield dataclasses.replace(group, rollouts=rollouts)


def watched(groups):
    """Return the alarms after some groups, and what they said."""
    alarms = Alarms()
    return alarms, [line for group in groups for line in alarms.take(group)]


def rung(groups):
    counts = watched(groups)[0].counts
    assert set(counts) == set(OF_TASKS)
    return {name for name, count in counts.items() if count}


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [TASKS, TASKS[:4]])
def test_none_rings_for_a_healthy_policy(tasks):
    assert rung(simulated(0, HEALTHY_GROUPS, tasks)) == set()


def test_one_answer_that_is_rewarded_in_every_question_rings():
    alarms, lines = watched(gamed(WINDOW, "0"))
    ((name, task, count, sentence),) = alarms.news()
    assert (name, task, count) == ("repeated_answer", "gcd", 1)
    assert "the answer '0' was rewarded in" in sentence
    assert len(lines) == 1 and sentence in lines[0]
    assert alarms.news() == []  # until one rings again


@pytest.mark.parametrize("changes", [{"score": 0.3}, {"gold": lambda _: None}])
def test_partial_rewards_and_questions_without_a_gold_answer_ring_too(changes):
    assert rung(gamed(WINDOW, "0", **changes)) == {"repeated_answer"}


@pytest.mark.parametrize(
    ("answer", "changes"),
    [
        ("yes", {"gold": lambda index: ("yes", "no")[index % 2]}),
        ("0", {"score": 0.05}),
        ("x" * 41, {}),
    ],
    ids=["two gold answers", "what a readable answer gets", "a long answer"],
)
def test_what_is_no_repeated_answer(answer, changes):
    assert rung(gamed(WINDOW, answer, **changes)) == set()


def test_a_task_without_variance_rings():
    always = [rollout("<answer>2</answer>", "1")] * GROUP_SIZE
    groups = [scored("gcd", always, "1")] * WINDOW
    assert rung(groups[1:]) == set()
    alarms, lines = watched(groups)
    assert alarms.counts["no_variance"] == 1
    assert "32 groups in a row of equal rewards, now 0.00" in lines[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("outcome", "name"), [("scorer_error", "scorer_errors"), ("timeout", "timeouts")]
)
def test_trouble_of_the_scorer_rings(outcome, name):
    alarms, _ = watched(with_outcome(simulated(7, 300, TASKS[:4]), outcome, 0.1))
    assert {row[:2] for row in map(tuple, alarms.news())} == {
        (name, place) for place in [*TASKS[:4], ALL]
    }


def test_one_item_whose_answers_all_hang_does_not_ring():
    groups = list(simulated(7, WINDOW, TASKS[:1]))
    groups[20:21] = with_outcome(groups[20:21], "timeout", 1.0)
    assert rung(groups) == set()


def test_completions_that_are_cut_off_ring():
    assert rung(simulated(8, 200, unfinished=0.7)) == {"truncations"}


def test_an_alarm_that_goes_on_is_counted_once_a_window_and_said_ever_less():
    alarms, lines = watched(gamed(16 * WINDOW, "0"))
    assert alarms.counts["repeated_answer"] == 16
    assert len(lines) == 5  # 1, 2, 4, 8, 16


def test_what_is_kept_is_bounded():
    alarms, _ = watched(gamed(50, "0", gold=lambda index: f"{index}" * 10**5))
    assert len(alarms._windows["gcd"]) == WINDOW
    assert max(len(facts.gold) for facts in alarms._windows["gcd"]) == GOLD_CHARS
