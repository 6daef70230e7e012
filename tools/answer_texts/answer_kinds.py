"""What kind of text the answers to a task are, told by the right one."""

from __future__ import annotations

import re

WHOLE = re.compile(r"-?\d+")
DECIMAL = re.compile(r"-?\d+\.\d+")
FRACTION = re.compile(r"(-?\d+)/(\d+)|\$?\\d?frac\{(-?\d+)\}\{(\d+)\}\$?")


def named(names: str) -> frozenset[str]:
    return frozenset(names.split())


TEXTS = named("""
    ab acre base_conversion bf bitwise_arithmetic caesar_cipher codeio
    color_cube_rotation emoji_mystery family_relationships figlet_font letter_jumble
    list_functions needle_haystack sentence_reordering spell_backward string_insertion
    string_manipulation string_splitting string_synthesis arc_1d zebra_puzzles
""")
"""Tasks whose answers are no number, even where they are written in digits."""

TWO_WORDS = {
    "course_schedule": ("True", "False"),
    "game_of_life_halting": ("True", "False"),
    "isomorphic_strings": ("True", "False"),
    "ransom_note": ("True", "False"),
    "syllogism": ("Yes", "No"),
    "mahjong_puzzle": ("Peng", "Chi", "Pass"),
    "acre": ("on", "off", "undetermined"),
}
"""Task to the words that its question names."""

SPACED_LISTS = named("arc_1d path_star spiral_matrix string_splitting string_synthesis")
COMMA_LISTS = named("word_sequence_reversal word_sorting word_ladder")
QUOTED_LISTS = named("number_filtering number_sorting")
JSON_TASKS = named("""
    boxnet codeio game_of_life graph_color group_anagrams jugs knight_swap
    list_functions palindrome_partitioning
""")
NUMBER_GRIDS = named("""
    arc_agi binary_matrix kakurasu manipulate_matrix mini_sudoku pool_matrix rearc
    rotate_matrix sudoku survo
""")


def is_whole(task: str, right: str) -> bool:
    is_text = task in TEXTS or task in NUMBER_GRIDS
    return not is_text and WHOLE.fullmatch(right) is not None


def is_decimal(task: str, right: str) -> bool:
    is_text = task in TEXTS or task in NUMBER_GRIDS
    return not is_text and DECIMAL.fullmatch(right) is not None


def is_number(task: str, right: str) -> bool:
    return is_whole(task, right) or is_decimal(task, right)
