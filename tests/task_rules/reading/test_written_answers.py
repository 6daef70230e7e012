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
case("sokoban", {"LLUR": ["llur", "LLUR"]})
case(
    "leg_counting",
    {"256": ["200 + 14*4 = 200 + 56 = 256", "2 \u00d7 128 = 256"]},
    same=["2*4 = 9 = 256", "256 = 2*128 = x", "1\n256", "1\t256"],
    gold="256",
)
case(
    "decimal_chain_sum",
    {
        right: [right, text]
        for right, text in {
            "41": "40.99999999999999",
            "0.3": "0.30000000000000004",
            "-1178": "-1178.0000000000002",
            "40.9999999": "40.9999999",
            "12345678.5630001": "12345678.5630001",
        }.items()
    },
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
    "coin_flip",
    {
        "0.234375": ["23.4375%", r"23.4375\%"],
        "0.05": ["5 %"],
        "15/64": [r"\frac{15}{64}"],
    },
    same=["23.4375", "15/64%", "15/64 or 1/2"],
)
case(
    "fraction_simplification",
    {"$3/4$": [r"\frac{3}{4}", "3 / 4", r"\tfrac{3}{4}", "$3/4$"]},
    same=["6/8", "3/5", "3/4 or 1/4"],
    gold="$3/4$",
)

# -- formulas --------------------------------------------------------------------------

case(
    "propositional_logic",
    {
        "(P \u2227 \u00acQ) \u2192 R": ["(P & ~Q) -> R", "(P && !Q) => R"],
        "(P \u2227 \u00ac Q) \u2192 R": [
            *(r"(P \land \neg Q) \rightarrow R", "(P and not Q) implies R")
        ],
        "P \u2194 Q": ["P <-> Q", r"P \leftrightarrow Q"],
    },
    same=["P, Q", "If P then Q", "nothing", "PQ"],
)
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

# -- grids and lists -------------------------------------------------------------------

GRID = "1 2\n3 4"
case(
    "survo",
    {
        GRID: [
            *("1,2\n3, 4", "1\t2\n3\t4", "1|2\n3 | 4", "| 1 | 2 |\n| 3 | 4 |"),
            *("[[1, 2], [3, 4]]", "`1 2`\n`3 4`", "[[1 2]\n [3 4]]", "1 2; 3 4"),
            "| 1 | 2 |\n|---|:-:|\n| 3 | 4 |",
            *("((1, 2), (3, 4))", '[["1", "2"], ["3", "4"]]', "[1, 2]\n[3, 4]"),
            "The final grid is:\n```text\n1 2\n3 4\n```",
        ]
    },
    same=[
        *("1 2\n3", "1 2\n3 x", "1 2\n3 4?", "1 2\n3 4\nor\n1 2\n3 5"),
        "[[1, 2], [3]]",
        *("[[1, 2], [3, 4]] or [[1, 2], [3, 5]]", "1 2\n3 4 # no", "---"),
    ],
)
case("n_queens", {"_ Q\nQ _": ["[['_', 'Q'], ['Q', '_']]", "_ Q\nQ _"]})
case("pool_matrix", {"4.50 -1\n2 0.25": ["[[4.50, -1], [2, 0.25]]"]})
case("binary_matrix", {"12\n34": ["[[12], [34]]", "12\n34"]})
case(
    "spiral_matrix",
    {"4 0 12": ["4, 0, 12", "[4, 0, 12]", "4\n0\n12", "4 -> 0 -> 12"]},
    same=["4 0 (12)", "4 0 1.2"],
)
case("path_star", {"12 7 31": ["12 -> 7 -> 31", "12,7,31"]}, same=["12 7 or 31"])
case("ab", {"A# #B B#": ["A##BB#", "A# #BB#"]}, same=["A##B#", "A# #C", "A# or B#"])
case(
    "shortest_path",
    {
        "up up left": [
            *("up, up, left", "Up \u2192 Up \u2192 Left"),
            *("1. up\n2. up\n3. left", '["up", "up", "left"]'),
        ]
    },
    same=["up or left", "up up (left)", "feasible", "up north", "up?"],
)
case("word_ladder", {"CAT,COT,COG": ["CAT \u2192 COT \u2192 COG"]}, same=["CAT / COT"])
case(
    "group_anagrams",
    {'[["eat", "tea"], ["tan"]]': ["[['eat','tea'],['tan'],]"]},
    same=["eat, tea or tan?", "[['eat'], 'tea'"],
)
case("graph_color", {'{"0": 1, "1": 2}': ["{0: 1, 1: 2}"]}, same=["{0: 1, '0': 2}"])

# -- moves -----------------------------------------------------------------------------

case(
    "rush_hour",
    {
        "A+3 B-1 C+2": [
            *("A+3, B-1, C+2", "A+3 -> B-1 -> C+2", "A+3\u2192B-1\u2192C+2"),
            *("1. A+3\n2. B-1\n3. C+2", "1) **A+3**\n2) **B-1**\n3) **C+2**"),
            "Step 1: A+3\nStep 2: B-1\nStep 3: C+2",
            *("Moves: A+3 B-1 C+2", "**Moves:**\n```text\nA+3 B-1 C+2\n```"),
            *("AA+3 BBB-1 CC+2", "A +3, B -1, C +2.", '["A+3", "B-1", "C+2"]'),
            *(r"A+3 \to B-1 \rightarrow C+2", "`A+3` => `B-1` => `C+2`"),
        ]
    },
    same=[
        *("A+3 or B-1", "A+3 (B-1)", "not A+3", "A+3?", "A+3 / B-1", "A+3B-1"),
        *("A+3 B-1 and so on", "2. A+3\n3. B-1", "1. A+3\n3. B-1", "[A+3] [B-1]"),
    ],
)
case(
    "rubiks_cube",
    {"Rw R' U'": ["2R U'"], "Rw' R U": ["2R' 1U"], "U' Fw": ["1Uw' 2Fw"]},
    same=["3R U2", "R2U"],
)
case("jugs", {'["fill A", "pour A->B"]': ["['fill A','pour A->B',]"]}, same=["fill A"])
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


@pytest.mark.parametrize(("task", "entry", "answer", "right"), CASES)
def test_an_answer_is_written_as_its_scorer_reads_it(task, entry, answer, right):
    assert ScoringRules().normalizer(task, entry)(answer) == right


def test_an_answer_that_is_too_long_is_not_written_anew():
    written = ScoringRules(max_answer_chars=10).normalizer("rush_hour", {})
    assert written("A+1, B+1") == "A+1 B+1"
    assert written("A+1, B+1, C+1") == "A+1, B+1, C+1"


@pytest.mark.parametrize("text", ["[n, 1]", "n", "[[1, n]]", "[1, n]"])
def test_a_name_in_a_list_is_not_taken_for_a_number(text):
    reason = why_not_list(text, re.compile("[01 ]+"))
    assert reason == "a name where a value was expected"
