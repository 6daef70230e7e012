"""The result of a round of mahjong_puzzle."""

import pytest

from rg_env.task_rules.games.mahjong import result_of_last_round


@pytest.mark.parametrize(
    ("hand", "added", "result"),
    [
        ("AAX", "A", "Peng"),
        ("AABC", "A", "Peng"),
        ("BCX", "A", "Chi"),
        ("ACX", "B", "Chi"),
        ("ABX", "C", "Chi"),
        ("ABBX", "C", "Chi"),
        ("ABX", "D", "Pass"),
        ("AX", "A", "Pass"),
    ],
)
@pytest.mark.parametrize("removed", [0, -1])
def test_the_result_is_that_of_the_hand_before_a_card_is_removed(
    hand, added, result, removed
):
    gone = hand[removed]
    left = hand.replace(gone, "", 1) + added
    rounds = [{"add": added, "remove": gone, "cards": left}]
    assert result_of_last_round(rounds) == result
