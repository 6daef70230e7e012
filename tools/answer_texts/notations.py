"""The right answer in other notations of people and language models.

What a notation is depends on the kind of answer: `5.0`, `+5` and `1,234` for a number,
other separators for a list, pipes for a grid, arrows for moves. Each notation is a pure
function of the item's task and right answer, None where it does not apply. Most are
forms that are filled with the parts of the right answer.

A notation that the question of a task forbids is not counted: see FORBIDDEN.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

from tools.answer_texts import answer_kinds as kinds
from tools.answer_texts.formatting import FORMATTING, GENERAL, forms_of
from tools.answer_texts.sampled_items import SampledItem

Notation = Callable[[str, str], "str | None"]
"""(task, right answer) to the written one."""

Parts = Callable[[str, str], "Mapping[str, str] | None"]
"""(task, right answer) to what the letters of a form stand for."""

Notations = Mapping[str, Notation]
"""By name."""


def _filled(forms: str, parts_of: Parts) -> Notations:
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


def _of(task: str, change: Callable[[str], str | None]) -> Notation:
    return _where(lambda of, _: of == task, change)


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


def _number(change: Callable[[str], str | None]) -> Notation:
    return _where(kinds.is_number, change)


def _thousands(separator: str) -> Callable[[str], str | None]:
    def group(right: str) -> str | None:
        whole, point, decimals = right.partition(".")
        sign = "-" if whole.startswith("-") else ""
        digits = whole.lstrip("-")
        if len(digits) < 4:
            return None
        return f"{sign}{int(digits):,}".replace(",", separator) + point + decimals

    return group


_MINUS_IN_TEXT = kinds.named("""
    bitwise_arithmetic complex_arithmetic countdown intermediate_integration
    number_format polynomial_equations polynomial_multiplication power_function
    puzzle24 simple_integration
""")


def _typographic_minus(task: str, right: str) -> str | None:
    """Write the minus of numbers and expressions as typesetting does."""
    shown = task in _MINUS_IN_TEXT or kinds.is_number(task, right)
    return right.replace("-", "\u2212") if shown and "-" in right else None


def _percent(right: str) -> str | None:
    if "e" in right:
        return None
    return f"{float(right) * 100:.10f}".rstrip("0").rstrip(".") + "%"


NUMBERS: Notations = {
    **_filled(
        "X.0 | X.00 | X/1",
        lambda task, x: {"X": x} if kinds.is_whole(task, x) else None,
    ),
    **_filled(
        r"= X | x = X | \( x = X \)",
        lambda task, x: {"X": x} if kinds.is_number(task, x) else None,
    ),
    "+5": _number(lambda right: None if right.startswith("-") else f"+{right}"),
    "05": _number(lambda right: re.sub(r"\d", r"0\g<0>", right, count=1)),
    "1,234": _number(_thousands(",")),
    "1{,}234 in LaTeX": _number(
        lambda right: f"${g}$" if (g := _thousands("{,}")(right)) else None
    ),
    "1\u202f234": _number(_thousands("\u202f")),
    "\u22125": _typographic_minus,
    "1.50": _where(kinds.is_decimal, lambda right: f"{right}0"),
    ".5": _where(kinds.is_decimal, lambda right: re.sub(r"^(-?)0\.", r"\1.", right)),
    **_filled(
        r"\frac{A}{B} | $\frac{A}{B}$ | \boxed{\dfrac{A}{B}} | A/B | A / B",
        _matched(kinds.FRACTION.pattern, "A B", "dice", "fraction_simplification"),
    ),
    "12.5%": _of("coin_flip", _percent),
}


def _degrees(task: str, right: str) -> Mapping[str, str] | None:
    if task == "simple_geometry":
        return {"X": right}
    is_angle = task == "advanced_geometry" and right.endswith("°")
    return {"X": right[:-1]} if is_angle else None


def _complex(task: str, right: str) -> Mapping[str, str] | None:
    parts = _matched(r"(-?[\d.]+) ([+-]) ([\d.]+)i", "A S B", "complex_arithmetic")
    found = parts(task, right)
    if found is None:
        return None
    short = {"C": f"{float(found['A']):g}", "D": f"{float(found['B']):g}"}
    return {**found, **short, "M": found["S"].strip("+")}


def _roots(join: str, name: str = "") -> Notation:
    def write(right: str) -> str | None:
        roots = [f"{name}{root}" for root in right.split(", ") if root]
        return join.join(roots) if len(roots) > 1 or (roots and name) else None

    return _of("polynomial_equations", write)


KINDS_OF_NUMBERS: Notations = {
    **_filled(r"X° | $X^\circ$ | X degrees", _degrees),
    **_filled(
        r"H = (A, B) | (A,B) | $\left(A, B\right)$",
        _matched(r"\(([-\d.]+), ([-\d.]+)\)", "A B", "advanced_geometry"),
    ),
    **_filled("C S Di | ASBi | (A S Bi) | z = A S Bi", _complex),
    "-7.0i + 4.0": lambda task, right: (
        f"{p['M']}{p['B']}i + {p['A']}".replace("+ -", "- ")
        if (p := _complex(task, right))
        else None
    ),
    "0XAB": _of("bitwise_arithmetic", lambda r: r.upper().replace("0X", "0x")),
    **_filled(
        "N Days | +N days | N  days | N",
        _matched(r"(\d+) days?", "N", "time_intervals"),
    ),
    "1.4 and 2.3": _roots(" and "),
    "x = 1.4, x = 2.3": _roots(", ", "x = "),
    "x = 1.4 or x = 2.3": _roots(" or ", "x = "),
    "1.4,2.3": _roots(","),
    **_filled("x = R | [R]", _matched(r"(.+)", "R", "polynomial_equations")),
}


# -- words -----------------------------------------------------------------------------

_ONE_WORD = kinds.named("""
    calendar_arithmetic color_cube_rotation family_relationships needle_haystack
    zebra_puzzles
