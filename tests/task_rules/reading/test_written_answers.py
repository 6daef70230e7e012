"""How the answers to each task are written as its scorer reads them."""

import re

import pytest

from rg_env.library.datasets import make_entry
from rg_env.library.worker_jobs import score_answers
from rg_env.reward.score import ScoringRules
from rg_env.task_rules.reading.lists import less_surplus, why_not_list

CASES = []


def case(task, written, same=(), gold="", question="", **metadata):
    """Add answers by what they are written as, and answers that stay as they are."""
    entry = {"question": question, "answer": gold, "metadata": metadata}
    pairs = [(text, right) for right, texts in written.items() for text in texts]
    CASES.extend(
        pytest.param(task, entry, text, right, id=f"{task}-{text:.20}")
        for text, right in (*pairs, *((text, text) for text in same))
    )


# -- words -----------------------------------------------------------------------------

for task in ("syllogism", "isomorphic_strings", "acre", "mahjong_puzzle"):
    case(
        task,
        {"Yes": ["yes", "YES", "The answer is yes."]},
        same=["no", "yes no", "yess", "not yes"],
        gold="Yes",
    )
case(
    "spell_backward",
    {"nolem": ["melon -> nolem", "melon \u2192 n-o-l-e-m", "n-o-l-e-m", "n o l e m"]},
    same=["no-lem", "n-o-l e-m", "lemon -> nolem", "melon -> nolem -> melon"],
    gold="nolem",
    word="melon",
)
SENTENCE = '"Come in," said Ann to-day.'
case(
    "sentence_reordering",
    {
        SENTENCE: [
            *("Come in, said Ann to-day", "\u201cCome in,\u201d said Ann to-day."),
            *('"Come in" said Ann to-day!', "['Come', 'in', 'said', 'Ann', 'to-day.']"),
        ]
    },
    same=[
        *("Ann said Come in to-day", "Come in, said Ann", "Come in said Ann to day"),
        *("Come in said Ann to-day or not", "come in said Ann to-day"),
        *("\u2260 Come in, said Ann to-day", "\u00acCome in, said Ann to-day"),
    ],
    gold=SENTENCE,
)
case(
    "emoji_mystery",
    {'"Come home.': ['"Come home', "Come home", "'Come home.'"]},
    same=['"Come, home.', "come home.", "Come home. Now"],
    gold='"Come home.',
)
case(
    "caesar_cipher",
    {"WHEN IT RAINS WE STAY": ["When it rains, we stay.", "WHEN IT RAINS WE STAY!"]},
    same=["WHENIT RAINS WE STAY", "WHEN IT RAINS WE"],
    gold="WHEN IT RAINS WE STAY",
)
case("letter_jumble", {"And may not": ["And, may not."]}, same=["and may not"])
case("figlet_font", {"CLOWN": ["The word is CLOWN", "Word: CLOWN"]}, gold="CLOWN")

# -- numbers ---------------------------------------------------------------------------

