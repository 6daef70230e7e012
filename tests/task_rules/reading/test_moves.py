"""Moves are read however they are parted, and no move is left out or added."""

import json

import pytest

from rg_env.items.worker_jobs import score_answers
from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.task_rules.table import rules_of
from rg_env.tasks.datasets import make_entry

normalizer = ScoringRules().normalizer

CARS = "A+3 B-1 C+2"
JUGS = '["fill A", "pour A->B", "empty B"]'
DISKS = "Move disk 1 from Peg 1 to Peg 3\nMove disk 2 from Peg 1 to Peg 2"
KNIGHTS = '["w,A1,B3", "B,C2,A1"]'
SPELLED = {
    "rush_hour": (
        CARS,
        [
            *("A+3, B-1, C+2", "A+3 -> B-1 -> C+2", "A+3\u2192B-1\u2192C+2"),
            *("1. A+3\n2. B-1\n3. C+2", "1) **A+3**\n2) **B-1**\n3) **C+2**"),
            *("- A+3\n- B-1\n- C+2", "Step 1: A+3\nStep 2: B-1\nStep 3: C+2"),
            *("Moves: A+3 B-1 C+2", "**Moves:**\n```text\nA+3 B-1 C+2\n```"),
            *("AA+3 BBB-1 CC+2", "A +3, B -1, C +2.", '["A+3", "B-1", "C+2"]'),
            *("Move A+3, then move B-1, then C+2", r"A+3 \to B-1 \rightarrow C+2"),
            *(r"\text{A+3} \Rightarrow \text{B-1} --> C+2", "`A+3` => `B-1` => `C+2`"),
        ],
    ),
    "quantum_lock": (
        "A \u2192 C \u2192 A",
        [
            *("A-C-A", "A > C > A", "A \u2013 C \u2014 A", "A => C --> A"),
            *("A \u21d2 C \u27f6 A", r"A \to C \to A", "1. A\n2. C\n3. A"),
            "Press A \u2192 C \u2192 A",
            *("press button A, then button C, then button A", "a, c, a"),
            *("['A', 'C', 'A']", "[A, C, A]"),
        ],
    ),
    "sokoban": (
        "UULD",
        [
            *("U-U-L-D", "U, U, L, D", "U U L D", "Up, Up, Left, Down"),
            *("up \u2192 up \u2192 left \u2192 down", "uuld", "Moves: UULD"),
            *("1. U\n2. U\n3. L\n4. D", '["U", "U", "L", "D"]'),
        ],
    ),
    "rubiks_cube": (
        "R U' F X",
        [
            *("R, U', F, X", "R U\u2019 F x", "R U\u2032 F X", "R U` F X"),
            *("(R U') (F X)", "1. R\n2. U'\n3. F\n4. X", "`R` `U'` `F` `X`"),
            *("R \u2192 U' \u2192 F \u2192 X", json.dumps(["R", "U'", "F", "X"])),
            repr(["R", "U'", "F", "X"]),
        ],
    ),
    "jugs": (
        JUGS,
        [
            "['fill A', 'pour A->B', 'empty B']",
            '["fill A","pour A->B","empty B",]',
            '["fill A", "pour A -> B", "empty B"]',
            '["fill A", "pour A \u2192 B", "empty B"]',
            '["Fill jug A", "Pour A into B", "Empty B"]',
            "1. fill A\n2. pour A->B\n3. empty B",
            "fill A, then pour from A to B, then empty B",
            "```json\n" + JUGS + "\n```",
        ],
    ),
    "tower_of_hanoi": (
        DISKS,
        [
            DISKS.lower(),
            DISKS.replace("\n", ", "),
            DISKS.replace("\n", "; ") + ".",
            DISKS.replace("to Peg", "\u2192 Peg"),
            "1. Move disk 1 from peg 1 to peg 3\n2. Move disk 2 from peg 1 to peg 2",
            "Disk 1: Peg 1 -> Peg 3\nDisk 2: Peg 1 -> Peg 2",
        ],
    ),
    "knight_swap": (
        KNIGHTS,
        [
            "['w,A1,B3', 'B,C2,A1']",
            '["w, A1, B3", "B, C2, A1"]',
            "w,A1,B3\nB,C2,A1",
            "1. w: A1\u2192B3\n2. B: C2\u2192A1",
            "White A1 to B3, then Black C2 to A1",
        ],
    ),
    "boxnet": (
        '[{"Agent[0.5, 0.5]": "move(box_red, square[0.5, 1.5])"}]',
        [
            "[{'Agent[0.5, 0.5]': 'move(box_red, square[0.5, 1.5])'}]",
            '[{"Agent[0.5, 0.5]":"move(box_red,square[0.5, 1.5])"},]',
            '[{"Agent[0.5, 0.5]": "move( box_red ,  square[0.5, 1.5] )"}]',
        ],
    ),
}
PAIRS = [(task, a, right) for task, (right, some) in SPELLED.items() for a in some]


