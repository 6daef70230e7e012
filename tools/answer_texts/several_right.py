"""The rules of tasks that have several right answers, played without a scorer.

Each rule takes the metadata of an entry and an answer without dress. It says whether
the answer is right, False also for what it cannot read, None where it does not know.
What the rules pass as right may be paid; what they refuse may not.
"""

from __future__ import annotations

import ast
import cmath
import json
import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from tools.answer_texts.right_answers import frees_the_car
from tools.answer_texts.sampled_items import SampledItem

Metadata = Mapping[str, Any]
Rule = Callable[[Metadata, str], "bool | None"]

POINTS = (1.37, 2.11 + 0.3j, 0.71 - 0.4j)
"""Where two formulas are compared; powers with fractions make complex numbers."""

# -- formulas --------------------------------------------------------------------------

_OPERATIONS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_NAMED: Mapping[str, Any] = {
    **{n: getattr(cmath, n) for n in ("exp", "log", "sqrt", "sin", "cos", "tan")},
    **{n: getattr(cmath, n) for n in ("asin", "acos", "atan", "sinh", "cosh", "tanh")},
    "pi": cmath.pi,
    "E": cmath.e,
}


def _value(node: ast.AST, names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Expression):
        return _value(node.body, names)
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        exact = names.get("exact", False)
        return Fraction(node.value) if exact else complex(node.value)
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _value(node.operand, names)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, names), _value(node.right, names)
        return _OPERATIONS[type(node.op)](left, right)
    if isinstance(node, ast.Call) and len(node.args) == 1:
        return _value(node.func, names)(_value(node.args[0], names))
    raise ValueError("no formula")


def _tree(text: str) -> ast.AST | None:
    try:
        return ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


_BROKEN = (ValueError, KeyError, TypeError, ArithmeticError, IndexError)


def _sum_of(numbers: list[int], target: int, answer: str) -> bool:
    tree = _tree(answer)
    if tree is None:
        return False
    used = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    try:
        return _value(tree, {"exact": True}) == target and Counter(used) == Counter(
            numbers
        )
    except _BROKEN:
        return False


def _is_same_formula(metadata: Metadata, answer: str) -> bool | None:
    """Compare a product with the expression of the question at some points."""
    variables = metadata["variables"]
    asked, given = _tree(str(metadata["polynomial_expr"])), _tree(answer)
    if asked is None or given is None:
        return None if asked is None else False
    try:
        for shift, point in enumerate(POINTS):
            names = {v: point + 0.19 * (shift + i) for i, v in enumerate(variables)}
            expected, found = _value(asked, names), _value(given, names)
            if abs(expected - found) > 1e-9 * max(1.0, abs(expected)):
                return False
    except _BROKEN:
        return False
    return True


def _is_antiderivative(metadata: Metadata, answer: str) -> bool | None:
    """Compare the slope of an answer with the integrand at some points."""
    asked, given = _tree(str(metadata["integrand"])), _tree(answer)
    if asked is None or given is None:
        return None if asked is None else False
    variable, step = str(metadata["variable"]), 1e-5

    def at(tree: ast.AST, point: complex) -> complex:
        names = {**_NAMED, "C": 0j, variable: point}
        return complex(_value(tree, names))

    right = 0
    try:
        for point in POINTS:
            slope = (at(given, point + step) - at(given, point - step)) / (2 * step)
            expected = at(asked, point)
            right += abs(slope - expected) <= 1e-5 * max(1.0, abs(expected))
    except _BROKEN:
        return False
    return right == len(POINTS)


# -- numbers and lists -----------------------------------------------------------------


def _significant(text: str) -> str | None:
    try:
        return f"{Decimal(text):.2e}"
    except InvalidOperation:
        return None


def _to_three_digits(metadata: Metadata, answer: str) -> bool:
    given = _significant(answer)
    return given is not None and given == _significant(str(metadata["solution"]))


def _to_what_is_shown(metadata: Metadata, answer: str) -> bool:
    try:
        return round(float(answer.replace(",", "")), 5) == round(
            float(metadata["solution"]), 5
        )
    except ValueError:
        return False


