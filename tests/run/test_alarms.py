"""Alarms ring for a policy that is up to something, and for no healthy one."""

import random

import pytest

from rg_env.run.alarms import ALL, GOLD_CHARS, TASK_ALARMS, WINDOW, Alarms
from rg_env.run.group import Rollout
from rg_env.stream.completion_scores import Result
from tests.support.groups import scored

GROUP_SIZE = 8
HEALTHY_GROUPS = 2000
TASKS = [f"{kind}_{i}" for i in range(4) for kind in ("number", "yes_or_no", "moves")]


def rollout(answer, score, outcome="wrong", finish_reason="stop"):
    return Rollout([], score, score, outcome, answer, finish_reason)


def simulated(seed, groups, tasks=TASKS, outcome="wrong", share=0.0, truncated=0.0):
    """Yield groups of a policy that is right as often as an item is easy.

    A share of its rollouts has an outcome of the scorer, and one is truncated.
    """
    rng = random.Random(seed)
    kinds = {
        "number": lambda: str(rng.randrange(1000)),
        "yes_or_no": lambda: rng.choice(["yes", "no"]),
        "moves": lambda: " ".join(rng.choices(["left", "up"], k=20)),
    }
    for index in range(groups):
        task = rng.choice(tasks)
        skill = rng.random()
        answer = kinds[task.rpartition("_")[0]]
        gold = answer()
        rollouts = []
        for _ in range(GROUP_SIZE):
            text = gold if rng.random() < skill else answer()
            end = "length" if rng.random() < truncated else "stop"
            if rng.random() < share:
                rollouts.append(rollout(text, 0.0, outcome, end))
            else:
                rollouts.append(rollout(text, float(text == gold), "right", end))
        yield scored(task, rollouts, None if "moves" in task else gold, index=index)


def gamed(groups, answer, *, gold=str, score=1.0):
    """Yield groups of a policy whose one answer scores what it should not."""
    scores = [0.0] + [score] * (GROUP_SIZE - 1)
    for index in range(groups):
        yield scored("gcd", [rollout(answer, n) for n in scores], gold(index))


def watched(groups):
    """Return the alarms after some groups, and what they said."""
    lines = []
    alarms = Alarms(lines.append)
    for group in groups:
        results = [Result(r.reward, r.outcome, r.answer) for r in group.rollouts]
        truncated = sum(r.finish_reason == "length" for r in group.rollouts)
        alarms.take(group.task, group.gold_answer, results, truncated)
    return alarms, lines


def rung(groups):
    counts = watched(groups)[0].counts
    assert set(counts) == set(TASK_ALARMS)
    return {name for name, count in counts.items() if count}


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [TASKS, TASKS[:4]])
def test_none_rings_for_a_healthy_policy(tasks):
    assert rung(simulated(0, HEALTHY_GROUPS, tasks)) == set()


def test_one_answer_that_is_rewarded_in_every_question_rings():
    alarms, lines = watched(gamed(WINDOW, "0"))
    ((name, task, count, sentence),) = alarms.new_rows()
    assert (name, task, count) == ("repeated_answer", "gcd", 1)
    assert "the answer '0' was rewarded in" in sentence
    assert len(lines) == 1 and sentence in lines[0]
    assert alarms.new_rows() == []  # until one rings again


@pytest.mark.parametrize(
    "changes",
    [{"score": 0.3}, {"gold": lambda _: None}, {"gold": lambda index: str(index % 8)}],
)
def test_partial_rewards_eight_gold_answers_and_questions_without_one_ring_too(changes):
    assert rung(gamed(WINDOW, "0", **changes)) == {"repeated_answer"}


@pytest.mark.parametrize(
    ("answer", "changes"),
    [
        ("yes", {"gold": lambda index: ("yes", "no")[index % 2]}),
        ("0", {"gold": lambda index: str(index % 7)}),
        ("0", {"score": 0.05}),
        ("x" * 41, {}),
    ],
    ids=[
        "two gold answers",
        "seven of them",
        "what a readable answer gets",
        "a long answer",
    ],
)
def test_what_is_no_repeated_answer(answer, changes):
    assert rung(gamed(WINDOW, answer, **changes)) == set()


def test_a_task_without_variance_rings():
    always = [rollout("2", 0.0)] * GROUP_SIZE
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
    alarms, _ = watched(simulated(7, 300, TASKS[:4], outcome, 0.1))
    assert {row[:2] for row in map(tuple, alarms.new_rows())} == {
        (name, scope) for scope in [*TASKS[:4], ALL]
    }


def test_one_item_whose_answers_all_hang_does_not_ring():
    groups = list(simulated(7, WINDOW, TASKS[:1]))
    groups[20:21] = simulated(8, 1, TASKS[:1], "timeout", 1.0)
    assert rung(groups) == set()


def test_completions_that_are_cut_off_ring():
    assert rung(simulated(8, 200, truncated=0.7)) == {"truncations"}


def test_rollouts_without_a_score_count_in_a_share():
    alarms = Alarms(print)
    results = [Result(1.0, "right", "2"), *[Result(None, "unscored", None)] * 7]
    for _ in range(WINDOW):
        alarms.take("gcd", "2", results, truncated=3)
    assert alarms.counts.total() == 0


def test_an_alarm_that_goes_on_is_counted_once_a_window_and_said_ever_less():
    alarms, lines = watched(gamed(16 * WINDOW, "0"))
    assert alarms.counts["repeated_answer"] == 16
    assert len(lines) == 5  # 1, 2, 4, 8, 16


def test_what_is_kept_is_bounded():
    alarms, _ = watched(gamed(50, "0", gold=lambda index: f"{index}" * 10**5))
    assert len(alarms._windows["gcd"]) == WINDOW
    assert max(len(facts.gold) for facts in alarms._windows["gcd"]) == GOLD_CHARS