""") | set(kinds.TWO_WORDS)


def _word(change: Callable[[str], str]) -> Notation:
    return _where(lambda task, right: task in _ONE_WORD and right.isalpha(), change)


def _verdict(right: str) -> str:
    return "Yes, it follows." if right == "Yes" else "No, it does not follow."


WORDS: Notations = {
    "yes": _word(str.lower),
    "YES": _word(str.upper),
    "Yes": _word(str.title),
    **_filled("The light is W", _matched("(on|off)", "W", "acre")),
    "Yes, it follows.": _of("syllogism", _verdict),
    **_filled("Black CR | C-R", _matched(r"(\w)(\d+)", "C R", "tsumego")),
    "b4": _of("tsumego", str.lower),
}


# -- lists -----------------------------------------------------------------------------


def _items_of(task: str, right: str) -> list[str] | None:
    if "\n" in right:
        return None
    if task in kinds.SPACED_LISTS:
        return right.split(" ")
    if task in kinds.COMMA_LISTS:
        return [part.strip() for part in right.split(",")]
    return None


Joined = Callable[[Sequence[str]], str]


def _joined(
    items_of: Callable[[str, str], Sequence[str] | None],
    join: Joined,
    without: frozenset[str] = frozenset(),
) -> Notation:
    """Join the items of a right answer, where it has several, in another way."""

    def write(task: str, right: str) -> str | None:
        items = None if task in without else items_of(task, right)
        written = join(items) if items and len(items) > 1 else right
        return None if written == right else written

    return write


def _lines(form: str) -> Joined:
    """Put items on lines; N is the number of each and X itself."""
    return lambda items: "\n".join(
        form.replace("N", str(number)).replace("X", item)
        for number, item in enumerate(items, 1)
    )


def _between(before: str, join: str, after: str) -> Joined:
    return lambda items: f"{before}{join.join(items)}{after}"


def _json(dump: Callable[[object], str]) -> Notation:
    def change(right: str) -> str | None:
        try:
            return dump(json.loads(right))
        except ValueError:
            return None

    return _where(
        lambda task, right: task in kinds.JSON_TASKS and right[:1] in ("[", "{"), change
    )


def _line_each(value: object) -> str:
    if not isinstance(value, list):
        return json.dumps(value, indent=1)
    return "[\n " + ",\n ".join(map(json.dumps, value)) + "\n]"


def _quoted(change: Callable[[str], str]) -> Notation:
    return _where(
        lambda task, right: task in kinds.QUOTED_LISTS and right not in ("", "[]"),
        change,
    )


LISTS: Notations = {
    **{
        name: _joined(_items_of, join)
        for name, join in {
            "1, 2, 3": ", ".join,
            "1,2,3": ",".join,
            "1  2  3": "  ".join,
            "[1, 2, 3]": _between("[", ", ", "]"),
            "(1, 2, 3)": _between("(", ", ", ")"),
            '["a", "b"]': json.dumps,
            "a list of lines": _lines("X"),
            "a numbered list": _lines("N. X"),
            "a bulleted list": _lines("- X"),
        }.items()
    },
    "JSON, compact": _json(
        lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    ),
    "JSON with spaces": _json(lambda value: json.dumps(value, ensure_ascii=False)),
    "JSON, indented": _json(lambda value: json.dumps(value, indent=2)),
    "JSON, a line each": _json(_line_each),
    "Python's quotes": _json(repr),
    "[\"1\", \"2\"] for ['1', '2']": _quoted(lambda right: right.replace("'", '"')),
    "[1, 2] for ['1', '2']": _quoted(lambda right: right.replace("'", "")),
    "['1','2']": _quoted(lambda right: right.replace(", ", ",")),
    "1, 2 for ['1', '2']": _quoted(lambda right: right.replace("'", "")[1:-1]),
}


# -- grids -----------------------------------------------------------------------------

_GRIDS = kinds.NUMBER_GRIDS | {"n_queens"}
_LINED_GRIDS = _GRIDS | {"futoshiki", "modulo_grid"}


def _grid(join: Callable[[list[list[str]]], str]) -> Notation:
    return _where(
        lambda task, right: task in _GRIDS and "\n" in right,
        lambda right: join([line.split() for line in right.split("\n")]),
    )


def _lined(between: str) -> Notation:
    return _where(
        lambda task, right: task in _LINED_GRIDS and "\n" in right,
        lambda right: right.replace("\n", between),
    )


def _rows(cell: str, before: str = "", after: str = "", row: str = "\n") -> Notation:
    return _grid(
        lambda rows: row.join(f"{before}{cell.join(cells)}{after}" for cells in rows)
    )


def _values(rows: list[list[str]]) -> list[list[object]]:
    return [[json.loads(c) if c[-1:].isdigit() else c for c in row] for row in rows]


GRIDS: Notations = {
    "rows with pipes": _rows(" | "),
    "rows between pipes": _rows(" | ", "| ", " |"),
    "rows with commas": _rows(", "),
    "rows with tabs": _rows("\t"),
    "rows with two spaces": _rows("  "),
    "rows in brackets": _rows(", ", "[", "]"),
    "lines that end in spaces": _lined(" \n"),
    "lines that end as on Windows": _lined("\r\n"),
    "empty lines between rows": _lined("\n\n"),
    "grid as JSON": _grid(lambda rows: json.dumps(_values(rows))),
    "grid as JSON, a line each": _grid(lambda rows: _line_each(_values(rows))),
    "rows of LaTeX": _grid(
        lambda rows: (
            "\\begin{bmatrix}\n"
            + " \\\\\n".join(" & ".join(row) for row in rows)
            + "\n\\end{bmatrix}"
        )
    ),
}


# -- moves -----------------------------------------------------------------------------

_SEPARATORS = {
    "ab": " ",
    "path_star": " ",
    "quantum_lock": " → ",
    "rubiks_cube": None,  # any white space
    "rush_hour": " ",
    "shortest_path": " ",
    "sokoban": "",
    "tower_of_hanoi": "\n",
    "word_ladder": ",",
}


def _moves_of(task: str, right: str) -> Sequence[str] | None:
    if task not in _SEPARATORS or (task == "shortest_path" and " " not in right):
        return None
    separator = _SEPARATORS[task]
    return list(right) if separator == "" else right.split(separator)


_LONG = frozenset({"tower_of_hanoi"})
_SIGNED = frozenset({"rush_hour"})
"""Tasks where dashes are signs of the moves."""


def _moves(join: Joined, without: frozenset[str] = frozenset()) -> Notation:
    return _joined(_moves_of, join, without)


MOVES: Notations = {
    **{
        f"moves with {sign}": _moves(f" {sign} ".join, _LONG)
        for sign in ("→", "->", "=>", ">")
    },
    **{
        f"moves with {sign}": _moves(_between("$", f" {sign} ", "$"), _LONG)
        for sign in (r"\to", r"\rightarrow")
    },
    "moves with commas": _moves(", ".join),
    "moves with spaces": _moves(" ".join, _LONG),
    "moves with dashes": _moves("-".join, _LONG | _SIGNED),
    "moves on lines": _moves("\n".join),
    "moves numbered": _moves(_lines("N. X")),
    "moves numbered with )": _moves(_lines("N) X")),
    "moves as bullets": _moves(_lines("- X")),
    "Moves: and moves": _moves(_between("Moves: ", " ", ""), _LONG),
    "moves as a JSON list": _moves(json.dumps),
    "AA+3": _of("rush_hour", lambda r: re.sub(r"([A-Z])(?=[+-])", r"\1\1", r)),
    "A + 3": _of("rush_hour", lambda r: re.sub(r"([+-])", r" \1 ", r)),
    "Press A → B": _of("quantum_lock", lambda right: f"Press {right}"),
    "A→B": _of("quantum_lock", lambda right: right.replace(" ", "")),
    "UP DOWN": _of("shortest_path", lambda r: r.upper() if r != "infeasible" else None),
    "R L' as R L\u2019": _of("rubiks_cube", lambda r: r.replace("'", "\u2019")),
    "move disk, peg": _of("tower_of_hanoi", str.lower),
    "moves that end in a period": _of(
        "tower_of_hanoi", lambda right: right.replace("\n", ".\n") + "."
    ),
    "pour A -> B": _of("jugs", lambda right: right.replace("->", " -> ")),
    "pour A→B": _of("jugs", lambda right: right.replace("->", "→")),
}


# -- tasks with forms of their own -----------------------------------------------------

_ROLE = re.compile(r"(\w+) is (an?) ([\w-]+)")


def _roles(form: str, join: str) -> Notation:
    """Write who is what in another form, such as `Zoey: pioneer`."""

    def write(right: str) -> str | None:
        filled = [_ROLE.sub(form, match[0]) for match in _ROLE.finditer(right)]
        return join.join(filled) if filled else None

    return _of("knights_knaves", write)


def _letters(between: str, join: str) -> Notation:
    return _of(
        "cryptarithm", lambda right: right.replace(",", join).replace("=", between)
    )


def _mapping(right: str) -> str:
    pairs = (pair.split("=") for pair in right.split(","))
    return json.dumps({letter: int(digit) for letter, digit in pairs})


_EXPRESSIONS = kinds.named("""
    countdown intermediate_integration polynomial_multiplication puzzle24
    simple_integration
