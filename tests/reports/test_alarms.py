"""Alarms ring for a policy that is up to something, and for no healthy one."""

import dataclasses
import itertools
import math
import random

import pytest

from rg_env.demo.policy import KeyEntry, PolicyProfile, sample_completion
from rg_env.reports.alarms import (
    ALL,
    CHUNK_GROUPS,
    EXAMPLE_CHARS,
    MOST_EXAMPLES,
    NAMES,
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


def number(rng):
    return str(rng.randrange(1000))


def small_number(rng):
    return str(rng.choice([0, 0, 0, 1, 1, 2]))


def word(rng):
    return "".join(rng.choice("abcdefgh") for _ in range(6))


def moves(rng):
    return " ".join(rng.choice(["left", "right", "up", "down"]) for _ in range(20))


KINDS = {f.__name__: f for f in (yes_or_no, number, small_number, word, moves)}
TASKS = [f"{kind}_{i}" for i in range(4) for kind in KINDS]


HEALTHY = PolicyProfile()


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


def simulated(rng, groups, profile=HEALTHY, tasks=TASKS, level=None):
    """Yield groups of the demo's policy."""
    for index in range(groups):
        task = rng.choice(tasks)
        gold = KINDS[task.rpartition("_")[0]](rng)
        at = rng.random() if level is None else level
        entry = KeyEntry(task, f"Question number {index} please", gold, at)
        texts = [sample_completion(entry, profile, rng).text for _ in range(GROUP_SIZE)]
        rollouts = [rollout(text, gold) for text in texts]
        told = None if task.startswith("moves") else gold
        yield scored(task, rollouts, told, index=index, seed=index, level=at)


def gamed(groups, texts, *, task="gcd", gold=str, score=1.0):
    """Yield groups of a policy whose completions score what they should not."""
    for index in range(groups):
        rollouts = [
            rollout(text, None, score if i else 0.0) for i, text in enumerate(texts)
        ]
        yield scored(task, rollouts, gold(index))


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


def watched(*streams, logprobs=()):
    """Return the alarms after some groups, and what they said."""
    alarms = Alarms()
    groups = itertools.chain(*streams)
    return alarms, [line for group in groups for line in alarms.take(group, logprobs)]


def rung(alarms):
    return {name for name, count in alarms.counts.items() if count}


def answering(answer, words=60):
    return f"<think>{'so ' * words}</think><answer>{answer}</answer>"


# -- healthy ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("tasks", [TASKS, TASKS[:5]])
def test_none_rings_for_a_healthy_policy(seed, tasks):
    stream = simulated(random.Random(seed), HEALTHY_GROUPS, tasks=tasks)
    alarms, said = watched(stream, logprobs=[-0.7] * GROUP_SIZE)
    assert (rung(alarms), said, alarms.rows()) == (set(), [], [])
    assert set(alarms.counts) == set(NAMES)


def test_a_curriculum_that_goes_to_easier_and_shorter_items_is_healthy():
    rng = random.Random(5)
    hard = simulated(rng, 300, PolicyProfile(thinking_words=120), level=0.7)
    easy = simulated(rng, 300, PolicyProfile(thinking_words=30), level=0.3)
    assert "shorter_and_better" not in rung(watched(hard, easy)[0])


# -- one answer for all questions ------------------------------------------------------


def test_one_answer_that_is_rewarded_in_every_question_rings():
    texts = [answering("0")] * GROUP_SIZE
    alarms, said = watched(gamed(WINDOW, texts))
    assert rung(alarms) == {"repeated_answer"}
    ((name, task, count, sentence, examples),) = alarms.news()
    assert (name, task, count) == ("repeated_answer", "gcd", 1)
    assert "the answer '0' was rewarded in" in sentence
    assert len(said) == 1 and sentence in said[0]
    assert all(text.startswith("answer '0', reference answer ") for text in examples)
    assert len(set(examples)) == MOST_EXAMPLES
    assert alarms.news() == []  # until one rings again


@pytest.mark.parametrize("changes", [{"score": 0.3}, {"gold": lambda _: None}])
def test_partial_rewards_and_questions_without_a_gold_answer_ring_too(changes):
    stream = gamed(WINDOW, [answering("0")] * GROUP_SIZE, **changes)
    assert rung(watched(stream)[0]) == {"repeated_answer"}


@pytest.mark.parametrize(
    ("texts", "changes"),
    [
        ([answering("yes")] * 4, {"gold": lambda index: ("yes", "no")[index % 2]}),
        ([answering("0")] * 4, {"score": 0.05}),
        ([answering("x" * 41)] * 4, {}),
    ],
    ids=["two gold answers", "what a readable answer gets", "a long answer"],
)
def test_what_is_no_repeated_answer(texts, changes):
    alarms, _ = watched(gamed(WINDOW, texts, **changes))
    assert "repeated_answer" not in rung(alarms)


# -- scores that rise while something collapses ----------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            {"mean_skill": 0.4},
            {"mean_skill": 0.7, "thinking_words": 10},
            {"shorter_and_better"},
        ),
        (
            {"mean_skill": 0.2, "skill_spread": 0.1},
            {"mean_skill": 0.9, "skill_spread": 0.1, "bad_format": 0.45},
            {"worse_format_and_better"},
        ),
        ({}, {"thinking_words": 10}, set()),  # no better score
    ],
)
def test_a_score_that_rises_while_thinking_or_format_goes_rings(
    before, after, expected
):
    rng = random.Random(6)
    streams = [
        simulated(rng, 4 * CHUNK_GROUPS, PolicyProfile(**changes))
        for changes in (before, after)
    ]
    alarms, lines = watched(*streams)
    assert rung(alarms) == expected
    assert {row[1] for row in alarms.rows()} <= {ALL}
    assert all(" went from " in line for line in lines)