case(
    "leg_counting",
    {
        "256": [
            *("256.0", "0256", "+256", "256/1", "2.56e2", "256 legs", "$256$ legs"),
            *("There are 256 legs.", "Total legs: 256", "256 legs in total"),
            *("200 + 14*4 = 200 + 56 = 256", "2 \u00d7 128 = 256"),
        ]
    },
    same=[
        *("-256", "257", "256.5", "256%", "256^2", "256!", "512/2", "255+1"),
        *("256 or 257", "256, 257", "not 256", "at least 256", "256 more"),
        *("256 lobsters", "256 legs or so", "half of 256", "about 256 feet"),
        *("2*4 = 9 = 256", "256 = 2*128", "1\n256", "1\t256"),
    ],
    gold="256",
    question="How many legs are there in total if you have 15 lobsters and 14 ducks?",
)
case("chain_sum", {}, same=["1\n256", "1\t256"], gold="1256")
case(
    "lcm",
    {"2660": ["76,70 = 2660", "76, 70 = 2660.0"]},
    same=["76*35", "76 = 70 = 2660", "GCD = 2660"],
    gold="2660",
    question="Find the LCM of these numbers: 76, 70",
)
case(
    "power_function",
    {"1.12e-15": ["1.12E-15", "+1.12e-15"]},
    same=["1.12e-15 or 2", "1/2"],
    gold="1.1e-15",
)
case(
    "coin_flip",
    {
        "0.234375": ["23.4375%", r"23.4375\%"],
        "0.05": ["5 %"],
        "1.00": ["100%"],
        "15/64": [r"\frac{15}{64}", "15 / 64"],
    },
    same=["23.4375", "15/64%", "15/64 or 1/2"],
    gold="0.234375",
)
FRACTIONS = [r"\frac{3}{4}", "3 / 4", r"\tfrac{3}{4}", "3\u20444"]
case(
    "dice",
    {"3/4": FRACTIONS},
    same=["6/8", "0.75", "75%", "4/3", "-3/4", "3/4 or 1/4"],
    gold="3/4",
)
case("dice", {"0": ["0/1"]}, same=["0/5"], gold="0")
case("fraction_simplification", {"$3/4$": FRACTIONS}, gold="$3/4$")
case(
    "bitwise_arithmetic",
    {"0x3d2d": ["3d2d", "0x3D2D_{16}"], "-0x3d": ["-3D"]},
    same=["15661", "3d2d or 1", "3g"],
    gold="0x3d2d",
)
case(
    "time_intervals",
    {"304 days": ["304 Days", "+304 days", "304D"], "1 days": ["1 day"]},
    same=["67 01:04", "304 weeks", "304 days or 5 days", "304 days 05:00"],
    task_type="date",
)
case(
    "time_intervals",
    {"67 days, 01:04:00": ["67 Days  01:04:00", "67D 01:04:00", "67 01:04:00"]},
    same=["67 days"],
    task_type="datetime",
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
case("simple_geometry", {"35": ["35\u00b0", "35 degrees", r"35^\circ"]}, gold="35")
case(
    "self_reference",
    {"3": ["3 solutions", "There are 3 possible solutions."]},
    same=["false: 3", "3 false"],
    gold="3",
    question="tell me the number of possible solutions: 2 of these are false",
)
case(
    "prime_factorization",
    {"2 \u00d7 2 \u00d7 3": ["2*2*3", r"2^2 \cdot 3", "2 x 2 x 3", "2**2 * 3"]},
    same=["2^2^2", "2 2 3", "2+2", "2 * a", "2^99*3"],
)
for base, answers, same in (
    ("hexadecimal", ["0x3d", "3d_{16}"], ["3D", "0x3e", "3d_11"]),
    ("base-14", ["3d_14"], ["0x3d", "3d_16"]),
):
    asked = f"Now, convert the base-11 number 201 to {base}\n"
    case("base_conversion", {"3d": answers}, same=same, gold="3d", question=asked)
case(
    "polynomial_equations",
    {
        "1.4, 2.3": [
            *("a = 1.4, a = 2.3", "a = 1.4 or a = 2.3", "[1.4, 2.3]", "1.4 and 2.3"),
            "$a = 1.4$, $a = 2.3$",
        ]
    },
    same=["b = 1.4, b = 2.3", "1.4 to 2.3", "7/5, 2.3", "about 1.4", "no solutions"],
    variable="a",
)
ASKED = "Subtract the complex numbers: (3.0 - 5.0i) - (1.0 + 2.0i)"
case(
    "complex_arithmetic",
    {"2.0 - 7.0i": ["(3.0 - 5.0i) - (1.0 + 2.0i) = 2.0 - 7.0i"]},
    same=["(4.0 - 5.0i) - (1.0 + 2.0i) = 2.0 - 7.0i", "(3.0 - 5.0i) = 2.0 - 7.0i"],
    question=ASKED,
)

# -- formulas --------------------------------------------------------------------------

case(
    "propositional_logic",
    {
        "(P \u2227 \u00acQ) \u2192 R": ["(P & ~Q) -> R", "(P && !Q) => R"],
        "(P \u2227 \u00ac Q) \u2192 R": [
            *(r"(P \land \neg Q) \rightarrow R", "(P and not Q) implies R")
        ],
        "P \u2194 Q": ["P <-> Q", r"P \leftrightarrow Q", "P iff Q"],
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

# -- grids -----------------------------------------------------------------------------

GRID = "1 2\n3 4"
for task in ("rotate_matrix", "arc_agi"):
    case(
        task,
        {
            GRID: [
                *("1,2\n3, 4", "1\t2\n3\t4", "1|2\n3 | 4", "| 1 | 2 |\n| 3 | 4 |"),
                *("[[1, 2], [3, 4]]", "`1 2`\n`3 4`", "[[1 2]\n [3 4]]", "1 2; 3 4"),
                "| 1 | 2 |\n|---|:-:|\n| 3 | 4 |",
                *("((1, 2), (3, 4))", '[["1", "2"], ["3", "4"]]', "[1, 2]\n[3, 4]"),
                *("Rotated matrix:\n1 2\n3 4", "1 2\n\n3 4\n"),
                "The final grid is:\n```text\n1 2\n3 4\n```",
            ]
        },
        same=[
            *("1 2\n3", "1 2\n3 x", "1 2\n3 4?", "1 2\n3 4\nor\n1 2\n3 5"),
            "[[1, 2], [3]]",
            *("[[1, 2], [3, 4]] or [[1, 2], [3, 5]]", "1 2\n3 4 # no", "---"),
        ],
    )
for task, text, right in (
    ("arc_agi", "1 2\n3 4\n\n1 2\n3 5", "1 2\n3 4\n1 2\n3 5"),
    ("arc_agi", "12\n34", GRID),
    ("arc_1d", "[0,0,4]", "0 0 4"),
    ("arc_1d", "004", "0 0 4"),
    ("sudoku", "1 2 | 3 4\n3 4 | 1 2", "1 2 3 4\n3 4 1 2"),
    ("game_of_life", "0 1\n1 0", "[[0,1],[1,0]]"),
    ("game_of_life", '[["0", "1"],\n ["1", "0"]]', "[[0,1],[1,0]]"),
    ("n_queens", "[['_', 'Q'], ['Q', '_']]", "_ Q\nQ _"),
    ("n_queens", "_Q\nQ_", "_ Q\nQ _"),
    ("pool_matrix", "[[4.50, -1], [2, 0.25]]", "4.50 -1\n2 0.25"),
    ("binary_matrix", "12\n34", "12\n34"),
):
    case(task, {right: [text, right]})

# -- lists -----------------------------------------------------------------------------

case(
    "list_functions",
    {
        "[28, -8, 49]": [*("[28,-8,49]", "28, -8, 49", "(28, -8, 49)", "28 -8 49")],
        "[]": ["[ ]", "()"],
    },
    same=["28, 8 or 49", "[28, 8] [49]", "28, 8.5", "28, x", "28 and x"],
)
case(
    "number_filtering",
    {
        "['14', '-48.986', '30.30']": [
            *('["14", "-48.986", "30.30"]', "[14, -48.986, 30.30]"),
            *("14, -48.986, 30.3", "1. 14\n2. -48.9860\n3. 30.30"),
        ],
        "['14', '-48.987', '30.3']": ["[14, -48.987, 30.3]"],
    },
    same=["14, -48.986 or none", "['-48.986', '14', '30.30']"],
    gold="['14', '-48.986', '30.30']",
)
case(
    "number_sorting",
    {"['14', '-48.986', '30.30']": ["[14, '-48.986', \"30.30\",]"]},
    same=["14, -48.986, 30.30", "['14'] or ['15']"],
)
case(
    "spiral_matrix",
    {"4 0 12": ["4, 0, 12", "[4, 0, 12]", "4\n0\n12", "4 -> 0 -> 12"]},
    same=["4 0 (12)", "4 0 1.2"],
)
case(
    "string_splitting",
    {"0 1 0 3 0 12": ["[0, 1, 0, 3, 0, 12]", "A=0, B=1, C: 0, X=3, Y=0, Z=12"]},
    same=["B=0, A=1, C=0, X=3, Y=0, Z=12", "A=0, B=1, C=0, X=3, Y=0"],
)
case(
    "word_sorting",
    {
        "Apple, bee, cat": [
            *("Apple,bee,cat", "['Apple', 'bee', 'cat']", "[Apple, bee, cat]"),
            *("1. Apple\n2. bee\n3. cat", "'Apple', 'bee', 'cat'"),
            *("Sorted words: Apple bee cat",),
        ],
        "ant, and, bee": ["ant and bee"],
    },
    same=["Apple; bee / cat", "Apple (or bee)"],
)
case("word_sequence_reversal", {"b, A": ["b A", '["b", "A"]', "b \u2192 A"]})
case(
    "ab",
    {"A# #B B#": ["A#, #B, B#", "`A#` `#B` `B#`", "A##BB#", r"A\# \#B B\#"]},
    same=["A# #C", "A# #B or B#", "A#, #B, or B#"],
)
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
case("path_star", {"12 7 31": ["12 -> 7 -> 31", "12,7,31"]}, same=["12 7 or 31"])
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
    {
        "R U' F X": [
            *("R, U', F, X", "R U\u2019 F x", "R U` F X", "(R U') (F X)"),
            *("1. R\n2. U'\n3. F\n4. X", '["R", "U\'", "F", "X"]'),
        ],
        "Rw R' U'": ["2R U'"],
        "Rw' R U": ["2R' 1U"],
        "U' Fw": ["1Uw' 2Fw"],
    },
    same=["3R U2", "R or U", "R U (F)2", "R2U", "r U", "R? U", "R U ..."],
)
case("jugs", {'["fill A", "pour A->B"]': ["['fill A','pour A->B',]"]}, same=["fill A"])
DISKS = "Move disk 1 from Peg 1 to Peg 3\nMove disk 2 from Peg 1 to Peg 2"
case(
    "tower_of_hanoi",
    {
        DISKS: [
            *(DISKS.lower(), DISKS.replace("\n", ", "), DISKS.replace("disk ", "disk")),
            "1. Move disk 1 from peg 1 to peg 3\n2. Move disk 2 from peg 1 to peg 2",
            "Disk 1: Peg 1 -> Peg 3\nDisk 2: Peg 1 -> Peg 2",
        ]
    },
    same=["disk 1", "Move disk 1 from Peg 1", f"{DISKS} or not"],
)
case(
    "knight_swap",
    {'["w,A1,B3", "B,C2,A1"]': ["['w,A1,B3','b,C2,A1']", '["W,A1,B3", "B,C2,A1"]']},
    same=["No", "w,A1", "x,A1,B3"],
)


@pytest.mark.parametrize(("task", "entry", "answer", "right"), CASES)
def test_an_answer_is_written_as_its_scorer_reads_it(task, entry, answer, right):
    assert ScoringRules().normalizer(task, entry)(answer) == right


def test_an_answer_that_is_too_long_is_not_written_anew():
    written = ScoringRules(max_answer_chars=10).normalizer("rush_hour", {})
    assert written("A+1, B+1") == "A+1 B+1"
    assert written("A+1, B+1, C+1") == "A+1, B+1, C+1"


def test_the_way_back_of_a_big_cube_is_right():
    params = {"cube_size": 5, "min_scramble_steps": 20, "max_scramble_steps": 20}
    entry = make_entry("rubiks_cube", params, 3)
    scramble = entry["metadata"]["scramble_moves"].split()
    assert any(turn[0] == "2" for turn in scramble)
    back = [t[:-1] if t.endswith("'") else f"{t}'" for t in reversed(scramble)]
    answers = [" ".join(back), ", ".join(back), " ".join(back[1:])]
    rows = score_answers("rubiks_cube", params, entry, answers)
    assert [row[0] == 1.0 for row in rows] == [True, True, False]


@pytest.mark.parametrize(
    ("value", "surplus", "elements", "rest"),
    [(1.0, 0, 4, 1.0), (1.0, 1, 4, 0.75), (1.2, 1, 4, 0.75), (0.25, 2, 4, 0.0)],
)
def test_a_surplus_element_takes_back_its_share(value, surplus, elements, rest):
    assert less_surplus(value, surplus, elements) == rest
    assert less_surplus(1.0, 1, 0) == 0.0


@pytest.mark.parametrize("text", ["[n, 1]", "n", "[[1, n]]", "[1, n]"])
def test_a_name_in_a_list_is_not_taken_for_a_number(text):
    reason = why_not_list(text, re.compile("[01 ]+"))
    assert reason == "a name where a value was expected"
