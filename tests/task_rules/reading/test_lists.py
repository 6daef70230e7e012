"""Lists, paths and pairs are read however their elements are parted."""

import re

import pytest

from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.task_rules.reading.lists import less_surplus, why_not_list
from rg_env.task_rules.table import rules_of

normalizer = ScoringRules().normalizer

ENTRY = {"metadata": {"end_word": "COG"}}
GROUPS = '[["eat", "tea"], ["tan", "nat"]]'
NUMBERS = "['14', '-48.986', '30.30']"
COUNTS = "0 1 0 3 0 12"
SPELLED = {
    "list_functions": (
        "[28, -8, 49]",
        [
            "[28,-8,49]",
            "28, -8, and 49",
            "28, -8 and 49",
            "28, -8, 49",
            "(28, -8, 49)",
            "28 -8 49",
            "- 28\n- -8\n- 49",
        ],
    ),
    "number_filtering": (
        NUMBERS,
        [
            '["14", "-48.986", "30.30"]',
            "[14, -48.986, 30.30]",
            "14, -48.986, 30.30",
            "14, -48.986, and 30.30",
            "1. 14\n2. -48.986\n3. 30.30",
        ],
    ),
    "number_sorting": (
        NUMBERS,
        ["[14, '-48.986', \"30.30\",]", f"Sorted list: {NUMBERS}"],
    ),
    "spiral_matrix": (
        "4 0 12",
        ["4, 0, 12", "4, 0, and 12", "[4, 0, 12]", "4\n0\n12", "4 -> 0 -> 12"],
    ),
    "string_splitting": (
        COUNTS,
        [
            "[0, 1, 0, 3, 0, 12]",
            "A=0, B=1, C=0, X=3, Y=0, Z=12",
            "- A: 0\n- B: 1\n- C: 0\n- X: 3\n- Y: 0\n- Z: 12",
            "0 machine A, 1 machine B, 0 machine C, 3 part X, 0 part Y, and 12 part Z",
            '{"A": 0, "C": 0, "B": 1, "X": 3, "Y": 0, "Z": 12}',
        ],
    ),
    "string_synthesis": (
        "0 1 0 3 0 1 2 0 5",
        [
            "0, 1, 0, 3, 0, 1, 2, 0, 5",
            "0 [A] 1 [B] 0 [C] 3 {A} 0 {B} 1 {C} 2 (A) 0 (B) 5 (C)",
            "[A]: 0, [B]: 1, [C]: 0, {A}: 3, {B}: 0, {C}: 1, (A): 2, (B): 0, (C): 5",
        ],
    ),
    "string_insertion": ("ABCDA", ["['A', 'B', 'C', 'D', 'A']", "String: ABCDA"]),
    "word_sorting": (
        "Apple, bee, cat",
        [
            *("Apple,bee,cat", "['Apple', 'bee', 'cat']", "[Apple, bee, cat]"),
            *("1. Apple\n2. bee\n3. cat", "'Apple', 'bee', 'cat'"),
            *("Sorted words: Apple bee cat", "Apple, bee, and cat"),
        ],
    ),
    "word_sequence_reversal": ("b, A", ["b A", '["b", "A"]', "b \u2192 A", "- b\n- A"]),
    "letter_jumble": ("and may not", ["and, may, not", '["and", "may", "not"]']),
    "sentence_reordering": ("It is so.", ['["It", "is", "so."]']),
    "ab": (
        "A# #B B#",
        [
            *("A#, #B, B#", "`A#` `#B` `B#`", "A##BB#", "['A#', '#B', 'B#']"),
            r"A\# \#B B\#",
        ],
    ),
    "shortest_path": (
        "up up left",
        [
            *(
                "up, up, left",
                "up, up, and left",
                "Up \u2192 Up \u2192 Left",
                "UP-UP-LEFT",
                "U U L",
            ),
            *("1. up\n2. up\n3. left", '["up", "up", "left"]'),
            *("Shortest path: up up left", "Go up, then move up, then left."),
        ],
    ),
    "path_star": (
        "12 7 31",
        [
            *(
                "12 -> 7 -> 31",
                "12,7,31",
                "12, 7, and 31",
                "12 - 7 - 31",
                "[12, 7, 31]",
            ),
            "1. 12\n2. 7\n3. 31",
        ],
    ),
    "word_ladder": (
        "CAT,COT,COG",
        [
            *(
                "cat, cot, cog",
                "CAT, COT, and COG",
                "CAT \u2192 COT \u2192 COG",
                "CAT\nCOT\nCOG",
            ),
            *("1. CAT\n2. COT\n3. COG", '["CAT", "COT", "COG"]'),
            "Word ladder: CAT COT COG",
        ],
    ),
    "cryptarithm": (
        "A=1,B=2",
        [
            *("A = 1, B = 2", "A: 1\nB: 2", '{"A": 1, "B": 2}', "{'A': '1', 'B': '2'}"),
            *("1. A=1\n2. B=2", "A \u2192 1, B -> 2.", "Mapping: A=1, B=2"),
        ],
    ),
    "graph_color": (
        '{"0": 1, "1": 2}',
        [
            *("{0: 1, 1: 2}", '{"0": "1", "1": "2",}', "0: 1\n1: 2"),
            "Vertex 0: color 1, vertex 1: color 2",
            'Coloring: {"0": 1, "1": 2}',
        ],
    ),
    "group_anagrams": (
        GROUPS,
        [
            *("[['eat','tea'],['tan','nat'],]", "[[eat, tea], [tan, nat]]"),
            *("- eat, tea\n- tan, nat", "1. eat, tea\n2. tan, nat"),
            "Group 1: eat, tea\nGroup 2: tan, nat",
        ],
    ),
    "palindrome_partitioning": (
        '[["a", "b"], ["aa"]]',
        ["(('a', 'b'), ('aa',))"],
    ),
}
PAIRS = [(task, a, right) for task, (right, some) in SPELLED.items() for a in some]