@pytest.mark.parametrize(("task", "answer", "right"), PAIRS)
def test_moves_are_written_as_the_scorer_reads_them(task, answer, right):
    if answer.startswith("```"):
        answer = f"Moves:\n{answer}"
    assert normalizer(task, {})(answer) == right


@pytest.mark.parametrize(
    ("turns", "without_numbers"),
    [
        ("2R U'", "Rw R' U'"),
        ("2R' 1U", "Rw' R U"),
        ("1Uw' 2Fw", "U' Fw"),
        ("3R U2", "3R U2"),
    ],
)
def test_turns_of_the_outer_two_layers_are_written_without_numbers(
    turns, without_numbers
):
    assert rules_of("rubiks_cube").notation(turns, {}) == without_numbers


def test_the_way_back_of_a_big_cube_is_paid():
    params = {"cube_size": 5, "min_scramble_steps": 20, "max_scramble_steps": 20}
    entry = make_entry("rubiks_cube", params, 3)
    scramble = entry["metadata"]["scramble_moves"].split()
    assert any(turn[0] == "2" for turn in scramble)
    back = [t[:-1] if t.endswith("'") else f"{t}'" for t in reversed(scramble)]
    answers = [" ".join(back), ", ".join(back), " ".join(back[1:])]
    rows = score_answers("rubiks_cube", params, entry, answers)
    assert [row[0] == 1.0 for row in rows] == [True, True, False]


UNREAD = {
    "rush_hour": [
        *("A+3 or B-1", "A+3 (B-1)", "not A+3", "A+3?", "A+3 / B-1"),
        *("A+3 B-1 and so on", "2. A+3\n3. B-1", "1. A+3\n3. B-1", "Wrong moves: A+3"),
        *("[A+3] [B-1]", "A+3B-1", ""),
    ],
    "quantum_lock": ["A or B", "A \u2192 D", "A, B?", "AB", "Press it: A or B"],
    "sokoban": ["U or D", "Up U", "ULX", "U (or D)", "U ~ D"],
    "rubiks_cube": ["R or U", "R U (F)2", "R2U", "r U", "R? U", "R U ..."],
    "jugs": ["fill A or B", "fill 1", "pour A", '["fill A"] ["fill B"]', '["fill AB"]'],
    "tower_of_hanoi": ["disk 1", "Move disk 1 from Peg 1", f"{DISKS} or not"],
    "knight_swap": ["No", "no", "w,A1", "w,A1,B3 or B,C2,A1", "x,A1,B3"],
    "boxnet": ["[]]", '{"Agent[0.5, 0.5]": "wait"}', "[1]"],
}
OTHERS = [(task, answer) for task, answers in UNREAD.items() for answer in answers]


@pytest.mark.parametrize(("task", "answer"), OTHERS)
def test_what_is_not_only_moves_stays_as_it_is(task, answer):
    assert rules_of(task).notation(answer, {}) == answer


@pytest.mark.parametrize(
    ("answer", "walks"),
    [
        ("U, L, D\nU, L, R", "ULD ULR"),
        ("U -> L -> D; U -> L", "ULD UL"),
        ("ULD ULR", "ULD ULR"),
        ("ULD, ULR", "ULD ULR"),
        ("ULD\nULR", "ULD ULR"),
    ],
)
def test_walks_that_may_be_two_stay_two(answer, walks):
    assert rules_of("sokoban").notation(answer, {}) == walks


@pytest.mark.parametrize(
    "answer",
    [
        *("B4", "Black B4", "Black plays at b4", "The best move is B-4", "(B, 4)"),
        "Key move: B4",
    ],
)
def test_a_point_is_written_as_its_letter_and_number(answer):
    assert normalizer("tsumego", {"answer": "C3"})(answer) == "B4"


@pytest.mark.parametrize("answer", ["White B4", "B4 or C4", "B4 C4", "not B4", "B444"])
def test_what_is_no_point_or_two_stays_as_it_is(answer):
    assert rules_of("tsumego").notation(answer, {}) == answer
