"""Solvers of tasks about what follows, and of riddles told in words."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator
from itertools import compress, product

from tools.gold_solvers.reading import (
    Solver,
    Verdict,
    computed,
    followed,
    found,
    integers,
    one_among,
    right_if,
    ways,
)

# -- syllogisms ------------------------------------------------------------------------

_KINDS = list(product((False, True), repeat=3))
"""The kinds of things: which of three terms each falls under."""

_WORLDS = [set(compress(_KINDS, chosen)) for chosen in product((False, True), repeat=8)]
"""The kinds of things that there may be."""


def _syllogism(question: str, gold: str) -> Verdict:
    lines = r"^(?:\d\. )?(All|No|Some) (.*?) are (not )?(\w[\w ]*)"
    *premises, conclusion = statements = re.findall(lines, question, re.M)
    terms = sorted({t for _, a, _, b in statements for t in (a, b)})

    def holds(statement: tuple[str, ...], there: Collection[tuple[bool, ...]]) -> bool:
        how, subject, negated, predicate = statement
        a, b = terms.index(subject), terms.index(predicate)
        is_b = (how != "All") != bool(negated)
        return any(k[a] and k[b] == is_b for k in there) == (how == "Some")

    worlds = [w for w in _WORLDS if all(holds(p, w) for p in premises)]
    inhabited = [w for w in worlds if all(any(k[i] for k in w) for i in range(3))]
    answers = {
        "Yes" if all(holds(conclusion, world) for world in possible) else "No"
        for possible in (worlds, inhabited)
    }
    return one_among(answers, gold)


# -- others ----------------------------------------------------------------------------


def _aiw(question: str, gold: str) -> Verdict:
    numbers = integers(question)
    if "Matilda" in question:
        # Of her own circle all women but herself, and of the other as many less one.
        return right_if(int(gold) == numbers[1] + numbers[3] - 1)
    # Where she has one brother, he has none.
    asks_for_his = f"{question.split()[0]}'s brother" in question
    if re.search(r"\b1 brothers", question) and not asks_for_his:
        return "not knowable"
    sisters = found(r"(\d+) (?:sisters|female friends)", question)[0]
    return right_if(int(gold) == int(sisters) + 1)


Cube = frozenset[tuple[str, str]]
"""Each side with its color."""

_TURNS = {
    "front": "front bottom back top",
    "right": "right bottom left top",
    "back": "back bottom front top",
    "left": "left bottom right top",
}


def _turn(cube: Cube, side: str) -> Cube:
    cycle = _TURNS[side].split()
    place_of = dict(zip(cycle[1:] + cycle[:1], cycle, strict=True))
    return frozenset((place_of.get(at, at), color) for at, color in cube)


def _cube(question: str, gold: str) -> Verdict:
    told = re.findall(r"- an? (\w+) (\w+) side", question)
    cubes = {frozenset((side, color) for color, side in told)}
    story = question.split("bottom side\n", 1)[-1]
    turns = story.split("What is now")[0]
    sides = re.findall(
        r"(?:before at the|bring the|make the|place its|Next, the) (\w+)", turns
    )
    if len(sides) != turns.count(" top"):
        raise ValueError("another way to tell a rotation")
    for side in sides:
        if side == "bottom":
            # Half a turn, forward or to the side: the question does not say which.
            ways = ("front", "left")
            cubes = {_turn(_turn(cube, way), way) for cube in cubes for way in ways}
        else:
            cubes = {_turn(cube, side) for cube in cubes}
    asked = found(r"color of the (\w+) side", story)[0]
    return one_among({dict(cube)[asked] for cube in cubes}, gold)


def _lock(question: str, gold: str) -> Verdict:
    begin, target = found(r"Start: (-?\d+) .*?Target: (-?\d+)", question)
    buttons = re.findall(r"^(\w): (\w+) (-?\d+) \(when (\w+)\)", question, re.M)

    def moves(state: tuple[int, str]) -> Iterator[tuple[str, tuple[int, str]]]:
        value, light = state
        for name, how, by, when in buttons:
            n = int(by)
            made = {"Add": value + n, "Subtract": value - n, "Multiply": value * n}
            after = made[how] if when in ("any", light) else value
            yield name, (after, "green" if light == "red" else "red")

    start = (int(begin), "red")
    names = re.findall(r"[^\s→]", gold)
    end = followed(start, moves, names)
    if end is None or end[0] != int(target):
        return "refuted"
    for state, path in ways(start, moves):
        if len(path) == len(names):
            break
        if state[0] == int(target):
            # The question lets a button be pressed that only toggles the light.
            return "not knowable"
    return "right"


def _jugs(question: str, gold: str) -> Verdict:
    sizes = {n: int(v) for n, v in re.findall(r"([A-Z]):(\d+)", question)}
    target = int(found(r"target is: (\d+)", question)[0])
    held = dict.fromkeys(sizes, 0)
    for move in json.loads(gold):
        how, which = move.split()
        if how == "fill":
            held[which] = sizes[which]
        elif how == "empty":
            held[which] = 0
        elif how != "pour":
            raise ValueError(f"another move: {move}")
        else:
            a, b = which.split("->")
            poured = min(held[a], sizes[b] - held[b])
            held[a] -= poured
            held[b] += poured
    return right_if(target in held.values())


_MOVE = r"\AMove disk (\d+) from Peg (\d+) to Peg (\d+)\Z"


def _hanoi(question: str, gold: str) -> Verdict:
    disks, pegs = map(int, found(r"with (\d+) disks and (\d+) pegs", question))
    start, end = map(int, found(r"from Peg (\d+) to Peg (\d+)", question))
    towers: dict[int, list[int]] = {peg: [] for peg in range(1, pegs + 1)}
    towers[start] = list(range(disks, 0, -1))
    for line in gold.splitlines():
        disk, a, b = map(int, found(_MOVE, line))
        if towers[a][-1:] != [disk] or (towers[b] and towers[b][-1] < disk):
            return "refuted"
        towers[b].append(towers[a].pop())
    return right_if(len(towers[end]) == disks)


def _mahjong(question: str) -> str:
    hand = list(found(r"initial cards ([A-Z]+)", question)[0])
    result = ""
    for added, removed in re.findall(
        r"Add an? (\w) card(?: and remove an? (\w) card)?", question
    ):
        others = {ord(c) - ord(added) for c in hand}
        if hand.count(added) >= 2:
            result = "Peng"
        elif any(set(pair) <= others for pair in ((-2, -1), (-1, 1), (1, 2))):
            result = "Chi"
        else:
            result = "Pass"
        hand.append(added)
        if removed:
            hand.remove(removed)
    return result


def _colors(question: str, gold: str) -> Verdict:
    vertices, edges, colors = (
        ast.literal_eval(found(rf"{name}: (\[.*?\])", question)[0])
        for name in ("Vertices", "Edges", "colors")
    )
    told = {int(k): v for k, v in json.loads(gold).items()}
    return right_if(
        all(told[a] != told[b] for a, b in edges)
        and set(told.values()) <= set(colors)
        and set(told) == set(vertices)
    )


_WOMEN = """
    Mary Patricia Jennifer Linda Elizabeth Barbara Susan Jessica Sarah Karen Emma Lisa
    Anna Margaret Victoria Charlotte Sophia Isabella Olivia Ava Mia Emily Abigail Amelia
    Eleanor Grace Alice Lucy Chloe Sophie Lily Hannah Zoe Luna Aria Willow Aurora
