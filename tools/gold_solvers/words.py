"""Solvers of tasks about letters, words and lists of them."""

from __future__ import annotations

import ast
import json
import re
from functools import cache

from tools.gold_solvers.reading import Solver, Verdict, found, right_if


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


SOLVERS: dict[str, Solver] = {
    "cryptarithm": _cryptarithm,
    "group_anagrams": _anagrams,
    "letter_counting": _letters,
    "palindrome_generation": _palindrome,
    "palindrome_partitioning": _partitions,
}