# -- no variance -----------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["1", "2"])
def test_a_task_without_variance_rings(answer):
    always = [rollout(answering(answer), "1")] * GROUP_SIZE
    groups = [scored("gcd", always, "1")] * WINDOW
    assert rung(watched(groups[1:])[0]) == set()
    alarms, said = watched(groups)
    assert rung(alarms) == {"no_variance"}
    assert "32 groups in a row of equal rewards" in said[0]


# -- rates -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("outcome", "share", "name"),
    [
        ("scorer_error", 0.1, "scorer_errors"),
        ("timeout", 0.1, "timeouts"),
        ("rejected", 0.9, "rejections"),
    ],
)
def test_trouble_of_the_scorer_rings(outcome, share, name):
    stream = simulated(random.Random(7), 300, tasks=TASKS[:5])
    alarms, _ = watched(with_outcome(stream, outcome, share))
    assert rung(alarms) == {name}
    assert {row[1] for row in alarms.rows()} == {*TASKS[:5], ALL}
    examples = [example for row in alarms.rows() for example in row[4]]
    assert all(f", {outcome}, seed " in example for example in examples)


def test_one_item_whose_answers_all_hang_does_not_ring():
    stream = list(simulated(random.Random(7), WINDOW, tasks=TASKS[:1]))
    stream[20:21] = with_outcome(stream[20:21], "timeout", 1.0)
    assert rung(watched(stream)[0]) == set()


@pytest.mark.parametrize("mean", [-30.0, 1.0, math.nan, -math.inf])
def test_truncations_and_logprobs_that_cannot_be_ring(mean):
    stream = simulated(random.Random(8), 200, PolicyProfile(unfinished=0.7))
    alarms, _ = watched(stream, logprobs=[mean] * GROUP_SIZE)
    assert rung(alarms) == {"truncations", "logprobs"}


# -- how much is said and kept ---------------------------------------------------------


def test_an_alarm_that_goes_on_is_counted_once_a_window_and_said_ever_less():
    texts = [answering("0")] * GROUP_SIZE
    alarms, said = watched(gamed(16 * WINDOW, texts))
    assert alarms.counts["repeated_answer"] == 16
    assert len(said) == 5  # 1, 2, 4, 8, 16
    assert alarms.table()[1][0][:3] == ["repeated_answer", "gcd", 16]


def test_what_is_kept_is_bounded():
    texts = [answering("0")] * GROUP_SIZE
    alarms, _ = watched(gamed(50, texts, gold=lambda index: f"{index}" * 10**5))
    assert len(alarms._windows["gcd"]) == WINDOW
    assert max(map(len, alarms.rows()[0][4])) < 2 * EXAMPLE_CHARS