"""
_EITHER = "Nova Sage River Winter Sky Rain Logan Kai Jayden Zion Phoenix Atlas"


def _family(question: str, gold: str) -> Verdict:
    """Judge the relation, and the sex where the name tells it."""
    story, asked = question.rsplit("\n\n", 1)
    one, other = found(r"is (\w+)(?: related)? to (\w+)", asked)
    spouse: dict[str, str] = {}
    parents: dict[str, set[str]] = {}
    for couple in re.finditer(
        r"(\w+) is married to (\w+)\."
        r"(?: They have (?:a child|children) called ([^.]*)\.)?",
        story,
    ):
        man, woman, children = couple.groups()
        spouse[man], spouse[woman] = woman, man
        for child in re.findall(r"\w+", (children or "").replace(" and ", " ")):
            parents.setdefault(child, set()).update((man, woman))

    def up(name: str, times: int) -> set[str]:
        names = {name}
        for _ in range(times):
            names = {p for each in names for p in parents.get(each, ())}
        return names

    siblings = bool(parents.get(one)) and parents.get(one) == parents.get(other)
    kinds = {
        ("mother", "father"): one in up(other, 1),
        ("daughter", "son"): other in up(one, 1),
        ("wife", "husband"): spouse.get(one) == other,
        ("sister", "brother"): siblings,
        ("grandmother", "grandfather"): one in up(other, 2),
        ("granddaughter", "grandson"): other in up(one, 2),
        ("aunt", "uncle"): bool(up(one, 1) & up(other, 2)) and one not in up(other, 1),
        ("niece", "nephew"): bool(up(other, 1) & up(one, 2))
        and other not in up(one, 1),
        ("cousin", "cousin"): bool(up(one, 2) & up(other, 2)) and not siblings,
        ("mother-in-law", "father-in-law"): one in up(spouse.get(other, ""), 1),
        ("daughter-in-law", "son-in-law"): other in up(spouse.get(one, ""), 1),
    }
    words = next(words for words, is_so in kinds.items() if is_so)
    if one in _EITHER.split() and gold in words:
        return "not knowable"
    return right_if(gold == words[one not in _WOMEN.split()])


def _needle(question: str, gold: str) -> Verdict:
    stack, said = found(r"(.*)\nWho (.*)\? Reply only", question)
    sentences = re.split(r"\.\s+", stack)
    names = [s.split()[0] for s in sentences if s.partition(" ")[2] == said]
    return one_among(names, gold, several="not unique")


SOLVERS: dict[str, Solver] = {
    "aiw": _aiw,
    "color_cube_rotation": _cube,
    "family_relationships": _family,
    "graph_color": _colors,
    "jugs": _jugs,
    "mahjong_puzzle": computed(_mahjong),
    "needle_haystack": _needle,
    "quantum_lock": _lock,
    "syllogism": _syllogism,
    "tower_of_hanoi": _hanoi,
}
