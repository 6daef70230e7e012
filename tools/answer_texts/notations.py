"""The right answer in other notations of people and language models.

What a notation is depends on the kind of answer: `5.0`, `+5` and `1,234` for a number,
other separators for a list, pipes for a grid, arrows for moves. Each notation is a pure
function of the item's task and right answer, None where it does not apply.

A notation that the question of a task forbids is not counted: see FORBIDDEN.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from tools.answer_texts import answer_kinds as kinds
from tools.answer_texts.formatting import FORMATTING, GENERAL
from tools.answer_texts.sampled_items import SampledItem

Notation = Callable[[str, str], "str | None"]
"""(task, right answer) to the written one."""


def _where(
    applies: Callable[[str, str], bool], change: Callable[[str], str | None]
) -> Notation:
    """Change the right answer where that applies."""
    return lambda task, right: change(right) if applies(task, right) else None


def _if_other(
    applies: Callable[[str, str], bool], change: Callable[[str], str | None]
) -> Notation:
    """Change the right answer where that applies, and it does not stay what it is."""

    def write(task: str, right: str) -> str | None:
        written = change(right) if applies(task, right) else None
        return None if written == right else written

    return write


# -- numbers ---------------------------------------------------------------------------


def _whole(change: Callable[[str], str]) -> Notation:
    return _where(kinds.is_whole, change)


def _number(change: Callable[[str], str | None]) -> Notation:
    return _where(kinds.is_number, change)


def _unsigned(before: str) -> Callable[[str], str | None]:
    return lambda right: None if right.startswith("-") else f"{before}{right}"


def _zero_before(right: str) -> str:
    return re.sub(r"\d", r"0\g<0>", right, count=1)


def _thousands(separator: str) -> Callable[[str], str | None]:
    def group(right: str) -> str | None:
        whole, point, decimals = right.partition(".")
        sign = "-" if whole.startswith("-") else ""
        digits = whole.lstrip("-")
        if len(digits) < 4:
            return None
        return f"{sign}{int(digits):,}".replace(",", separator) + point + decimals

    return group


def _typographic_minus(task: str, right: str) -> str | None:
    """Write the minus of numbers and expressions as typesetting does."""
    shown = task in _MINUS_IN_TEXT or kinds.is_number(task, right)
    return right.replace("-", "\u2212") if shown and "-" in right else None


_MINUS_IN_TEXT = frozenset(
    """
    bitwise_arithmetic complex_arithmetic countdown intermediate_integration
    number_format polynomial_equations polynomial_multiplication power_function
    puzzle24 simple_integration
    """.split()  # noqa: SIM905
)


def _decimal_zero(task: str, right: str) -> str | None:
    return f"{right}0" if kinds.is_decimal(task, right) else None


def _without_leading_zero(task: str, right: str) -> str | None:
    shown = kinds.is_decimal(task, right) and re.match(r"-?0\.", right)
    return right.replace("0.", ".", 1) if shown else None


def _fraction(form: str) -> Notation:
    def write(task: str, right: str) -> str | None:
        match = kinds.FRACTION.fullmatch(right)
        if task not in ("dice", "fraction_simplification") or match is None:
            return None
        above, below = [part for part in match.groups() if part]
        return form.replace("A", above).replace("B", below)

    return write


def _percent(task: str, right: str) -> str | None:
    if task != "coin_flip" or "e" in right:
        return None
    return f"{float(right) * 100:.10f}".rstrip("0").rstrip(".") + "%"


NUMBERS: Mapping[str, Notation] = {
    "5.0": _whole(lambda right: f"{right}.0"),
    "5.00": _whole(lambda right: f"{right}.00"),
    "+5": _number(_unsigned("+")),
    "05": _number(_zero_before),
    "5/1": _whole(lambda right: f"{right}/1"),
    "= 5": _number(lambda right: f"= {right}"),
    "x = 5": _number(lambda right: f"x = {right}"),
    r"\( x = 5 \)": _number(lambda right: f"\\( x = {right} \\)"),
    "1,234": _number(_thousands(",")),
    "1{,}234 in LaTeX": _number(
        lambda right: f"${g}$" if (g := _thousands("{,}")(right)) else None
    ),
    "1\u202f234": _number(_thousands("\u202f")),
    "\u22125": _typographic_minus,
    "1.50": _decimal_zero,
    ".5": _without_leading_zero,
    r"\frac{1}{2}": _fraction(r"\frac{A}{B}"),
    r"$\frac{1}{2}$": _fraction(r"$\frac{A}{B}$"),
    r"\boxed{\dfrac{1}{2}}": _fraction(r"\boxed{\dfrac{A}{B}}"),
    "1/2": _fraction("A/B"),
    "1 / 2": _fraction("A / B"),
    "12.5%": _percent,
}


def _degrees(form: str) -> Notation:
    def write(task: str, right: str) -> str | None:
        if task == "simple_geometry":
            return form.replace("X", right)
        if task == "advanced_geometry" and right.endswith("°"):
            return form.replace("X", right[:-1])
        return None

    return write


def _coordinates(form: str) -> Notation:
    def write(task: str, right: str) -> str | None:
        match = re.fullmatch(r"\(([-\d.]+), ([-\d.]+)\)", right)
        if task != "advanced_geometry" or match is None:
            return None
        return form.replace("A", match[1]).replace("B", match[2])

    return write


def _complex(form: Callable[[str, str, str], str]) -> Notation:
    def write(task: str, right: str) -> str | None:
        match = re.fullmatch(r"(-?[\d.]+) ([+-]) ([\d.]+)i", right)
        if task != "complex_arithmetic" or match is None:
            return None
        return form(*match.groups())

    return write


def _plain_complex(real: str, sign: str, imaginary: str) -> str:
    return f"{float(real):g} {sign} {float(imaginary):g}i"


def _of(task: str, change: Callable[[str], str | None]) -> Notation:
    return _if_other(lambda of, _: of == task, change)


def _days(form: str) -> Callable[[str], str | None]:
    def write(right: str) -> str | None:
        match = re.fullmatch(r"(\d+) days?", right)
        return form.replace("N", match[1]) if match else None

    return write


def _roots(join: str, name: str = "") -> Callable[[str], str | None]:
    def write(right: str) -> str | None:
        roots = [f"{name}{root}" for root in right.split(", ") if root]
        return join.join(roots) if len(roots) > 1 or (roots and name) else None

    return write


def _named_roots(right: str) -> str | None:
    return f"x = {right}" if right else None


KINDS_OF_NUMBERS: Mapping[str, Notation] = {
    "35°": _degrees("X°"),
    r"$35^\circ$": _degrees(r"$X^\circ$"),
    "35 degrees": _degrees("X degrees"),
    "H = (1, 2)": _coordinates("H = (A, B)"),
    "(1,2)": _coordinates("(A,B)"),
    r"\left(1, 2\right)": _coordinates(r"$\left(A, B\right)$"),
    "4 - 7i": _complex(_plain_complex),
    "4.0-7.0i": _complex(lambda a, sign, b: f"{a}{sign}{b}i"),
    "-7.0i + 4.0": _complex(
        lambda a, sign, b: f"{sign if sign == '-' else ''}{b}i + {a}".replace(
            "+ -", "- "
        )
    ),
    "(4.0 - 7.0i)": _complex(lambda a, sign, b: f"({a} {sign} {b}i)"),
    "z = 4.0 - 7.0i": _complex(lambda a, sign, b: f"z = {a} {sign} {b}i"),
    "0XAB": _of("bitwise_arithmetic", lambda r: r.upper().replace("0X", "0x")),
    "304 Days": _of("time_intervals", _days("N Days")),
    "+304 days": _of("time_intervals", _days("+N days")),
    "304  days": _of("time_intervals", _days("N  days")),
    "304": _of("time_intervals", _days("N")),
    "1.4 and 2.3": _of("polynomial_equations", _roots(" and ")),
    "x = 1.4, x = 2.3": _of("polynomial_equations", _roots(", ", "x = ")),
    "x = 1.4 or x = 2.3": _of("polynomial_equations", _roots(" or ", "x = ")),
    "1.4,2.3": _of("polynomial_equations", _roots(",")),
    "x = 1.4, 2.3": _of("polynomial_equations", _named_roots),
    "[1.4, 2.3]": _of("polynomial_equations", lambda r: f"[{r}]" if r else None),
}


# -- words -----------------------------------------------------------------------------


_ONE_WORD = frozenset(
    """
    calendar_arithmetic color_cube_rotation family_relationships needle_haystack
    zebra_puzzles
    """.split()  # noqa: SIM905
)


def _word(change: Callable[[str], str]) -> Notation:
    closed = _ONE_WORD | set(kinds.TWO_WORDS)
    return _if_other(lambda task, right: task in closed and right.isalpha(), change)


def _lights(right: str) -> str | None:
    return f"The light is {right}" if right in ("on", "off") else None


def _verdict(right: str) -> str:
    return "Yes, it follows." if right == "Yes" else "No, it does not follow."


WORDS: Mapping[str, Notation] = {
    "yes": _word(str.lower),
    "YES": _word(str.upper),
    "Yes": _word(str.title),
    "The light is on": _of("acre", _lights),
    "Yes, it follows.": _of("syllogism", _verdict),
    "Black B4": _of("tsumego", lambda right: f"Black {right}"),
    "b4": _of("tsumego", str.lower),
    "B-4": _of("tsumego", lambda right: f"{right[0]}-{right[1:]}"),
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


def _list(
    join: Callable[[list[str]], str], only: frozenset[str] | None = None
) -> Notation:
    def write(task: str, right: str) -> str | None:
        parts = _items_of(task, right) if only is None or task in only else None
        written = join(parts) if parts and len(parts) > 1 else right
        return None if written == right else written

    return write


def _json(dump: Callable[[object], str]) -> Notation:
    def write(task: str, right: str) -> str | None:
        if task not in kinds.JSON_TASKS or right[:1] not in ("[", "{"):
            return None
        try:
            written = dump(json.loads(right))
        except ValueError:
            return None
        return None if written == right else written

    return write


def _quoted(change: Callable[[str], str]) -> Notation:
    return _if_other(
        lambda task, right: task in kinds.QUOTED_LISTS and right not in ("", "[]"),
        change,
    )


LISTS: Mapping[str, Notation] = {
    "1, 2, 3": _list(", ".join),
    "1,2,3": _list(",".join),
    "[1, 2, 3]": _list(lambda parts: f"[{', '.join(parts)}]"),
    "1  2  3": _list("  ".join, kinds.SPACED_LISTS),
    "a list of lines": _list("\n".join),
    "a numbered list": _list(
        lambda parts: "\n".join(f"{i}. {part}" for i, part in enumerate(parts, 1))
    ),
    "a bulleted list": _list(lambda parts: "\n".join(f"- {part}" for part in parts)),
    '["a", "b"]': _list(json.dumps),
    "(1, 2, 3)": _list(lambda parts: f"({', '.join(parts)})"),
    "JSON, compact": _json(
        lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    ),
    "JSON with spaces": _json(lambda value: json.dumps(value, ensure_ascii=False)),
    "JSON, indented": _json(lambda value: json.dumps(value, indent=2)),
    "JSON, a line each": _json(
        lambda value: (
            "[\n " + ",\n ".join(map(json.dumps, value)) + "\n]"
            if isinstance(value, list)
            else json.dumps(value, indent=1)
        )
    ),
    "Python's quotes": _json(repr),
    "[\"1\", \"2\"] for ['1', '2']": _quoted(lambda right: right.replace("'", '"')),
    "[1, 2] for ['1', '2']": _quoted(lambda right: right.replace("'", "")),
    "['1','2']": _quoted(lambda right: right.replace(", ", ",")),
    "1, 2 for ['1', '2']": _quoted(lambda right: right.replace("'", "")[1:-1]),
}


# -- grids -----------------------------------------------------------------------------


def _grid(join: Callable[[list[list[str]]], str]) -> Notation:
    gridlike = kinds.NUMBER_GRIDS | {"n_queens"}
    return _where(
        lambda task, right: task in gridlike and "\n" in right,
        lambda right: join([line.split() for line in right.split("\n")]),
    )


def _lines_of(join: Callable[[list[str]], str]) -> Notation:
    gridlike = kinds.NUMBER_GRIDS | {"futoshiki", "modulo_grid", "n_queens"}
    return _where(
        lambda task, right: task in gridlike and "\n" in right,
        lambda right: join(right.split("\n")),
    )


def _rows(cell: str, before: str = "", after: str = "") -> Notation:
    return _grid(
        lambda rows: "\n".join(f"{before}{cell.join(row)}{after}" for row in rows)
    )


def _grid_json(rows: list[list[str]], indent: bool) -> str:
    values = [[json.loads(c) if c[-1:].isdigit() else c for c in row] for row in rows]
    if not indent:
        return json.dumps(values)
    return "[\n " + ",\n ".join(json.dumps(row) for row in values) + "\n]"


GRIDS: Mapping[str, Notation] = {
    "rows with pipes": _rows(" | "),
    "rows between pipes": _rows(" | ", "| ", " |"),
    "rows with commas": _rows(", "),
    "rows with tabs": _rows("\t"),
    "rows with two spaces": _rows("  "),
    "rows in brackets": _rows(", ", "[", "]"),
    "lines that end in spaces": _lines_of(lambda lines: " \n".join(lines)),
    "lines that end as on Windows": _lines_of("\r\n".join),
    "empty lines between rows": _lines_of("\n\n".join),
    "grid as JSON": _grid(lambda rows: _grid_json(rows, indent=False)),
    "grid as JSON, a line each": _grid(lambda rows: _grid_json(rows, indent=True)),
    "rows of LaTeX": _grid(
        lambda rows: (
            "\\begin{bmatrix}\n"
            + " \\\\\n".join(" & ".join(row) for row in rows)
            + "\n\\end{bmatrix}"
        )
    ),
}


# -- moves -----------------------------------------------------------------------------


def _moves_of(task: str, right: str) -> list[str] | None:
    split = {
        "ab": lambda text: text.split(" "),
        "path_star": lambda text: text.split(" "),
        "quantum_lock": lambda text: text.split(" → "),
        "rubiks_cube": lambda text: text.split(),
        "rush_hour": lambda text: text.split(" "),
        "shortest_path": lambda text: text.split(" "),
        "sokoban": list,
        "tower_of_hanoi": lambda text: text.split("\n"),
        "word_ladder": lambda text: text.split(","),
    }.get(task)
    if split is None or (task == "shortest_path" and " " not in right):
        return None
    return split(right)


def _moves(
    join: Callable[[list[str]], str], without: frozenset[str] = frozenset()
) -> Notation:
    def write(task: str, right: str) -> str | None:
        moves = _moves_of(task, right)
        if not moves or len(moves) < 2 or task in without:
            return None
        written = join(moves)
        return None if written == right else written

    return write


def _lines(form: str) -> Callable[[list[str]], str]:
    def join(moves: list[str]) -> str:
        numbered = enumerate(moves, 1)
        return "\n".join(
            form.replace("N", str(i)).replace("X", move) for i, move in numbered
        )

    return join


# Dashes are signs of the moves there.
_SIGNED = frozenset({"rush_hour"})
_LINES = frozenset({"tower_of_hanoi"})

MOVES: Mapping[str, Notation] = {
    "moves with commas": _moves(", ".join),
    "moves with spaces": _moves(" ".join, _LINES),
    "moves with arrows": _moves(" → ".join, _LINES),
    "moves with ->": _moves(" -> ".join, _LINES),
    "moves with =>": _moves(" => ".join, _LINES),
    "moves with >": _moves(" > ".join, _LINES),
    "moves with dashes": _moves("-".join, _LINES | _SIGNED),
    r"moves with \to": _moves(lambda moves: "$" + r" \to ".join(moves) + "$", _LINES),
    r"moves with \rightarrow": _moves(
        lambda moves: "$" + r" \rightarrow ".join(moves) + "$", _LINES
    ),
    "moves on lines": _moves("\n".join),
    "moves numbered": _moves(_lines("N. X")),
    "moves numbered with )": _moves(_lines("N) X")),
    "moves as bullets": _moves(_lines("- X")),
    "Moves: and moves": _moves(lambda moves: "Moves: " + " ".join(moves), _LINES),
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


def _roles(form: str, join: str) -> Callable[[str], str | None]:
    """Write who is what in another form, such as `Zoey: pioneer`."""

    def write(right: str) -> str | None:
        found = re.findall(r"(\w+) is (an?) ([\w-]+)", right)
        if not found:
            return None
        return join.join(
            form.replace("NAME", name).replace("ARTICLE", article).replace("ROLE", role)
            for name, article, role in found
        )

    return write


def _pairs(between: str, join: str) -> Callable[[str], str]:
    return lambda right: join.join(right.split(",")).replace("=", between)


def _mapping(right: str) -> str:
    return json.dumps(
        {k: int(v) for k, v in (pair.split("=") for pair in right.split(","))}
    )


def _constant(written: str) -> Notation:
    return _where(
        lambda task, right: task.endswith("_integration") and right.endswith("+ C"),
        lambda right: right[:-1] + written,
    )


def _expression(change: Callable[[str], str]) -> Notation:
    return _if_other(lambda task, _: task in _EXPRESSIONS, change)


_EXPRESSIONS = frozenset(
    """
    countdown intermediate_integration polynomial_multiplication puzzle24
    simple_integration
    """.split()  # noqa: SIM905
)


def _terms_reversed(right: str) -> str:
    """Write a sum without parentheses in the opposite order."""
    if "(" in right:
        return right
    parts = re.split(r" (?=[+-] )", right)
    signed = [p if p[:2] in ("+ ", "- ") else f"+ {p}" for p in parts]
    text = " ".join(signed[::-1])
    return text[2:] if text.startswith("+ ") else "-" + text[2:]


TIMES = "\N{MULTIPLICATION SIGN}"


def _in_dollars(text: str) -> str:
    return f"${text}$"


def _powers(right: str) -> str | None:
    factors = right.split(f" {TIMES} ")
    if len(set(factors)) == len(factors):
        return None
    counts = {factor: factors.count(factor) for factor in factors}
    return f" {TIMES} ".join(f if n == 1 else f"{f}^{n}" for f, n in counts.items())


_FACTORS = "prime_factorization"
_WHO = "knights_knaves"
_SUMS = "cryptarithm"
_LOGIC = "propositional_logic"

OWN: Mapping[str, Notation] = {
    "2 * 2": _of(_FACTORS, lambda right: right.replace(TIMES, "*")),
    "2\u00d72": _of(_FACTORS, lambda right: right.replace(" ", "")),
    "2 x 2": _of(_FACTORS, lambda right: right.replace(TIMES, "x")),
    r"$2 \times 2$": _of(_FACTORS, lambda r: _in_dollars(r.replace(TIMES, r"\times"))),
    "2 \u00b7 2": _of(_FACTORS, lambda right: right.replace(TIMES, "\u00b7")),
    "2, 2": _of(_FACTORS, lambda right: right.replace(f" {TIMES}", ",")),
    "2^2": _of(_FACTORS, _powers),
    "NAME: role": _of(_WHO, _roles("NAME: ROLE", ", ")),
    "NAME: role on lines": _of(_WHO, _roles("NAME: ROLE", "\n")),
    "- NAME is a role": _of(_WHO, _roles("- NAME is ARTICLE ROLE", "\n")),
    "1. NAME is a role.": _of(_WHO, _roles("1. NAME is ARTICLE ROLE.", "\n")),
    "NAME is a role; NAME": _of(_WHO, _roles("NAME is ARTICLE ROLE", "; ")),
    "NAME is a role and NAME": _of(_WHO, _roles("NAME is ARTICLE ROLE", " and ")),
    "NAME is a role while NAME": _of(_WHO, _roles("NAME is ARTICLE ROLE", " while ")),
    "NAME is a role, but NAME": _of(_WHO, _roles("NAME is ARTICLE ROLE", ", but ")),
    "**NAME** is a **role**": _of(
        _WHO, _roles("**NAME** is ARTICLE **ROLE**", ", and ")
    ),
    "A=1, B=2": _of(_SUMS, _pairs("=", ", ")),
    "A = 1, B = 2": _of(_SUMS, _pairs(" = ", ", ")),
    "A: 1, B: 2": _of(_SUMS, _pairs(": ", ", ")),
    "A=1 on lines": _of(_SUMS, _pairs("=", "\n")),
    "A=1 B=2": _of(_SUMS, _pairs("=", " ")),
    '{"A": 1}': _of(_SUMS, _mapping),
    "+ K": _constant("K"),
    "+ c": _constant("c"),
    "+ C1": _constant("C1"),
    "+ C_1": _constant("C_1"),
    "+ constant": _constant("constant"),
    "+C": _constant("C"),
    "x**2+1": _expression(lambda right: right.replace(" ", "")),
    "terms in the opposite order": _expression(
        lambda r: _terms_reversed(r) if "*" in r and "\n" not in r else r
    ),
    "F(x) = ...": _expression(lambda r: f"F(x) = {r}" if r.endswith("+ C") else r),
    "(P ∧ Q)": _of(_LOGIC, lambda right: f"({right})"),
    r"$P \land Q$": _of(
        _LOGIC,
        lambda r: (
            "$"
            + r.replace("∧", r"\land ")
            .replace("\u2228", r"\lor ")
            .replace("→", r"\to ")
            .replace("↔", r"\leftrightarrow ")
            .replace("¬", r"\neg ")
            + "$"
        ),
    ),
}

NOTATIONS: Mapping[str, Mapping[str, Notation]] = {
    "numbers": NUMBERS,
    "kinds of numbers": KINDS_OF_NUMBERS,
    "words": WORDS,
    "lists": LISTS,
    "grids": GRIDS,
    "moves": MOVES,
    "forms of one task": OWN,
}
"""Kind of answer to its notations by name."""

BY_KIND: Mapping[str, Notation] = {
    name: one for kind in NOTATIONS.values() for name, one in kind.items()
}

KIND_OF: Mapping[str, str] = {
    name: kind for kind, names in {**FORMATTING, **NOTATIONS}.items() for name in names
}
"""Name of a formatting or a notation to its kind."""

QUOTES = frozenset(
    ('"X"', "'X'", "curly quotes", "single curly quotes", "guillemets", "low quotes")
) | {'**"X"**', '"X".', 'The answer is "X".'}

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
