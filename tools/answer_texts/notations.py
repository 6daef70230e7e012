"""The right answer in other notations of people and language models.

What a notation is depends on the kind of answer: `5.0`, `+5` and `1,234` for a number,
other separators for a list, pipes for a grid, arrows for moves. Each notation is a pure
function of the item's task and right answer, None where it does not apply. Most are
forms that are filled with the parts of the right answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence

from tools.answer_texts.formatting import FORMATTING, forms_of
from tools.answer_texts.sampled_items import SampledItem

Notation = Callable[[str, str], "str | None"]
"""(task, right answer) to the written one."""

Parts = Callable[[str, str], "Mapping[str, str] | None"]  # of a form, by its letters

Joined = Callable[[Sequence[str]], str]


def _tasks(names: str) -> frozenset[str]:
    return frozenset(names.split())


TEXTS = _tasks("""
    ab acre base_conversion bf bitwise_arithmetic caesar_cipher codeio
    color_cube_rotation emoji_mystery family_relationships figlet_font letter_jumble
    list_functions needle_haystack sentence_reordering spell_backward string_insertion
    string_manipulation string_splitting string_synthesis arc_1d zebra_puzzles
""")
"""Tasks whose answers are no number, even where they are written in digits."""

ONE_WORD = _tasks("""
    acre calendar_arithmetic color_cube_rotation course_schedule family_relationships
    game_of_life_halting isomorphic_strings mahjong_puzzle needle_haystack ransom_note
    syllogism zebra_puzzles
""")
SPACED_LISTS = _tasks(
    "arc_1d path_star spiral_matrix string_splitting string_synthesis"
)
COMMA_LISTS = _tasks("word_sequence_reversal word_sorting word_ladder")
QUOTED_LISTS = _tasks("number_filtering number_sorting")
JSON_TASKS = _tasks("""
    boxnet codeio game_of_life graph_color group_anagrams jugs knight_swap
    list_functions palindrome_partitioning
""")
NUMBER_GRIDS = _tasks("""
    arc_agi binary_matrix kakurasu manipulate_matrix mini_sudoku pool_matrix rearc
    rotate_matrix sudoku survo
""")
EXPRESSIONS = _tasks("""
    countdown intermediate_integration polynomial_multiplication puzzle24
    simple_integration
""")
SIGNED_TEXTS = _tasks("""
    bitwise_arithmetic complex_arithmetic number_format polynomial_equations
    power_function
""")


def _filled(forms: str, parts_of: Parts) -> dict[str, Notation]:
    """Return the notations of forms, each with its form as its name."""

    def of(form: str) -> Notation:
        def write(task: str, right: str) -> str | None:
            parts = parts_of(task, right)
            if parts is None:
                return None
            names = "|".join(sorted(parts, key=len, reverse=True))
            return re.sub(names, lambda match: parts[match[0]], form)

        return write

    return {form: of(form) for form in forms_of(forms)}


def _where(
    applies: Callable[[str, str], bool], change: Callable[[str], str | None]
) -> Notation:
    """Change the right answer where that applies, and it does not stay what it is."""

    def write(task: str, right: str) -> str | None:
        written = change(right) if applies(task, right) else None
        return None if written == right else written

    return write


def _in(tasks: Collection[str], change: Callable[[str], str | None]) -> Notation:
    return _where(lambda task, _: task in tasks, change)


def _matched(pattern: str, names: str, *tasks: str) -> Parts:
    """Return the groups of a pattern of some tasks' answers, by the names of a form."""

    def parts(task: str, right: str) -> Mapping[str, str] | None:
        match = re.fullmatch(pattern, right) if task in tasks else None
        if match is None:
            return None
        found = [group for group in match.groups() if group is not None]
        return dict(zip(names.split(), found, strict=True))

    return parts


# -- numbers ---------------------------------------------------------------------------


def _is_number(task: str, right: str) -> bool:
    is_text = task in TEXTS or task in NUMBER_GRIDS
    return not is_text and re.fullmatch(r"-?\d+(\.\d+)?", right) is not None


def _number(change: Callable[[str], str | None]) -> Notation:
    return _where(_is_number, change)


def _with_commas(right: str) -> str:
    whole, point, decimals = right.partition(".")
    return f"{int(whole):,}{point}{decimals}"


def _typographic_minus(task: str, right: str) -> str | None:
    """Write the minus of numbers and expressions as typesetting does."""
    is_shown = task in (*EXPRESSIONS, *SIGNED_TEXTS) or _is_number(task, right)
    return right.replace("-", "\u2212") if is_shown and "-" in right else None