def _same_numbers(metadata: Metadata, answer: str) -> bool:
    try:
        given = sorted(float(part) for part in answer.split(","))
    except ValueError:
        return False
    return given == sorted(map(float, metadata["real_solutions"]))


def _same_factors(metadata: Metadata, answer: str) -> bool:
    parts = [part.strip() for part in answer.split("\N{MULTIPLICATION SIGN}")]
    parts = [part for part in parts if part]
    if not all(part.isdecimal() for part in parts):
        return False
    return sorted(map(int, parts)) == sorted(metadata["factors"])


def _groups(value: Any) -> Any:
    return sorted(json.dumps(sorted(group)) for group in value)


def _same_groups(key: str) -> Rule:
    def rule(metadata: Metadata, answer: str) -> bool:
        try:
            return bool(_groups(json.loads(answer)) == _groups(metadata[key]))
        except (*_BROKEN, RecursionError):
            return False

    return rule


def _same_partitions(metadata: Metadata, answer: str) -> bool:
    try:
        given = json.loads(answer)
    except (*_BROKEN, RecursionError):
        return False
    return sorted(map(json.dumps, given)) == sorted(
        map(json.dumps, metadata["solution"])
    )


def _palindrome(metadata: Metadata, answer: str) -> bool:
    return answer == answer[::-1] and Counter(answer) == Counter(metadata["letters"])


def _coloured(metadata: Metadata, answer: str) -> bool:
    puzzle = metadata["puzzle"]
    try:
        colours = json.loads(answer)
        chosen = {v: colours[str(v)] for v in puzzle["vertices"]}
    except (*_BROKEN, RecursionError):
        return False
    allowed = all(colour in puzzle["color_options"] for colour in chosen.values())
    return allowed and all(chosen[a] != chosen[b] for a, b in puzzle["edges"])


def _adds_up(metadata: Metadata, answer: str) -> bool:
    pairs = [part.partition("=") for part in answer.split(",")]
    digit = {letter.strip(): value.strip() for letter, _, value in pairs}
    if any(digit[letter.strip()] != value.strip() for letter, _, value in pairs):
        return False
    letters = {c for word in metadata["words_letters"] for c in word}
    letters |= set(metadata["result_letters"])
    if set(digit) != letters:
        return False
    if not all(re.fullmatch(r"\d", value) for value in digit.values()):
        return False
    if len(set(digit.values())) != len(digit):
        return False

    def number(word: str) -> int:
        return int("".join(digit[c] for c in word))

    total = sum(number(word) for word in metadata["words_letters"])
    return total == number(metadata["result_letters"])


# -- boards ----------------------------------------------------------------------------


def _rows(answer: str) -> list[list[str]]:
    return [line.split() for line in answer.split("\n")]


def _queens(metadata: Metadata, answer: str) -> bool:
    rows, given = _rows(answer), metadata["puzzle"]
    side = len(given)
    if len(rows) != side or any(len(row) != side for row in rows):
        return False
    if any(cell not in ("_", "Q") for row in rows for cell in row):
        return False
    queens = [(r, c) for r in range(side) for c in range(side) if rows[r][c] == "Q"]
    kept = all(rows[r][c] == "Q" for r in range(side) for c in range(side)
               if given[r][c] == "Q")  # fmt: skip
    lanes = [{r for r, _ in queens}, {c for _, c in queens}]
    lanes += [{r - c for r, c in queens}, {r + c for r, c in queens}]
    return kept and len(queens) == side and all(len(lane) == side for lane in lanes)


def _weighed(metadata: Metadata, answer: str) -> bool:
    rows = _rows(answer)
    shape = {(len(rows), len(row)) for row in rows}
    if shape != {(metadata["n_rows"], metadata["n_cols"])}:
        return False
    if any(cell not in ("0", "1") for row in rows for cell in row):
        return False

    def weights(line: tuple[str, ...] | list[str]) -> int:
        return sum(place for place, cell in enumerate(line, 1) if cell == "1")

    across = [weights(row) for row in rows] == metadata["row_sums"]
    return (
        across
        and [weights(c) for c in zip(*rows, strict=False)] == metadata["col_sums"]
    )


