"""The moves of Black that capture at once."""

from rg_env.task_rules.games.tsumego import stones_captured_at


def board(text):
    return [list(row) for row in text.split()]


def test_a_stone_with_one_liberty_is_captured_there():
    assert stones_captured_at(board(".X. XO. .X.")) == {"C2": 1}


def test_a_group_with_two_liberties_is_not():
    assert not stones_captured_at(board(".X. XOO .X."))


def test_a_group_counts_all_its_stones():
    assert stones_captured_at(board("XOO .OX XX.")) == {"A2": 3}


def test_a_move_that_takes_two_groups_counts_both():
    assert stones_captured_at(board("XXX O.O XXX")) == {"B2": 2}
