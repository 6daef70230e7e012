"""A test of the task: `python -m pytest examples/own_task`."""

from reasoning_gym.factory import create_dataset

from examples.own_task.frozen_lake import RULES, TASK

ENTRY = {"metadata": {"rows": ["SFF", "FHF", "FFG"]}}


def score(answer):
    dataset = create_dataset(TASK, seed=1, size=1)
    return dataset.score_answer(RULES.notation(answer, ENTRY), ENTRY)


def test_the_answer_of_an_entry_leads_to_the_goal():
    dataset = create_dataset(TASK, seed=1, size=50, width=8)
    assert [dataset.score_answer(e["answer"], e) for e in dataset] == [1.0] * 50


def test_any_way_to_the_goal_is_right_in_letters_or_words():
    assert (
        score("RRDD") == score("down, down, right, right") == score("R-L-DDRR") == 1.0
    )


def test_moves_that_end_elsewhere_are_wrong():
    wrong = ("", "RDRD", "RR", "RRDDU", "to the right")
    assert [score(answer) for answer in wrong] == [0.0] * 5