# -- moves -----------------------------------------------------------------------------

_STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


def _walk(metadata: Metadata, answer: str) -> bool:
    grid = metadata["matrix"]
    cells = {(r, c): v for r, row in enumerate(grid) for c, v in enumerate(row)}
    place = next(where for where, v in cells.items() if v == "*")
    steps = answer.split()
    if len(steps) != len(metadata["solution"]):
        return False
    for step in steps:
        if step not in _STEPS:
            return False
        place = (place[0] + _STEPS[step][0], place[1] + _STEPS[step][1])
        if cells.get(place, "X") == "X":
            return False
    return cells[place] == "#"


def _presses(metadata: Metadata, answer: str) -> bool:
    buttons = {button["name"]: button for button in metadata["buttons"]}
    names = re.findall(r"[^\s→]", answer)
    value, light = metadata["initial_value"], metadata["initial_state"]
    if len(names) > len(metadata["solution_path"]):
        return False
    for name in names:
        if name not in buttons:
            return False
        button = buttons[name]
        if button["active_state"] in ("any", light):
            by = button["value"]
            kind = button["type"]
            value = value * by if kind == "multiply" else value
            value = value + by if kind == "add" else value
            value = value - by if kind == "subtract" else value
        light = "green" if light == "red" else "red"
    return bool(value == metadata["target_value"])


def _pours(metadata: Metadata, answer: str) -> bool:
    sizes = metadata["puzzle"]["jug_capacities"]
    names = "ABCDEFGHIJ"[: len(sizes)]
    held = dict.fromkeys(names, 0)
    size = dict(zip(names, sizes, strict=True))
    try:
        moves = json.loads(answer)
    except (ValueError, RecursionError):
        return False
    if not isinstance(moves, list):
        return False
    for move in moves:
        match = re.fullmatch(r"(fill|empty) (\w)|pour (\w)->(\w)", str(move))
        if match is None or not {x for x in match.groups()[1:] if x} <= set(names):
            return False
        verb, jug, source, goal = match.groups()
        if verb is None:
            moved = min(held[source], size[goal] - held[goal])
            held[source] -= moved
            held[goal] += moved
        else:
            held[jug] = size[jug] if verb == "fill" else 0
    return metadata["puzzle"]["target"] in held.values()


def _disks(metadata: Metadata, answer: str) -> bool:
    pegs: dict[int, list[int]] = {p: [] for p in range(1, metadata["num_pegs"] + 1)}
    pegs[metadata["start_peg"]] = list(range(metadata["num_disks"], 0, -1))
    lines = answer.split("\n")
    if len(lines) > metadata["solution_length"]:
        return False
    for line in lines:
        move = re.fullmatch(r"Move disk (\d+) from Peg (\d+) to Peg (\d+)", line)
        if move is None:
            return False
        disk, source, goal = map(int, move.groups())
        if pegs.get(source, [])[-1:] != [disk] or goal not in pegs:
            return False
        if pegs[goal] and pegs[goal][-1] < disk:
            return False
        pegs[goal].append(pegs[source].pop())
    return len(pegs[metadata["target_peg"]]) == metadata["num_disks"]


def _knights(metadata: Metadata, answer: str) -> bool:
    if not metadata["is_possible"]:
        return answer.strip('"').casefold() == "no"
    board, turn = dict(metadata["pieces"]), metadata["start_turn"]
    goal = {square: _SWAPPED.get(piece) for square, piece in board.items()}
    try:
        moves = [move.split(",") for move in json.loads(answer)]
        for who, source, to in moves:
            if who != turn or board[source] != who or board[to] is not None:
                return False
            if to not in metadata["board"][source]:
                return False
            board[to], board[source] = who, None
            turn = _SWAPPED[turn]
    except (*_BROKEN, AttributeError, RecursionError):
        return False
    return board == goal


