"""What the fixes of the tasks of algorithmic score."""

import json

import pytest

from rg_env.tasks import library
from rg_env.tasks.scales import load_shipped
from tests.support.fixed_scores import entries, entry_of, fixed_score, mean_score


def test_the_dead_board_is_paid_only_where_it_is_right():
    dead = json.dumps([[0] * 10] * 10)
    for entry in entries("game_of_life"):
        fixed = fixed_score("game_of_life", entry, dead)
        assert fixed == float("1" not in entry["answer"])


@pytest.mark.parametrize("form", ["false: {}", "It is false that it is {}", "{0} {0}"])
def test_a_verdict_is_given_once(form):
    for entry in entries("game_of_life_halting"):
        answer = form.format(entry["answer"])
        assert fixed_score("game_of_life_halting", entry, answer) == 0.0


@pytest.mark.parametrize("task", ["figlet_font", "spell_backward"])
@pytest.mark.parametrize("form", ['"{}"', "[{}]", ">{}", "\u200b{}", "{}!"])
def test_no_sign_around_a_wrong_word_raises_its_score(task, form):
    for entry in entries(task):
        wrong = entry["answer"][1:] + entry["answer"][:1]
        plain, dressed = (
            fixed_score(task, entry, text) for text in (wrong, form.format(wrong))
        )
        assert dressed <= plain


@pytest.mark.parametrize("first", [True, False])
def test_a_letter_has_one_digit(first):
    for entry in entries("cryptarithm"):
        gold = entry["answer"]
        other = f"{gold[:2]}{(int(gold[2]) + 1) % 10}"
        answer = f"{other},{gold}" if first else f"{gold},{other}"
        assert fixed_score("cryptarithm", entry, answer) <= 0.01
        assert fixed_score("cryptarithm", entry, gold) == 1.0


@pytest.mark.parametrize("more", ['"0": 1', '"99": 1', '"x": 1'])
def test_only_the_vertices_of_the_graph_are_colored_and_each_once(more):
    for entry in entries("graph_color"):
        gold = json.dumps(entry["metadata"]["possible_answer"])
        assert fixed_score("graph_color", entry, f"{{{more}, {gold[1:]}") <= 0.01
        assert fixed_score("graph_color", entry, gold) == 1.0


POOLED = {
    "answer": "4.67 0.12\n9.0 1.0",
    "metadata": {"solution": [[14 / 3, 0.125], [9.0, 1.0]]},
}


@pytest.mark.parametrize(
    ("answer", "fixed"),
    [
        ("4.67 0.12\n9.0 1.0", 1.0),
        ("4.67 0.13\n9 1", 1.0),
        ("4.6666667 0.125\n9.00 1.00\n", 1.0),
        ("4.667 0.12\n9.0 1.0", 1.0),
        ("4.68 0.12\n9.0 1.0", 0.1),
        ("4.66 0.12\n9.0 1.0", 0.1),
        ("4.67 0.12\n9.01 1.0", 0.1),
        ("5 0\n9 1", 0.1),
    ],
)
def test_a_pooled_matrix_is_right_to_two_decimals(answer, fixed):
    assert fixed_score("pool_matrix", POOLED, answer) == fixed


def test_a_crowded_board_as_it_was_earns_little_for_what_comes_of_it():
    params = dict(load_shipped().scales["game_of_life"].steps[1].params)
    for entry in library.usable_entries("game_of_life", params, range(4)):
        before = entry["question"].partition("\n\n")[2].rstrip(".")
        assert fixed_score("game_of_life", entry, before) < 0.25


def test_a_word_as_it_stands_earns_little_for_its_letters_backward():
    made = [entry_of("spell_backward", seed) for seed in range(7000, 7040)]
    words = mean_score("spell_backward", made, lambda e: e["metadata"]["word"])
    assert words < 0.1


def test_a_letter_that_is_wrong_takes_more_than_its_share():
    entry = {"answer": "abcdefgh", "metadata": {"word": "hgfedcba"}}
    assert fixed_score("spell_backward", entry, "abcdefgx") == 0.375
    assert fixed_score("spell_backward", entry, "abcdxxxx") == 0.0
    almost = {"answer": "racebar", "metadata": {"word": "rabecar"}}
    assert fixed_score("spell_backward", almost, "rabecar") == 0.0


def test_a_column_may_be_written_as_a_row_and_a_row_not_as_a_column():
    column = {"answer": "7\n8", "metadata": {"solution": [[7.0], [8.0]]}}
    assert fixed_score("pool_matrix", column, "7 8") == 1.0
    assert fixed_score("pool_matrix", column, "7 9") == 0.1
    assert fixed_score("pool_matrix", POOLED, "4.67 0.12 9.0 1.0") <= 0.1


