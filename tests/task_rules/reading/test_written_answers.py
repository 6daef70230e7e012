"""How the answers to each task are written as its scorer reads them."""

import re

import pytest

from rg_env.reward.score import ScoringRules
from rg_env.task_rules.reading.lists import why_not_list

CASES = []


def case(task, written, same=(), gold="", question="", **metadata):
    """Add answers by what they are written as, and answers that stay as they are."""
    entry = {"question": question, "answer": gold, "metadata": metadata}
    pairs = [(text, right) for right, texts in written.items() for text in texts]
    CASES.extend(
        pytest.param(task, entry, text, right, id=f"{task}-{text:.20}")
        for text, right in (*pairs, *((text, text) for text in same))
    )


# -- words and numbers -----------------------------------------------------------------

case(
    "spell_backward",
    {"nolem": ["melon -> nolem", "melon \u2192 n-o-l-e-m", "n-o-l-e-m", "n o l e m"]},
    same=["no-lem", "n-o-l e-m", "lemon -> nolem", "melon -> nolem -> melon"],
    gold="nolem",
    word="melon",
)
case("letter_jumble", {"and May": ["And May"]}, same=["or May"], gold="and may")
case(
    "leg_counting",
    {"256": ["200 + 14*4 = 200 + 56 = 256", "2 \u00d7 128 = 256"]},
    same=["2*4 = 9 = 256", "256 = 2*128 = x", "1\n256", "1\t256"],
    gold="256",
)
case(
    "complex_arithmetic",
    {"2.0 - 7.0i": ["(3.0 - 5.0i) - (1.0 + 2.0i) = 2.0 - 7.0i"]},
    same=["(4.0 - 5.0i) - (1.0 + 2.0i) = 2.0 - 7.0i", "(3.0 - 5.0i) = 2.0 - 7.0i"],
    question="Subtract the complex numbers: (3.0 - 5.0i) - (1.0 + 2.0i)",
)
case(
    "complex_arithmetic",
    {"13.00i": ["0.0 + 13.0i", "(13i + 0)", "13.00i"]},
    same=["13.0", "0 + 13i or 5", "13i, 13i", "nan", "+", "0 + + 13i"],
    gold="13.00i",
)
case(
    "fraction_simplification",
    {"$3/4$": [r"\frac{3}{4}", "3 / 4", r"\tfrac{3}{4}", "$3/4$"]},
    same=["6/8", "3/5", "3/4 or 1/4"],
    gold="$3/4$",
)

# -- formulas --------------------------------------------------------------------------

case(
    "intermediate_integration",
    {
        "-sin(3*x + 1)**2 + C": ["-sin**2(3*x + 1) + C"],
        "tan(2*(x - 1))**3 + C": ["tan^3(2*(x - 1)) + C"],
        "x + sqrt(1 - x**2) + C": ["x + \u221a(1 - x**2) + C"],
        "2*ln(abs(1 + 4*x)) + C": ["2*ln|1 + 4*x| + C"],
        "atan(x) + C": ["arctan(x) + C"],
    },
    same=["3*x**2 + x", "sin**x(3) + C", "x**2"],
    variable="x",
)

# -- moves -----------------------------------------------------------------------------

DISKS = "Move disk 1 from Peg 1 to Peg 3\nMove disk 2 from Peg 1 to Peg 2"
case(
    "tower_of_hanoi",
    {
        DISKS: [
            *(DISKS.lower(), DISKS.replace("\n", ", "), DISKS.replace("disk ", "disk")),
            "1. Move disk 1 from peg 1 to peg 3\n2. Move disk 2 from peg1 to peg2",
        ]
    },
    same=["disk 1", "Move disk 1 from Peg 1", f"{DISKS} or not"],
)

# -- whatever the item is --------------------------------------------------------------

