"""Solvers of tasks about letters, words and lists of them."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import pairwise

from tools.gold_solvers.reading import (
    Solver,
    Verdict,
    computed,
    exact,
    found,
    integers,
    right_if,
)


def _alternation(question: str) -> int:
    text = found(r"alternating: ([01]+)", question)[0]
    costs = []
    for first in "01":
        wanted = [first if i % 2 == 0 else "10"[int(first)] for i in range(len(text))]
        if Counter(wanted) == Counter(text):
            costs.append(sum(a != b for a, b in zip(text, wanted, strict=True)) // 2)
    return min(costs, default=-1)


def _shifted(text: str, by: int) -> str:
    return "".join(
        chr((ord(c) - 65 + by) % 26 + 65) if c.isupper() else c for c in text
    )


def _caesar(question: str, gold: str) -> Verdict:
    text = found(r"(?:cipher text|cipher)[^:]*: ([^.]*)", question)[0].strip()
    return right_if(gold in {_shifted(text, by) for by in range(26)})


def _emoji(question: str) -> str:
    line = next(line for line in question.splitlines() if "from the emoji: " in line)
    selectors = line.split("from the emoji: ", 1)[1][1:]
    codes = [
        ord(c) - 0xFE00 if ord(c) < 0xFE10 else ord(c) - 0xE0100 + 16 for c in selectors
    ]
    return bytes(codes).decode("utf-8")


def _anagrams(question: str, gold: str) -> Verdict:
    words = ast.literal_eval(question.strip().splitlines()[-1])
    groups: dict[str, list[str]] = {}
    for word in words:
        groups.setdefault("".join(sorted(word)), []).append(word)
    return right_if(
        sorted(sorted(g) for g in json.loads(gold))
        == sorted(sorted(g) for g in groups.values())
    )


def _isomorphic(question: str) -> bool:
    one, other = question.strip().splitlines()[-1].split()
    pairs = set(zip(one, other, strict=True))
    return len(pairs) == len(set(one)) == len(set(other))


def _ransom(question: str) -> bool:
    note, magazine = found(r"Ransom note: (\w*)\nMagazine: (\w*)", question)
    return not Counter(note) - Counter(magazine)


def _letters(question: str, gold: str) -> Verdict:
    letter, text = found(r'the letter "(.)" appear in the text: "(.*)"\?', question)
    return right_if(text.count(letter) == int(gold))


def _jumble(question: str, gold: str) -> Verdict:
    words = found(r"unscramble these words: (.*)", question)[0].strip().split()
    told = gold.split()
    return right_if(
        len(words) == len(told)
        and all(
            sorted(a.lower()) == sorted(b.lower())
            for a, b in zip(words, told, strict=True)
        )
    )


def _palindrome(question: str, gold: str) -> Verdict:
    letters = re.findall(r"\b[a-z]\b", question.split("letters: ")[-1])
    return right_if(gold == gold[::-1] and sorted(gold) == sorted(letters))


def _partitions(question: str, gold: str) -> Verdict:
    text = found(r"into palindromes: (\w+)", question)[0]

    @cache
    def parts(start: int) -> list[list[str]]:
        if start == len(text):
            return [[]]
        return [
            [text[start:end], *rest]
            for end in range(start + 1, len(text) + 1)
            if text[start:end] == text[start:end][::-1]
            for rest in parts(end)
        ]

    return right_if(sorted(json.loads(gold)) == sorted(parts(0)))


def _reordering(question: str, gold: str) -> Verdict:
    words = found(r"sentence: (.*)", question)[0].split()
    return right_if(sorted(words) == sorted(gold.split()))


def _backward(question: str) -> str:
    return found(r": (\w+)\s*$", question)[0][::-1]


def _reversal(question: str) -> str:
    words = found(r"(?:words|list): (.*)", question.strip().splitlines()[-1])[0]
    return ", ".join(reversed([w.strip() for w in words.split(",")]))


def _word_sorting(question: str) -> str:
    order, words = found(
        r"in (ascending|descending) order .*? as a comma-separated list: (.*)", question
    )
    return ", ".join(
        sorted((w.strip() for w in words.split(",")), reverse=order == "descending")
    )


def _ladder(question: str, gold: str) -> Verdict:
    first, last = found(r"'([A-Z]+)' to '([A-Z]+)'", question)
    words = gold.split(",")
    steps = pairwise(words)
    return right_if(
        (words[0], words[-1]) == (first, last)
        and all(
            len(a) == len(b) and sum(x != y for x, y in zip(a, b, strict=True)) == 1
            for a, b in steps
        )
    )


def _insertion(question: str) -> str:
    text = question.strip().rsplit(" ", 1)[-1]
    rules = {"ABCD": "A", "BCDE": "B", "CDEA": "C", "DEAB": "D", "EABC": "E"}
    made, at = "", 0
    while at < len(text):
        piece = text[at : at + 4]
        if piece in rules:
            made += piece + rules[piece]
            at += 4
        else:
            made += text[at]
            at += 1
    return made


def _exhausted(
    state: list[int], rules: list[tuple[dict[int, int], dict[int, int]]]
) -> str:
    """Use the first rule that applies until none does or a state is repeated."""
    seen = {tuple(state)}
    for _ in range(1000):
        usable = (
            rule for rule in rules if all(state[i] >= n for i, n in rule[0].items())
        )
        taken, given = next(usable, ({}, {}))
        after = list(state)
        for i, n in taken.items():
            after[i] -= n
        for i, n in given.items():
            after[i] += n
        if tuple(after) in seen:
            break
        seen.add(tuple(after))
        state = after
    return " ".join(map(str, state))


def _splitting(question: str) -> str:
    a, b, c = found(r"you have (\d+) machine A, (\d+) machine B, and (\d+)", question)
    rules = [
        ({0: 1}, {3: 2, 4: 1}),
        ({1: 2}, {3: 1}),
        ({2: 2}, {4: 1}),
        ({1: 1, 2: 1}, {0: 1}),
        ({3: 1, 4: 1}, {5: 1}),
    ]
    return _exhausted([int(a), int(b), int(c), 0, 0, 0], rules)


def _synthesis(question: str) -> str:
    a, b, c = found(r"have (\d+) \[A\], (\d+) \[B\], and (\d+) \[C\]", question)
    rules = [
        ({0: 1, 1: 1, 2: 1}, {3: 1}),
        ({0: 1, 1: 1}, {5: 1}),
        ({1: 1, 2: 1}, {4: 1}),
        ({2: 2}, {5: 1}),
        ({3: 1, 5: 1}, {6: 1, 7: 1}),
        ({4: 2}, {8: 1}),
    ]
    return _exhausted([int(a), int(b), int(c), 0, 0, 0, 0, 0, 0], rules)


_Q = "'([abcz]+)'"
_RULES: list[tuple[str, Callable[..., str | None]]] = [
    (f"(?:suffix is|ends with) {_Q}, replace it with {_Q} and prepend {_Q}",
     lambda s, a, b, c: c + s[: -len(a)] + b if s.endswith(a) else None),
    (f"(?:suffix is|ends with) {_Q}, replace it with {_Q}\\.",
     lambda s, a, b: s[: -len(a)] + b if s.endswith(a) else None),
    (f"(?:suffix is|ends with) {_Q}, delete the last two",
     lambda s, a: s[:-2] if s.endswith(a) else None),
    (f"(?:suffix is|ends with) {_Q}, remove the last char",
     lambda s, a: s[:-1] if s.endswith(a) else None),
    (f"(?:prefix is|starts with) {_Q}, delete the first two characters and append {_Q}",
     lambda s, a, b: s[2:] + b if s.startswith(a) else None),
    (f"(?:prefix is|starts with) {_Q}, replace it with {_Q} and append {_Q}",
     lambda s, a, b, c: b + s[len(a) :] + c if s.startswith(a) else None),
    (f"(?:prefix is|starts with) {_Q}, replace it with {_Q} and delete the last",
     lambda s, a, b: (b + s[len(a) :])[:-1] if s.startswith(a) else None),
    (f"(?:prefix is|starts with) {_Q}, replace it with {_Q}\\.",
     lambda s, a, b: b + s[len(a) :] if s.startswith(a) else None),
    (f"(?:prefix is|starts with) {_Q}, replace the first two characters with {_Q}",
     lambda s, a, b: b + s[2:] if s.startswith(a) else None),
    (f"(?:prefix is|starts with) {_Q}, remove the first char",
     lambda s, a: s[1:] if s.startswith(a) else None),
    (f"(?:prefix is|starts with) {_Q}, remove the first two",
     lambda s, a: s[2:] if s.startswith(a) else None),
    (f"(?:prefix is|starts with) {_Q}, remove the second",
     lambda s, a: s[0] + s[2:] if s.startswith(a) else None),
    (f"contains {_Q}, replace the first occurrence with its reverse",
     lambda s, a: s.replace(a, a[::-1], 1) if a in s else None),
    (f"contains {_Q}, replace the first occurrence with {_Q}",
     lambda s, a, b: s.replace(a, b, 1) if a in s else None),
    (f"contains {_Q}, delete the first occurrence",
     lambda s, a: s.replace(a, "", 1) if a in s else None),
    (f"contains {_Q} \\(not at the start\\)",
     lambda s, a: s[:1] + s[1:].replace(a, "", 1) if a in s[1:] else None),
    (f"even number of {_Q}s .*?append {_Q}",
     lambda s, a, b: s + b if s.count(a) and s.count(a) % 2 == 0 else None),
    (r"length is greater than (\d+), remove the middle",
     lambda s, n: s[: len(s) // 2] + s[len(s) // 2 + 1 :] if len(s) > int(n) else None),
]  # fmt: skip


def _rule(line: str) -> Callable[[str], str | None]:
    for pattern, apply in _RULES:
        match = re.search(pattern, line)
        if match:
            groups = match.groups()
            return lambda text: apply(text, *groups)
    raise ValueError(f"another rule: {line}")


def _manipulation(question: str) -> str:
    rules = [_rule(x) for x in re.findall(r"^\d+\. (.*)$", question, re.M)]
    text = question.strip().splitlines()[-1].strip()
    seen = {text}
    while True:
        after = next((t for t in (r(text) for r in rules) if t is not None), text)
        if after in seen:
            return text
        seen.add(after)
        text = after


def _ab(question: str) -> str:
    tokens = found(r"following program:\n\n([^\n]*)", question)[0].split()
    rules = {
        ("A#", "#A"): [],
        ("A#", "#B"): ["#B", "A#"],
        ("B#", "#A"): ["#A", "B#"],
        ("B#", "#B"): [],
    }
    at = 0
    while at < len(tokens) - 1:
        pair = (tokens[at], tokens[at + 1])
        if pair in rules:
            tokens[at : at + 2] = rules[pair]
            at = max(0, at - 1)
        else:
            at += 1
    return " ".join(tokens)


def _brainfuck(question: str) -> str:
    code = max(re.findall(r"[-+<>.,\[\]]+", question), key=len)
    partner, open_at = {}, []
    for i, c in enumerate(code):
        if c == "[":
            open_at.append(i)
        elif c == "]":
            partner[i] = open_at.pop()
            partner[partner[i]] = i
    cells, at, place, out = [0] * 1000, 0, 0, ""
    for _ in range(2_000_000):
        if at >= len(code):
            return out
        c = code[at]
        if c in "<>":
            place += 1 if c == ">" else -1
        elif c in "+-":
            cells[place] = (cells[place] + (1 if c == "+" else -1)) % 256
        elif c == ".":
            out += chr(cells[place])
        elif (c == "[" and not cells[place]) or (c == "]" and cells[place]):
            at = partner[at]
        at += 1
    raise ValueError("the program is too long")


def _cryptarithm(question: str, gold: str) -> Verdict:
    pairs = [found(r"^\s*([A-Z])\s*=\s*(\d)\s*$", part) for part in gold.split(",")]
    values = {letter: int(digit) for letter, digit in pairs}
    if len(values) < len(set(pairs)):
        return "refuted"
    *terms, total = re.findall(
        r"^[+\s]*([A-Z]+)$", found(r"cryptarithm:(.*?)Each letter", question)[0], re.M
    )

    def number(word: str) -> int:
        return int("".join(str(values[c]) for c in word))

    letters = set("".join([*terms, total]))
    return right_if(
        set(values) == letters
        and len({values[c] for c in letters}) == len(letters)
        and all(values[word[0]] for word in [*terms, total])
        and sum(map(number, terms)) == number(total)
    )


def _sequence_of_integers(question: str, gold: str) -> Verdict:
    """Judge those that continue an arithmetic or geometric sequence, and no other."""
    numbers = [exact(n) for n in question.replace("?", "").split(",") if n.strip()]
    steps = {b - a for a, b in pairwise(numbers)}
    if len(steps) == 1 and len(numbers) > 2:
        return right_if(int(gold) == numbers[-1] + steps.pop())
    raise ValueError("a sequence of another kind")


def _courses(question: str) -> bool:
    count = integers(question)[0]
    needs = ast.literal_eval(found(r"course a_i:\n(\[.*\])", question)[0])
    left = {course: {b for a, b in needs if a == course} for course in range(count)}
    while left:
        free = {course for course, before in left.items() if not before & set(left)}
        if not free:
            return False
        left = {c: b for c, b in left.items() if c not in free}
    return True


SOLVERS: dict[str, Solver] = {
    "ab": computed(_ab),
    "bf": computed(_brainfuck),
    "binary_alternation": computed(_alternation),
    "caesar_cipher": _caesar,
    "course_schedule": computed(_courses),
    "cryptarithm": _cryptarithm,
    "emoji_mystery": computed(_emoji),
    "group_anagrams": _anagrams,
    "isomorphic_strings": computed(_isomorphic),
    "letter_counting": _letters,
    "letter_jumble": _jumble,
    "number_sequence": _sequence_of_integers,
    "palindrome_generation": _palindrome,
    "palindrome_partitioning": _partitions,
    "ransom_note": computed(_ransom),
    "sentence_reordering": _reordering,
    "spell_backward": computed(_backward),
    "string_insertion": computed(_insertion),
    "string_manipulation": computed(_manipulation),
    "string_splitting": computed(_splitting),
    "string_synthesis": computed(_synthesis),
    "word_ladder": _ladder,
    "word_sequence_reversal": computed(_reversal),
    "word_sorting": computed(_word_sorting),
}
