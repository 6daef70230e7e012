"""Answers that are written as their scorer reads them need no second look.

Most answers of a group are: a model that has learnt the format makes mistakes of
content. A task's own form is a pattern of texts that hold no dress and that its
spelling would return as they stand; one look says so, where finding it out by reading
an answer takes up to a hundred times as long as the look.
"""

from __future__ import annotations

import re
from collections.abc import Mapping


def _several(element: str, between: str) -> str:
    return f"(?:{element})(?:{between}(?:{element}))*"


def _rows(cell: str, between: str = " ") -> str:
    return _several(_several(cell, between), "\n")


def _list(element: str, between: str = ", ") -> str:
    return rf"\[(?:{_several(element, between)})?\]"


_WHOLE = r"0|-?[1-9][0-9]{0,30}"
_DECIMAL = r"(?:0|-?[1-9][0-9]{0,30}|-?0(?=\.))(?:\.[0-9]{1,30})?"
_QUOTED_NUMBER = r"'-?[0-9]{1,30}(?:\.[0-9]{1,30})?'"
_CELL = r"-?[0-9]{1,9}"
_DISK_MOVE = "Move disk [0-9]{1,4} from Peg [0-9]{1,4} to Peg [0-9]{1,4}"
_JUG_MOVE = '"(?:(?:fill|empty) [A-Z]|pour [A-Z]->[A-Z])"'
_KNIGHT_MOVE = '"[wB](?:,[A-Z][0-9]){2}"'
_COLOR = '"[0-9]{1,6}": (?:0|[1-9][0-9]{0,5})'
_QUOTED_WORD = '"[A-Za-z]+"'

_COUNTED = (
    "aiw basic_arithmetic binary_alternation chain_sum circuit_logic count_bits"
    " count_primes gcd gsm_symbolic largest_island lcm leg_counting letter_counting"
    " maze number_sequence products rectangle_count rotten_oranges self_reference"
    " simple_equations simple_geometry"
)
_MEASURED = (
    "coin_flip decimal_arithmetic decimal_chain_sum number_format power_function"
)
_BOARDS = "arc_1d arc_agi kakurasu mini_sudoku rearc sudoku"
_MATRICES = "binary_matrix manipulate_matrix rotate_matrix survo"

_FORMS: Mapping[str, str] = {
    **dict.fromkeys(_COUNTED.split(), _WHOLE),
    **dict.fromkeys(_MEASURED.split(), _DECIMAL),
    **dict.fromkeys(_BOARDS.split(), _rows("[0-9]")),
    **dict.fromkeys(_MATRICES.split(), _rows(_CELL)),
    "ab": _several("[AB]#|#[AB]", " "),
    "cryptarithm": f"[A-Z]=[0-9],{_several('[A-Z]=[0-9]', ',')}",
    "game_of_life": _list(_list("[01]", ","), ","),
    "graph_color": rf"\{{{_several(_COLOR, ', ')}\}}",
    "group_anagrams": _list(_list(_QUOTED_WORD)),
    "jugs": _list(_JUG_MOVE),
    "knight_swap": _list(_KNIGHT_MOVE),
    "letter_jumble": _several(r"[^\W_]+", " "),
    "list_functions": _list(_CELL),
    "modulo_grid": _rows("[\u2705\u274c]", ""),
    "number_filtering": _list(_QUOTED_NUMBER),
    "number_sorting": _list(_QUOTED_NUMBER),
    "palindrome_partitioning": _list(_list(_QUOTED_WORD)),
    "path_star": _several("[0-9]{1,12}", " "),
    "pool_matrix": _rows(rf"{_CELL}(?:\.[0-9]{{1,20}})?"),
    "quantum_lock": _several("[A-C]", " \u2192 "),
    "rubiks_cube": _several("[LRUDBF]'?", " "),
    "shortest_path": _several("up|down|left|right", " "),
    "spiral_matrix": _several(_CELL, " "),
    "string_insertion": "[A-E]+",
    "string_splitting": _several("[0-9]{1,6}", " "),
    "string_synthesis": _several("[0-9]{1,6}", " "),
    "tower_of_hanoi": _several(_DISK_MOVE, "\n"),
    "word_ladder": _several("[A-Z]+", ","),
    "word_sequence_reversal": _several(r"[^\W_]+", ", "),
    "word_sorting": _several(r"[^\W_]+", ", "),
}

OWN_FORMS: Mapping[str, re.Pattern[str]] = {
    task: re.compile(form) for task, form in _FORMS.items()
}
"""Task to the pattern of answers that are already written as its scorer reads them.

It holds for an item whose right answer is written so, or is not known. Each pattern is
linear in the text: no part of it can be read in two ways."""