@pytest.mark.parametrize(
    ("answer", "fixed"),
    [
        ("This is a Cat", 1.0),
        ("THIS is a Cat", 0.375),
        ("this is a cat", 0.375),
        ("This Is A Cat", 0.375),
        ("This Is A Hat", 0.25),
    ],
)
def test_a_sentence_of_jumbled_letters_may_begin_with_a_capital(answer, fixed):
    entry = {"answer": "this is a Cat", "metadata": {}}
    assert fixed_score("letter_jumble", entry, answer) == fixed


def test_words_that_the_question_shows_unchanged_earn_nothing():
    shown = ["hist", "is", "a", "Cat"]
    entry = {"answer": "this is a Cat", "metadata": {"scrambled_words": shown}}
    assert fixed_score("letter_jumble", entry, "hist is a Cat") == 0.0
    assert fixed_score("letter_jumble", entry, "this is a Cat") == 1.0


SORTED = {
    "answer": "ant, bee, cow, dog",
    "metadata": {
        "sorted_words": ["ant", "bee", "cow", "dog"],
        "transformed_words": ["ant", "dog", "cow", "bee"],
    },
}


@pytest.mark.parametrize(
    ("answer", "fixed"),
    [
        ("ant, bee, cow, dog", 1.0),
        ("ant,bee,cow,dog,", 1.0),
        ("ant, dog, cow, bee", 0.0),
        ("ant, bee, cow, elk", 0.25),
        ("bee, ant, dog, cow", 0.0),
        ("The answer is not ant, bee, cow, dog", 0.0),
        ("ant, bee, cow, dog not", 0.0),
    ],
)
def test_words_in_another_order_are_paid_beyond_that_of_the_question(answer, fixed):
    assert fixed_score("word_sorting", SORTED, answer) == fixed


REORDERED = {
    "answer": "We all go to town.",
    "question": "Restore the correct order: town. all We to go",
    "metadata": {},
}


@pytest.mark.parametrize(
    ("answer", "fixed"),
    [
        ("We all go to town.", 1.0),
        ("we ALL go to town.", 1.0),
        ("town. all We to go", 0.0),
        ("We x x x town.", 0.0),
        ("We all go x town.", 0.3333),
        ("We all go to", 0.05),
    ],
)
def test_another_order_is_paid_beyond_the_first_and_the_last_word(answer, fixed):
    score = fixed_score("sentence_reordering", REORDERED, answer)
    assert score == pytest.approx(fixed, abs=1e-4)


def test_a_sentence_is_paid_beyond_its_commonest_character():
    entry = {"answer": "a bee sees", "metadata": {}}
    assert fixed_score("emoji_mystery", entry, "a bee sees") == 1.0
    assert fixed_score("emoji_mystery", entry, "eeeeeeeeee") == 0.0
    assert fixed_score("emoji_mystery", entry, "a bee seen") == pytest.approx(5 / 12)


LADDER = {
    "answer": "COLD,CORD,CARD,WARD,WARM",
    "metadata": {"start_word": "COLD", "end_word": "WARM"},
}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("COLD,CORD,WORD,WARD,WARM", 1.0),
        ("COLD,CORD,CARD,WARD", 3 / 8),
        ("cold, cord, card, WARM", 2 / 8),
        ("COLD,CORD,CARD,QARD,WARD,WARM", 2 / 8),
        ("COLD,CORD,WORD,CORD,COLD,CORD", 1 / 8),
        ("COLD", 0.0),
        ("WARM", 0.0),
        ("COLD,WARM", 0.0),
        ("COLD,COLD,COLD", 0.0),
        ("COLD,BOLD,GOLD", 0.0),
        ("COLD,QOLD,CORD,CARD", 0.0),
        ("CORD,CARD,WARD,WARM", 0.0),
        ("COLD,CORD,CARD,WARD,WARM,WARD", 3 / 8),
        ("COLD,CORD,CARD,WARD,WARM,COLD", 0.0),
        ("", 0.0),
    ],
)
def test_a_ladder_that_is_wrong_is_paid_for_the_letters_it_has_brought_into_place(
    answer, expected
):
    assert fixed_score("word_ladder", LADDER, answer) == expected


def test_to_change_one_letter_after_the_other_earns_little_more_than_luck():
    def in_turn(entry):
        start, end = (entry["metadata"][f"{place}_word"] for place in ("start", "end"))
        return ",".join(
            dict.fromkeys(end[:place] + start[place:] for place in range(len(end) + 1))
        )

    made = [entry_of("word_ladder", seed) for seed in range(7000, 7100)]
    right = [fixed_score("word_ladder", e, in_turn(e)) == 1.0 for e in made]
    mean = mean_score("word_ladder", made, in_turn)
    assert mean - sum(right) / len(right) < 0.05