""")


def _expression(change: Callable[[str], str]) -> Notation:
    return _where(lambda task, _: task in _EXPRESSIONS, change)


def _terms_reversed(right: str) -> str:
    """Write a sum without parentheses in the opposite order."""
    if "(" in right or "*" not in right or "\n" in right:
        return right
    parts = re.split(r" (?=[+-] )", right)
    signed = [p if p[:2] in ("+ ", "- ") else f"+ {p}" for p in parts]
    text = " ".join(signed[::-1])
    return text[2:] if text.startswith("+ ") else "-" + text[2:]


TIMES = "\N{MULTIPLICATION SIGN}"


def _factors(times: str, around: str = "") -> Notation:
    return _of(
        "prime_factorization",
        lambda right: around + right.replace(f" {TIMES} ", times) + around,
    )


def _powers(right: str) -> str | None:
    factors = right.split(f" {TIMES} ")
    counts = {factor: factors.count(factor) for factor in factors}
    return f" {TIMES} ".join(f if n == 1 else f"{f}^{n}" for f, n in counts.items())


_LATEX = {"∧": r"\land ", "\u2228": r"\lor ", "→": r"\to ", "¬": r"\neg "}
_LATEX["↔"] = r"\leftrightarrow "


def _logic_in_latex(right: str) -> str:
    return f"${right.translate(str.maketrans(_LATEX))}$"


OWN: Notations = {
    "2 * 2": _factors(" * "),
    "2\u00d72": _factors(TIMES),
    "2 x 2": _factors(" x "),
    r"$2 \times 2$": _factors(r" \times ", "$"),
    "2 \u00b7 2": _factors(" \u00b7 "),
    "2, 2": _factors(", "),
    "2^2": _of("prime_factorization", _powers),
    "NAME: role": _roles(r"\1: \3", ", "),
    "NAME: role on lines": _roles(r"\1: \3", "\n"),
    "- NAME is a role": _roles(r"- \g<0>", "\n"),
    "1. NAME is a role.": _roles(r"1. \g<0>.", "\n"),
    "NAME is a role; NAME": _roles(r"\g<0>", "; "),
    "NAME is a role and NAME": _roles(r"\g<0>", " and "),
    "NAME is a role while NAME": _roles(r"\g<0>", " while "),
    "NAME is a role, but NAME": _roles(r"\g<0>", ", but "),
    "**NAME** is a **role**": _roles(r"**\1** is \2 **\3**", ", and "),
    "A=1, B=2": _letters("=", ", "),
    "A = 1, B = 2": _letters(" = ", ", "),
    "A: 1, B: 2": _letters(": ", ", "),
    "A=1 on lines": _letters("=", "\n"),
    "A=1 B=2": _letters("=", " "),
    '{"A": 1}': _of("cryptarithm", _mapping),
    **_filled(
        "G + K | G + c | G + C1 | G + C_1 | G + constant | G +C | F(x) = G + C",
        _matched(r"(.*) \+ C", "G", "intermediate_integration", "simple_integration"),
    ),
    "x**2+1": _expression(lambda right: right.replace(" ", "")),
    "terms in the opposite order": _expression(_terms_reversed),
    "(P ∧ Q)": _of("propositional_logic", lambda right: f"({right})"),
    r"$P \land Q$": _of("propositional_logic", _logic_in_latex),
}

NOTATIONS: Mapping[str, Notations] = {
    "numbers": NUMBERS,
    "kinds of numbers": KINDS_OF_NUMBERS,
    "words": WORDS,
    "lists": LISTS,
    "grids": GRIDS,
    "moves": MOVES,
    "forms of one task": OWN,
}
"""Kind of answer to its notations by name."""

BY_KIND: Notations = {
    name: one for kind in NOTATIONS.values() for name, one in kind.items()
}

KIND_OF: Mapping[str, str] = {
    name: kind for kind, names in {**FORMATTING, **NOTATIONS}.items() for name in names
}
"""Name of a formatting or a notation to its kind."""

QUOTES = frozenset({*FORMATTING["quotes"], 'The answer is "X".'})

FORBIDDEN: Mapping[str, tuple[frozenset[str], str]] = {
    "acre": (QUOTES, "its question: `Do not use quotation marks in your answer`"),
}
"""Task to notations that are not counted, and the reason."""


def notations_of(item: SampledItem) -> dict[str, str]:
    """Return the right answer to an item in every formatting and notation, by name."""
    forbidden = FORBIDDEN.get(item.task, (frozenset(), ""))[0]
    found = {name: write(item.right) for name, write in GENERAL.items()}
    found |= {name: write(item.task, item.right) for name, write in BY_KIND.items()}
    return {
        name: text
        for name, text in found.items()
        if text is not None and name not in forbidden
    }
