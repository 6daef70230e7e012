"""A test of the task: `python -m pytest examples/own_task`."""

from reasoning_gym.factory import create_dataset

from examples.own_task.roman_numerals import RULES, TASK, roman


def test_four_and_nine_are_written_as_one_less():
    assert [roman(n) for n in (4, 90, 1994)] == ["IV", "XC", "MCMXCIV"]


def test_the_right_answer_may_be_written_in_small_letters():
    dataset = create_dataset(TASK, seed=1, size=50)
    for entry in dataset:
        answer = RULES.notation(entry["answer"].lower(), entry)
        assert dataset.score_answer(answer, entry) == 1.0