WRITTEN = r"""
sokoban              llur ⇒ LLUR
sokoban              LLUR
decimal_chain_sum    41
decimal_chain_sum    40.99999999999999 ⇒ 41
decimal_chain_sum    0.3
decimal_chain_sum    0.30000000000000004 ⇒ 0.3
decimal_chain_sum    -1178
decimal_chain_sum    -1178.0000000000002 ⇒ -1178
decimal_chain_sum    40.9999999
decimal_chain_sum    12345678.5630001
coin_flip            23.4375% ⇒ 0.234375
coin_flip            23.4375\% ⇒ 0.234375
coin_flip            5 % ⇒ 0.05
coin_flip            \frac{15}{64} ⇒ 15/64
coin_flip            23.4375
coin_flip            15/64%
coin_flip            15/64 or 1/2
propositional_logic  (P & ~Q) -> R ⇒ (P ∧ ¬Q) → R
propositional_logic  (P && !Q) => R ⇒ (P ∧ ¬Q) → R
propositional_logic  (P \land \neg Q) \rightarrow R ⇒ (P ∧ ¬ Q) → R
propositional_logic  (P and not Q) implies R ⇒ (P ∧ ¬ Q) → R
propositional_logic  P <-> Q ⇒ P ↔ Q
propositional_logic  P \leftrightarrow Q ⇒ P ↔ Q
propositional_logic  P, Q
propositional_logic  If P then Q
propositional_logic  nothing
propositional_logic  PQ
survo                1,2↵3, 4 ⇒ 1 2↵3 4
survo                1⇥2↵3⇥4 ⇒ 1 2↵3 4
survo                1|2↵3 | 4 ⇒ 1 2↵3 4
survo                | 1 | 2 |↵| 3 | 4 | ⇒ 1 2↵3 4
survo                [[1, 2], [3, 4]] ⇒ 1 2↵3 4
survo                `1 2`↵`3 4` ⇒ 1 2↵3 4
survo                [[1 2]↵ [3 4]] ⇒ 1 2↵3 4
survo                1 2; 3 4 ⇒ 1 2↵3 4
survo                | 1 | 2 |↵|---|:-:|↵| 3 | 4 | ⇒ 1 2↵3 4
survo                ((1, 2), (3, 4)) ⇒ 1 2↵3 4
survo                [["1", "2"], ["3", "4"]] ⇒ 1 2↵3 4
survo                [1, 2]↵[3, 4] ⇒ 1 2↵3 4
survo                The final grid is:↵```text↵1 2↵3 4↵``` ⇒ 1 2↵3 4
survo                1 2↵3
survo                1 2↵3 x
survo                1 2↵3 4?
survo                1 2↵3 4↵or↵1 2↵3 5
survo                [[1, 2], [3]]
survo                [[1, 2], [3, 4]] or [[1, 2], [3, 5]]
survo                1 2↵3 4 # no
survo                ---
n_queens             [['_', 'Q'], ['Q', '_']] ⇒ _ Q↵Q _
n_queens             _ Q↵Q _
pool_matrix          [[4.50, -1], [2, 0.25]] ⇒ 4.50 -1↵2 0.25
binary_matrix        [[12], [34]] ⇒ 12↵34
binary_matrix        12↵34
spiral_matrix        4, 0, 12 ⇒ 4 0 12
spiral_matrix        [4, 0, 12] ⇒ 4 0 12
spiral_matrix        4↵0↵12 ⇒ 4 0 12
spiral_matrix        4 -> 0 -> 12 ⇒ 4 0 12
spiral_matrix        4 0 (12)
spiral_matrix        4 0 1.2
path_star            12 -> 7 -> 31 ⇒ 12 7 31
path_star            12,7,31 ⇒ 12 7 31
path_star            12 7 or 31
ab                   A##BB# ⇒ A# #B B#
ab                   A# #BB# ⇒ A# #B B#
ab                   A##B#
ab                   A# #C
ab                   A# or B#
shortest_path        up, up, left ⇒ up up left
shortest_path        Up → Up → Left ⇒ up up left
shortest_path        1. up↵2. up↵3. left ⇒ up up left
shortest_path        ["up", "up", "left"] ⇒ up up left
shortest_path        up or left
shortest_path        up up (left)
shortest_path        feasible
shortest_path        up north
shortest_path        up?
word_ladder          CAT → COT → COG ⇒ CAT,COT,COG
word_ladder          CAT / COT
group_anagrams       [['eat','tea'],['tan'],] ⇒ [["eat", "tea"], ["tan"]]
group_anagrams       eat, tea or tan?
group_anagrams       [['eat'], 'tea'
graph_color          {0: 1, 1: 2} ⇒ {"0": 1, "1": 2}
graph_color          {0: 1, '0': 2}
rush_hour            A+3, B-1, C+2 ⇒ A+3 B-1 C+2
rush_hour            A+3 -> B-1 -> C+2 ⇒ A+3 B-1 C+2
rush_hour            A+3→B-1→C+2 ⇒ A+3 B-1 C+2
rush_hour            1. A+3↵2. B-1↵3. C+2 ⇒ A+3 B-1 C+2
rush_hour            1) **A+3**↵2) **B-1**↵3) **C+2** ⇒ A+3 B-1 C+2
rush_hour            Step 1: A+3↵Step 2: B-1↵Step 3: C+2 ⇒ A+3 B-1 C+2
rush_hour            Moves: A+3 B-1 C+2 ⇒ A+3 B-1 C+2
rush_hour            **Moves:**↵```text↵A+3 B-1 C+2↵``` ⇒ A+3 B-1 C+2
rush_hour            AA+3 BBB-1 CC+2 ⇒ A+3 B-1 C+2
rush_hour            A +3, B -1, C +2. ⇒ A+3 B-1 C+2
rush_hour            ["A+3", "B-1", "C+2"] ⇒ A+3 B-1 C+2
rush_hour            A+3 \to B-1 \rightarrow C+2 ⇒ A+3 B-1 C+2
rush_hour            `A+3` => `B-1` => `C+2` ⇒ A+3 B-1 C+2
rush_hour            A+3 or B-1
rush_hour            A+3 (B-1)
rush_hour            not A+3
rush_hour            A+3?
rush_hour            A+3 / B-1
rush_hour            A+3B-1
rush_hour            A+3 B-1 and so on
rush_hour            2. A+3↵3. B-1
rush_hour            1. A+3↵3. B-1
rush_hour            [A+3] [B-1]
rubiks_cube          2R U' ⇒ Rw R' U'
rubiks_cube          2R' 1U ⇒ Rw' R U
rubiks_cube          1Uw' 2Fw ⇒ U' Fw
rubiks_cube          3R U2
rubiks_cube          R2U
jugs                 ['fill A','pour A->B',] ⇒ ["fill A", "pour A->B"]
jugs                 fill A
"""
"""Task and answer, with what it is written as if it does not stay as it is."""

for line in WRITTEN.strip().splitlines():
    task, pair = line.replace("↵", "\n").replace("⇥", "\t").split(maxsplit=1)
    answer, _, right = pair.partition(" ⇒ ")
    case(task, {right or answer: [answer]})


@pytest.mark.parametrize(("task", "entry", "answer", "right"), CASES)
def test_an_answer_is_written_as_its_scorer_reads_it(task, entry, answer, right):
    assert ScoringRules().build_normalizer(task, entry)(answer) == right


def test_an_answer_that_is_too_long_is_not_written_anew():
    written = ScoringRules(max_answer_chars=10).build_normalizer("rush_hour", {})
    assert written("A+1, B+1") == "A+1 B+1"
    assert written("A+1, B+1, C+1") == "A+1, B+1, C+1"


@pytest.mark.parametrize("text", ["[n, 1]", "n", "[[1, n]]", "[1, n]"])
def test_a_name_in_a_list_is_not_taken_for_a_number(text):
    reason = why_not_list(text, re.compile("[01 ]+"))
    assert reason == "a name where a value was expected"
