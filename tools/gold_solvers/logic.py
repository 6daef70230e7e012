"""Solvers of tasks about what follows, and of riddles told in words."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator
from itertools import compress, product, takewhile

from tools.gold_solvers.reading import Solver, computed, followed, found, integers, ways

# -- syllogisms ------------------------------------------------------------------------

_KINDS = list(product((False, True), repeat=3))
"""The kinds of things: which of three terms each falls under."""

_WORLDS = [set(compress(_KINDS, chosen)) for chosen in product((False, True), repeat=8)]
"""The kinds of things that there may be."""


def _syllogism(question: str, gold: str) -> bool:
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
    return answers == {gold}


# -- others ----------------------------------------------------------------------------


def _aiw(question: str, gold: str) -> bool:
    numbers = integers(question)
    if "Matilda" in question:
        # Of her own circle all women but herself, and of the other as many less one.
        return int(gold) == numbers[1] + numbers[3] - 1
    # Where she has one brother, he has none.
    asks_for_his = f"{question.split()[0]}'s brother" in question
    is_known = asks_for_his or not re.search(r"\b1 brothers", question)
    sisters = found(r"(\d+) (?:sisters|female friends)", question)[0]
    return is_known and int(gold) == int(sisters) + 1


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


def _cube(question: str, gold: str) -> bool:
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
    return {dict(cube)[asked] for cube in cubes} == {gold}


def _lock(question: str, gold: str) -> bool:
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
        return False
    # The question lets a button be pressed that only toggles the light.
    shorter = takewhile(lambda way: len(way[1]) < len(names), ways(start, moves))
    return all(state[0] != int(target) for state, _ in shorter)


def _jugs(question: str, gold: str) -> bool:
    sizes = {n: int(v) for n, v in re.findall(r"([A-Z]):(\d+)", question)}
    target = int(found(r"target is: (\d+)", question)[0])
    held = dict.fromkeys(sizes, 0)
    for move in json.loads(gold):
        how, which = move.split()
        if how == "pour":
            a, b = which.split("->")
            poured = min(held[a], sizes[b] - held[b])
            held[a] -= poured
            held[b] += poured
        else:
            held[which] = {"fill": sizes[which], "empty": 0}[how]
    return target in held.values()


_MOVE = r"\AMove disk (\d+) from Peg (\d+) to Peg (\d+)\Z"


def _hanoi(question: str, gold: str) -> bool:
    disks, pegs = map(int, found(r"with (\d+) disks and (\d+) pegs", question))
    start, end = map(int, found(r"from Peg (\d+) to Peg (\d+)", question))
    at = dict.fromkeys(range(1, disks + 1), start)
    for line in gold.splitlines():
        disk, a, b = map(int, found(_MOVE, line))
        smaller = {at[each] for each in range(1, disk)}
        if at[disk] != a or smaller & {a, b} or not 0 < b <= pegs:
            return False
        at[disk] = b
    return {*at.values()} == {end}


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


def _colors(question: str, gold: str) -> bool:
    vertices, edges, colors = (
        ast.literal_eval(found(rf"{name}: (\[.*?\])", question)[0])
        for name in ("Vertices", "Edges", "colors")
    )
    told = {int(k): v for k, v in json.loads(gold).items()}
    return (
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


def _family(question: str, gold: str) -> bool:
    """Judge the relation, and the sex where the name tells it."""
    story, asked = question.rsplit("\n\n", 1)
    one, other = found(r"is (\w+)(?: related)? to (\w+)", asked)
    spouse: dict[str, str] = {}
    parents: dict[str, tuple[str, str]] = {}
    for man, woman, children in re.findall(
        r"(\w+) is married to (\w+)\."
        r"(?: They have (?:a child|children) called ([^.]*)\.)?",
        story,
    ):
        spouse[man], spouse[woman] = woman, man
        for child in re.findall(r"\w+", children.replace(" and ", " ")):
            parents[child] = (man, woman)

    def up(name: str, times: int) -> set[str]:
        if not times:
            return {name}
        return set().union(*(up(each, times - 1) for each in parents.get(name, ())))

    partner, their_partner = spouse.get(one, ""), spouse.get(other, "")
    relatives = (
        (one, 0, other, 1, "mother father"),
        (one, 1, other, 0, "daughter son"),
        (one, 0, their_partner, 0, "wife husband"),
        (one, 1, other, 1, "sister brother"),
        (one, 0, other, 2, "grandmother grandfather"),
        (one, 2, other, 0, "granddaughter grandson"),
        (one, 1, other, 2, "aunt uncle"),
        (one, 2, other, 1, "niece nephew"),
        (one, 2, other, 2, "cousin cousin"),
        (one, 0, their_partner, 1, "mother-in-law father-in-law"),
        (partner, 1, other, 0, "daughter-in-law son-in-law"),
    )
    kinds = (kind for a, m, b, n, kind in relatives if up(a, m) & up(b, n))
    words = next(kinds).split()
    if one in _EITHER.split() and gold in words:
        return False
    return gold == words[one not in _WOMEN.split()]


def _needle(question: str, gold: str) -> bool:
    stack, said = found(r"(.*)\nWho (.*)\? Reply only", question)
    sentences = re.split(r"\.\s+", stack)
    names = [s.split()[0] for s in sentences if s.partition(" ")[2] == said]
    return names == [gold]


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
