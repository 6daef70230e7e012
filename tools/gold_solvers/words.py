"""Solvers of tasks about letters, words and lists of them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise

from tools.gold_solvers.reading import (
    Solver,
    Verdict,
    computed,
    exact,
    found,
    right_if,
)


def _anagrams(question: str, gold: str) -> Verdict:
    words = ast.literal_eval(question.strip().splitlines()[-1])
    groups: dict[str, list[str]] = {}
    for word in words:
        groups.setdefault("".join(sorted(word)), []).append(word)
    return right_if(
        sorted(sorted(g) for g in json.loads(gold))
        == sorted(sorted(g) for g in groups.values())
    )


def _letters(question: str, gold: str) -> Verdict:
    letter, text = found(r'the letter "(.)" appear in the text: "(.*)"\?', question)
    return right_if(text.count(letter) == int(gold))


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


SOLVERS: dict[str, Solver] = {
    "cryptarithm": _cryptarithm,
    "group_anagrams": _anagrams,
    "letter_counting": _letters,
    "number_sequence": _sequence_of_integers,
    "palindrome_generation": _palindrome,
    "palindrome_partitioning": _partitions,
    "string_insertion": computed(_insertion),
    "string_manipulation": computed(_manipulation),
}
