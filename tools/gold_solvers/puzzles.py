"""Solvers of circuits, zebra puzzles, haystacks, knights that swap and drawn words."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections import deque
from collections.abc import Callable, Iterator

import pyfiglet

from tools.gold_solvers.reading import Solver, Verdict, found, only, right_if

# -- circuit_logic ---------------------------------------------------------------------

_GATES = {
    "AND": all,
    "NAND": lambda values: not all(values),
    "OR": any,
    "NOR": lambda values: not any(values),
    "XOR": lambda values: sum(values) % 2 == 1,
}


def _circuit(question: str, gold: str) -> Verdict:
    """Follow each wire of the drawing from its input to a gate."""
    drawing, rest = found(r"circuit\.\n\n(.*?)\n\n\n(.*)", question)
    gates = dict(re.findall(r"^(\S)\1: (\w+)$", rest, re.M))
    value_of = {name: bit == "1" for name, bit in re.findall(r"(\w+) = ([01])", rest)}
    names = re.findall(r"^([A-Z]+): ", drawing, re.M)
    left = max(map(len, names)) + 2
    # The wire of the first input goes down furthest right.
    column_of = {left + 2 * n + 1: name for n, name in enumerate(reversed(names))}
    gates_from = left + 2 * len(names)
    terms: list[list[tuple[bool, str]]] = [[]]
    for row in drawing.splitlines()[len(names) :]:
        starts = [at for at in column_of if row[at : at + 1] in ("├", "└")]
        if not starts:
            terms.append([])
            continue
        negated = row[gates_from : gates_from + 3].endswith(">o")
        bit = value_of[column_of[starts[0]]] != negated
        terms[-1].append((bit, row[gates_from + 5]))
    values = []
    for term in filter(None, terms):
        bits = [bit for bit, _ in term]
        values.append(_GATES[gates[term[0][1]]](bits) if len(bits) > 1 else bits[0])
    final = re.findall(r"^\S\S: (\w+)$", rest, re.M)[-1]
    return right_if(gold == str(int(_GATES[final](values))))


# -- zebra_puzzles ---------------------------------------------------------------------

_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh"]
_RELATIONS = {
    ("", " is directly left of ", ""): lambda a, b: a + 1 == b,
    ("", " is somewhere to the left of ", ""): lambda a, b: a < b,
    ("", " is somewhere to the right of ", ""): lambda a, b: a > b,
    ("", " and ", " are next to each other"): lambda a, b: abs(a - b) == 1,
    ("There is one house between ", " and ", ""): lambda a, b: abs(a - b) == 2,
    ("There are two houses between ", " and ", ""): lambda a, b: abs(a - b) == 3,
    ("", " is ", ""): lambda a, b: a == b,
}
"""What stands before, between and after two things to where they are; the first that
fits counts."""

Thing = tuple[int, str]
"""A kind of things, by its place in the question, and one of them."""

Relation = Callable[[int, int], bool]
"""From the houses of two things to whether they are as a clue says."""


def _thing(phrase: str, kinds: list[list[str]]) -> Thing | None:
    """Return what a phrase is about, None if nothing; a name alone is of kind 0."""
    text = phrase.strip().lower()
    if text in kinds[0]:
        return 0, text
    about = [
        (kind, value)
        for kind, values in enumerate(kinds)
        for value in values
        if kind and value.rstrip("s") in text  # "the rose bouquet" is of roses
    ]
    # "Boba tea" holds "tea".
    best = [one for one in about if not any(one[1] in a[1] != one[1] for a in about)]
    return best[0] if len(best) == 1 else None


def _relation(clue: str, kinds: list[list[str]]) -> tuple[Thing, Thing, Relation]:
    for (before, between, after), holds in _RELATIONS.items():
        if not (clue.startswith(before) and clue.endswith(after)):
            continue
        inner = clue[len(before) : len(clue) - len(after)]
        for match in re.finditer(between, inner):
            a = _thing(inner[: match.start()], kinds)
            b = _thing(inner[match.end() :], kinds)
            if a and b and a != b:
                return a, b, holds
    raise ValueError(f"another clue: {clue}")


def _zebra(question: str, gold: str) -> Verdict:
    kinds = [
        [value.strip().lower() for value in values.split(",")]
        for values in re.findall(r"^ - .*?: (.*)$", question, re.M)
    ]
    houses = range(len(kinds[0]))
    clues = []
    for clue in re.findall(r"^\d+\. (.*)\.$", question, re.M):
        if at := re.fullmatch(r"(.*) is (not )?in the (\w+) house", clue):
            house, is_not = _ORDINALS.index(at[3]), bool(at[2])
            thing = _thing(at[1], kinds)
            if thing is None:
                raise ValueError(f"another clue: {clue}")
            clues.append(
                (thing, thing, lambda x, _, h=house, no=is_not: (x == h) != no)
            )
        else:
            clues.append(_relation(clue, kinds))
    asked = int(found(r"lives in House (\d+)", question)[0]) - 1
    domains = {(k, v): set(houses) for k, values in enumerate(kinds) for v in values}
    names: set[str] = set()
    for places in _placements(domains, clues):
        names.update(v for (k, v), at in places.items() if k == 0 and at == {asked})
        if len(names) > 1:
            break
    return only(sorted(names), gold.lower())


Domains = dict[Thing, set[int]]
"""Each thing with the houses where it may be."""


def _narrowed(domains: Domains, clues: list[tuple[Thing, Thing, Relation]]) -> Domains:
    """Return the houses that are left by each clue, and by what is alone in a house."""
    before: Domains = {}
    while domains != before:
        before = domains
        domains = {
            thing: {
                at
                for at in left
                if not any(
                    o[0] == thing[0] and o != thing and domains[o] == {at}
                    for o in domains
                )
            }
            for thing, left in domains.items()
        }
        for a, b, holds in clues:
            pairs = [(x, y) for x in domains[a] for y in domains[b] if holds(x, y)]
            domains[a] = domains[a] & {x for x, _ in pairs}
            domains[b] = domains[b] & {y for _, y in pairs}
    return domains


def _placements(
    domains: Domains, clues: list[tuple[Thing, Thing, Relation]]
) -> Iterator[Domains]:
    domains = _narrowed(domains, clues)
    if not all(domains.values()):
        return
    open_ = [thing for thing, left in domains.items() if len(left) > 1]
    if not open_:
        yield domains
        return
    thing = min(open_, key=lambda one: len(domains[one]))
    for at in sorted(domains[thing]):
        yield from _placements({**domains, thing: {at}}, clues)


# -- others ----------------------------------------------------------------------------


def _needle(question: str, gold: str) -> Verdict:
    stack, said = found(r"(.*)\nWho (.*)\? Reply only", question)
    sentences = re.split(r"\.\s+", stack)
    names = [s.split()[0] for s in sentences if s.partition(" ")[2] == said]
    return only(names, gold)


_LEAPS = [(x, y) for x in (-2, -1, 1, 2) for y in (-2, -1, 1, 2) if abs(x) != abs(y)]


def _knight_swap(question: str, gold: str) -> Verdict:
    head, board = found(r"```\n\s+([A-Z ]+)\n(.*?)```", question)
    columns = head.split()
    pieces = {
        f"{column}{number}": sign.strip()
        for number, row in re.findall(r"^(\d+) \|(.*)\|$", board, re.M)
        for column, sign in zip(columns, row.split("|"), strict=True)
        if sign.strip()
    }
    white, black = (
        frozenset(at for at, piece in pieces.items() if piece == color)
        for color in ("w", "B")
    )
    beside = {
        at: [
            to
            for x, y in _LEAPS
            if (to := f"{chr(ord(at[0]) + x)}{int(at[1:]) + y}") in pieces
        ]
        for at in pieces
    }
    turn = found(r"(\w) moves first", question)[0]
    if gold != "No":
        sides = {"w": white, "B": black}
        for color, start, end in (move.split(",") for move in json.loads(gold)):
            taken = sides["w"] | sides["B"]
            if color != turn or start not in sides[color] or end in taken:
                return "refuted"
            if end not in beside[start]:
                return "refuted"
            sides[color] = sides[color] - {start} | {end}
            turn = "B" if turn == "w" else "w"
        return right_if(sides == {"w": black, "B": white})
    seen = {(white, black, turn == "w")}
    queue = deque(seen)
    while queue:
        one, other, is_white = state = queue.popleft()
        if (one, other) == (black, white):
            return "refuted"
        moving, resting = (one, other) if is_white else (other, one)
        for at in moving:
            for to in beside[at]:
                if to in one or to in other:
                    continue
                moved = moving - {at} | {to}
                after = (moved, resting) if is_white else (resting, moved)
                state = (*after, not is_white)
                if state not in seen:
                    seen.add(state)
                    queue.append(state)
    return "right"


@functools.cache
def _fonts() -> list[pyfiglet.Figlet]:
    return [pyfiglet.Figlet(font=name) for name in pyfiglet.FigletFont.getFonts()]


def _flush(drawing: str) -> str:
    """Return a drawing without the space around it and behind its lines."""
    return "\n".join(line.rstrip() for line in drawing.splitlines()).strip()


def _figlet(question: str, gold: str) -> Verdict:
    asked = _flush(question.split("\n", 1)[1])
    for font in _fonts():
        for word in (gold, " ".join(gold)):
            # Some fonts lack letters.
            with contextlib.suppress(Exception):
                if _flush(font.renderText(word)) == asked:
                    return "right"
    return "refuted"


SOLVERS: dict[str, Solver] = {
    "circuit_logic": _circuit,
    "figlet_font": _figlet,
    "knight_swap": _knight_swap,
    "needle_haystack": _needle,
    "zebra_puzzles": _zebra,
}