_SWAPPED = {"w": "B", "B": "w"}


def _pushes(metadata: Metadata, answer: str) -> bool:
    """Play sokoban: the player is * or %, boxes are @ or $, goals are X, $ or %.

    A step into a wall is none, and nobody has to stop when all boxes are home.
    """
    lines = [line.split() for line in metadata["gamestr"].strip().split("\n")]
    cells = {(r, c): v for r, row in enumerate(lines) for c, v in enumerate(row)}
    boxes = {where for where, v in cells.items() if v in "@$"}
    goals = {where for where, v in cells.items() if v in "X$%"}
    place = next(where for where, v in cells.items() if v in "*%")
    ways = {word[0].upper(): step for word, step in _STEPS.items()}
    for letter in answer:
        if letter not in ways:
            return False
        down, right = ways[letter]
        to = (place[0] + down, place[1] + right)
        behind = (to[0] + down, to[1] + right)
        pushed = to in boxes
        if cells.get(to, "+") == "+":
            continue
        if pushed and (cells.get(behind, "+") == "+" or behind in boxes):
            continue
        if pushed:
            boxes = boxes - {to} | {behind}
        place = to
        if boxes == goals:
            return set(answer) <= set(ways)
    return False


def _cars(metadata: Metadata, answer: str) -> bool:
    return frees_the_car(metadata["board_config"], answer)


_ROLE = re.compile(r"(\w+) is\W+(?:is )?(?:an?\W+)?(\w+)")


def _roles(metadata: Metadata, answer: str) -> bool:
    """Say whether every inhabitant is given the right role and no other one."""
    terms, names = metadata["knight_knave_terms"], set(map(str, metadata["names"]))
    words = {terms["knight"]: True, terms["knave"]: False}
    given = _ROLE.findall(answer)
    rest = set(re.findall(r"\w+", _ROLE.sub(" ", answer)))
    if not rest <= names | {"a", "an", "and", "but", "is", "while"}:
        return False
    said = {(name, words.get(role)) for name, role in given}
    return said == set(zip(metadata["names"], metadata["solution"], strict=True))


def _unknown(metadata: Metadata, answer: str) -> None:
    return None


RULES: Mapping[str, Rule] = {
    "boxnet": _unknown,
    "codeio": _unknown,
    "countdown": lambda m, answer: _sum_of(m["numbers"], m["target"], answer),
    "cryptarithm": _adds_up,
    "graph_color": _coloured,
    "group_anagrams": _same_groups("solution"),
    "intermediate_integration": _is_antiderivative,
    "jugs": _pours,
    "kakurasu": _weighed,
    "knights_knaves": _roles,
    "knight_swap": _knights,
    "n_queens": _queens,
    "number_format": _to_what_is_shown,
    "palindrome_generation": _palindrome,
    "palindrome_partitioning": _same_partitions,
    "polynomial_equations": _same_numbers,
    "polynomial_multiplication": _is_same_formula,
    "power_function": _to_three_digits,
    "prime_factorization": _same_factors,
    "propositional_logic": _unknown,
    "puzzle24": lambda m, answer: _sum_of(m["numbers"], 24, answer),
    "quantum_lock": _presses,
    "rubiks_cube": _unknown,
    "rush_hour": _cars,
    "shortest_path": lambda m, answer: (
        _walk(m, answer) if m["solution"] else answer == "infeasible"
    ),
    "simple_integration": _is_antiderivative,
    "sokoban": _pushes,
    "tower_of_hanoi": _disks,
    "word_ladder": _unknown,
}
"""Task to its rule; every other task has one right answer."""


def is_right(item: SampledItem, answer: str) -> bool | None:
    """Say whether an answer that is no spelling of the right one is right as well."""
    rule = RULES.get(item.task)
    if rule is None:
        return False
    metadata = item.entry["metadata"]
    # A rule that cannot read the right answer knows nothing of others.
    return rule(metadata, answer.strip()) if rule(metadata, item.right) else None