NUMBERS: Mapping[str, Notation] = {
    "5.0": _number(lambda right: None if "." in right else f"{right}.0"),
    **_filled(
        r"= X | x = X | \( x = X \)",
        lambda task, x: {"X": x} if _is_number(task, x) else None,
    ),
    "+5": _number(lambda right: None if right.startswith("-") else f"+{right}"),
    "1,234": _number(_with_commas),
    "\u22125": _typographic_minus,
    "1.50": _number(lambda right: f"{right}0" if "." in right else None),
    ".5": _number(lambda right: re.sub(r"^(-?)0\.", r"\1.", right)),
    **_filled(
        r"\frac{A}{B} | $\frac{A}{B}$ | \boxed{\dfrac{A}{B}} | A/B | A / B",
        _matched(
            r"(-?\d+)/(\d+)|\$?\\d?frac\{(-?\d+)\}\{(\d+)\}\$?",
            "A B",
            *("dice", "fraction_simplification"),
        ),
    ),
    "12.5%": _in(
        ["coin_flip"],
        lambda r: None if "e" in r else f"{round(float(r) * 100, 10):.15g}%",
    ),
    **_filled(
        r"(A,B) | H = (A, B) | $\left(A, B\right)$",
        _matched(r"\(([-\d.]+), ([-\d.]+)\)", "A B", "advanced_geometry"),
    ),
    **_filled(
        "ASBi | (A S Bi) | z = A S Bi",
        _matched(r"(-?[\d.]+) ([+-]) ([\d.]+)i", "A S B", "complex_arithmetic"),
    ),
    **_filled("N Days | N", _matched(r"(\d+) days?", "N", "time_intervals")),
    "1.4 and 2.3": _in(
        ["polynomial_equations"], lambda right: right.replace(", ", " and ")
    ),
}


# -- words, and lists of them ----------------------------------------------------------


def _word(change: Callable[[str], str]) -> Notation:
    return _where(lambda task, right: task in ONE_WORD and right.isalpha(), change)


WORDS: Mapping[str, Notation] = {
    "yes": _word(str.lower),
    "YES": _word(str.upper),
    **_filled("The light is W", _matched("(on|off)", "W", "acre")),
    **_filled("Yes, it follows.", _matched("(Yes)", "Yes", "syllogism")),
    **_filled("No, it does not follow.", _matched("(No)", "No", "syllogism")),
}


def _joined(separators: Mapping[str, str | None], join: Joined) -> Notation:
    """Join the parts of a right answer, where it has several, in another way.

    Args:
        separators: Task to what stands between them: "" nothing, None any space.
        join: Writes them.
    """

    def write(task: str, right: str) -> str | None:
        if task not in separators:
            return None
        separator = separators[task]
        parts = list(right) if separator == "" else right.split(separator)
        written = join([part.strip() for part in parts])
        return written if len(parts) > 1 and written != right else None

    return write


def _lines(form: str) -> Joined:
    """Put parts on lines; N is the number of each and X itself."""
    return lambda parts: "\n".join(
        form.replace("N", str(number)).replace("X", part)
        for number, part in enumerate(parts, 1)
    )


def _between(before: str, join: str, after: str) -> Joined:
    return lambda parts: f"{before}{join.join(parts)}{after}"


def _json(dump: Callable[[object], str]) -> Notation:
    def change(right: str) -> str | None:
        try:
            return dump(json.loads(right)) if right[:1] in ("[", "{") else None
        except ValueError:
            return None

    return _in(JSON_TASKS, change)


def _quoted(old: str, new: str) -> Notation:
    return _in(QUOTED_LISTS, lambda right: right.replace(old, new))


_LISTS = dict.fromkeys(SPACED_LISTS, " ") | dict.fromkeys(COMMA_LISTS, ",")
LISTS: Mapping[str, Notation] = {
    **{
        name: _joined(_LISTS, join)
        for name, join in {
            "1, 2, 3": ", ".join,
            "1,2,3": ",".join,
            "[1, 2, 3]": _between("[", ", ", "]"),
            '["a", "b"]': json.dumps,
            "a numbered list": _lines("N. X"),
            "a bulleted list": _lines("- X"),
        }.items()
    },
    "JSON, compact": _json(
        lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    ),
    "JSON, indented": _json(lambda value: json.dumps(value, indent=2)),
    "Python's quotes": _json(repr),
    "[\"1\", \"2\"] for ['1', '2']": _quoted("'", '"'),
    "[1, 2] for ['1', '2']": _quoted("'", ""),
}


# -- grids and moves -------------------------------------------------------------------


def _grid(join: Callable[[list[list[str]]], str]) -> Notation:
    return _where(
        lambda task, right: task in (*NUMBER_GRIDS, "n_queens") and "\n" in right,
        lambda right: join([line.split() for line in right.split("\n")]),
    )