@pytest.mark.parametrize(("task", "answer", "right"), PAIRS)
def test_a_list_is_written_as_the_scorer_reads_it(task, answer, right):
    assert normalizer(task, ENTRY)(answer) == right


UNREAD = {
    "list_functions": ["28, 8 or 49", "[28, 8] [49]", "28, 8.5", "28, x"],
    "number_filtering": ["14, -48.986 or none"],
    "number_sorting": ["14, -48.986, 30.30", f"{NUMBERS} or {NUMBERS}"],
    "spiral_matrix": ["4 0 (12)", "4 0 1.2"],
    "string_splitting": [
        *("B=0, A=1, C=0, X=3, Y=0, Z=12", "A=0, B=1, C=0, X=3, Y=0"),
        '{"A": 0, "B": 1}',
    ],
    "string_synthesis": ["0 [A] 1 [B]"],
    "string_insertion": ["ABCD or ABCE", "['AB', 'C']", "A B C"],
    "word_sorting": ["Apple; bee / cat", "Apple (or bee)"],
    "ab": ["A# #C", "A# #B or B#", "A#, #B, or B#", "A#, #B, and not B#"],
    "sentence_reordering": ["It, is, so."],
    "shortest_path": [
        *("up or left", "up up (left)", "feasible", "infeasible or up", "up north"),
        "up?",
    ],
    "path_star": ["12 7 or 31", "12 7.5", "12 x 7"],
    "word_ladder": [
        *("CAT COT or COG", "CATS COT COG", "CAT, COT, ..., COG", "CAT / COT"),
    ],
    "cryptarithm": [
        *("A=1, A=2", "A=1, B=2 or B=3", "A=12", '{"A": 1, "A": 2}', '{"A": true}'),
    ],
    "graph_color": ["{0: 1, '0': 2}", "0: 1, 0: 2", "0: red", '{"0": 1.5}'],
    "group_anagrams": ["[['eat'], 'tea']", "eat, tea or tan, nat?"],
}
OTHERS = [(task, answer) for task, answers in UNREAD.items() for answer in answers]


@pytest.mark.parametrize(("task", "answer"), OTHERS)
def test_what_is_not_only_the_list_stays_as_it_is(task, answer):
    assert rules_of(task).notation(answer, ENTRY) == answer


def test_an_and_of_a_sentence_is_a_word_of_it():
    unscrambled = rules_of("letter_jumble").notation
    assert unscrambled("salt, oil, and bread", ENTRY) == "salt oil and bread"
    sort = rules_of("word_sorting").notation
    assert sort("ant, and, bee", ENTRY) == "ant, and, bee"
    assert sort("ant and bee", ENTRY) == "ant, and, bee"
    assert sort("ant, bee and cat", ENTRY) == "ant, bee, cat"


def test_two_numbers_have_an_and_between_them():
    assert rules_of("list_functions").notation("28 and -8", ENTRY) == "[28, -8]"
    assert rules_of("list_functions").notation("28 and x", ENTRY) == "28 and x"


@pytest.mark.parametrize(
    ("value", "surplus", "elements", "left"),
    [(1.0, 0, 4, 1.0), (1.0, 1, 4, 0.75), (1.2, 1, 4, 0.75), (0.25, 2, 4, 0.0)],
)
def test_a_surplus_element_takes_back_its_share(value, surplus, elements, left):
    assert less_surplus(value, surplus, elements) == left
    assert less_surplus(1.0, 1, 0) == 0.0


@pytest.mark.parametrize("text", ["[n, 1]", "n", "[[1, n]]", "[1, n]"])
def test_a_name_in_a_list_is_not_taken_for_a_number(text):
    reason = why_not_list(text, re.compile("[01 ]+"))
    assert reason == "a name where a value was expected"


def test_that_there_is_no_path_is_said_in_any_case():
    assert normalizer("shortest_path", {})("Infeasible") == "infeasible"


def test_a_word_between_is_a_rung_like_any_other():
    assert rules_of("word_ladder").notation("CAT and COG", ENTRY) == "CAT,AND,COG"


def test_an_empty_list_is_one():
    assert rules_of("list_functions").notation("[ ]", {}) == "[]"
    assert rules_of("number_filtering").notation("()", {}) == "[]"


@pytest.mark.parametrize(
    "answer",
    [
        "['7.5', '-2.250', '3']",
        "[7.50, -2.25, 3.0]",
        "7.5, -2.25, 3",
        "['7.50','-2.25','3']",
    ],
)
def test_numbers_that_are_kept_may_lose_their_last_zeros(answer):
    entry = {"answer": "['7.50', '-2.25', '3']"}
    assert rules_of("number_filtering").notation(answer, entry) == entry["answer"]


@pytest.mark.parametrize(
    "answer", ["['7.5', '3', '-2.25']", "['7.5', '-2.25']", "['7.5', '-2.26', '3']"]
)
def test_other_numbers_than_those_that_are_kept_stay(answer):
    entry = {"answer": "['7.50', '-2.25', '3']"}
    assert rules_of("number_filtering").notation(answer, entry) == answer