def _rows(cell: str, before: str = "", after: str = "", row: str = "\n") -> Notation:
    return _grid(
        lambda rows: row.join(f"{before}{cell.join(cells)}{after}" for cells in rows)
    )


GRIDS: Mapping[str, Notation] = {
    "rows with pipes": _rows(" | "),
    "rows between pipes": _rows(" | ", "| ", " |"),
    "rows with commas": _rows(", "),
    "rows in brackets": _rows(", ", "[", "]"),
    "empty lines between rows": _rows(" ", row="\n\n"),
    "grid as JSON": _grid(
        lambda rows: json.dumps(
            [[json.loads(c) if c[-1:].isdigit() else c for c in row] for row in rows]
        )
    ),
    "rows of LaTeX": _grid(
        lambda rows: (
            "\\begin{bmatrix}\n"
            + " \\\\\n".join(" & ".join(row) for row in rows)
            + "\n\\end{bmatrix}"
        )
    ),
}

_SHORT_MOVES: Mapping[str, str | None] = {
    "path_star": " ",
    "quantum_lock": " → ",
    "rush_hour": " ",
    "shortest_path": " ",
    "sokoban": "",
    "word_ladder": ",",
}
_MOVES = {**_SHORT_MOVES, "tower_of_hanoi": "\n"}

MOVES: Mapping[str, Notation] = {
    **{
        f"moves with {sign}": _joined(_SHORT_MOVES, f" {sign} ".join)
        for sign in ("→", "->")
    },
    r"moves with \to": _joined(_SHORT_MOVES, _between("$", r" \to ", "$")),
    "moves with spaces": _joined(_SHORT_MOVES, " ".join),
    "moves with commas": _joined(_MOVES, ", ".join),
    "moves on lines": _joined(_MOVES, "\n".join),
    "moves numbered": _joined(_MOVES, _lines("N. X")),
    "moves as bullets": _joined(_MOVES, _lines("- X")),
    "moves as a JSON list": _joined(_MOVES, json.dumps),
    "A + 3": _in(["rush_hour"], lambda r: re.sub(r"([+-])", r" \1 ", r)),
    "A→B": _in(["quantum_lock"], lambda right: right.replace(" ", "")),
    "UP DOWN": _in(["shortest_path"], lambda r: r.upper() if " " in r else None),
    "pour A→B": _in(["jugs"], lambda right: right.replace("->", "→")),
}


# -- tasks with forms of their own -----------------------------------------------------


def _roles(form: str, join: str) -> Notation:
    """Write who is what in another form, such as `Zoey: pioneer`."""
    role = re.compile(r"(\w+) is (an?) ([\w-]+)")

    def write(right: str) -> str | None:
        return join.join(match.expand(form) for match in role.finditer(right)) or None

    return _in(["knights_knaves"], write)


def _letters(between: str, join: str) -> Notation:
    return _in(["cryptarithm"], lambda r: r.replace(",", join).replace("=", between))


_LATEX = {"∧": r"\land ", "\u2228": r"\lor ", "→": r"\to ", "¬": r"\neg "}
_LATEX["↔"] = r"\leftrightarrow "

OWN: Mapping[str, Notation] = {
    "NAME: role": _roles(r"\1: \3", ", "),
    "- NAME is a role": _roles(r"- \g<0>", "\n"),
    "NAME is a role; NAME": _roles(r"\g<0>", "; "),
    "NAME is a role, but NAME": _roles(r"\g<0>", ", but "),
    "A=1, B=2": _letters("=", ", "),
    "A: 1, B: 2": _letters(": ", ", "),
    "A=1 on lines": _letters("=", "\n"),
    **_filled(
        "G + K | G + C1 | G + constant | F(x) = G + C",
        _matched(r"(.*) \+ C", "G", "intermediate_integration", "simple_integration"),
    ),
    "x**2+1": _in(EXPRESSIONS, lambda right: right.replace(" ", "")),
    "(P ∧ Q)": _in(["propositional_logic"], lambda right: f"({right})"),
    r"$P \land Q$": _in(
        ["propositional_logic"],
        lambda right: f"${right.translate(str.maketrans(_LATEX))}$",
    ),
}

NOTATIONS = {**NUMBERS, **WORDS, **LISTS, **GRIDS, **MOVES, **OWN}


def notations_of(item: SampledItem) -> dict[str, str]:
    """Return the right answer to an item in every formatting and notation, by name."""
    found = {name: write(item.right) for name, write in FORMATTING.items()}
    found |= {name: write(item.task, item.right) for name, write in NOTATIONS.items()}
    # The question of acre forbids quotation marks.
    quotes = "\"'\u2018\u201c\u00ab\u201e" if item.task == "acre" else ""
    return {
        name: text
        for name, text in found.items()
        if text is not None and not {*name} & {*quotes}
    }
