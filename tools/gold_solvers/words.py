"""Solvers of tasks about letters, words, lists of them, and a program that they run."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import random
import re
from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from rg_env.task_rules.code.codeio import is_same
from tools.gold_solvers.reading import Solver, found, one_of


def _anagrams(question: str, gold: str) -> bool:
    words = ast.literal_eval(question.strip().splitlines()[-1])
    words.sort(key=sorted)
    groups = [sorted(group) for _, group in groupby(words, key=sorted)]
    told = map(sorted, json.loads(gold))
    return sorted(told) == sorted(groups)


def _letters(question: str, gold: str) -> bool:
    letter, text = found(r'the letter "(.)" appear in the text: "(.*)"\?', question)
    return text.count(letter) == int(gold)


def _palindrome(question: str, gold: str) -> bool:
    letters = re.findall(r"\b[a-z]\b", question.split("letters: ")[-1])
    return gold == gold[::-1] and sorted(gold) == sorted(letters)


def _parts(text: str) -> list[list[str]]:
    """Return each way to divide a text into palindromes."""
    if not text:
        return [[]]
    starts = (text[:end] for end in range(1, len(text) + 1))
    palindromes = [start for start in starts if start == start[::-1]]
    return [[p, *rest] for p in palindromes for rest in _parts(text[len(p) :])]


def _partitions(question: str, gold: str) -> bool:
    text = found(r"into palindromes: (\w+)", question)[0]
    return sorted(json.loads(gold)) == sorted(_parts(text))


def _cryptarithm(question: str, gold: str) -> bool:
    words = re.findall(
        r"^[+\s]*([A-Z]+)$", found(r"cryptarithm:(.*?)Each letter", question)[0], re.M
    )
    pairs = {found(r"^\s*([A-Z])\s*=\s*(\d)\s*$", part) for part in gold.split(",")}
    letters, digits = map("".join, zip(*pairs, strict=True))
    numbers = [word.translate(str.maketrans(letters, digits)) for word in words]
    return (
        sorted(letters) == sorted({*"".join(words)})
        and len({*digits}) == len(digits)
        and all(number[0] != "0" for number in numbers)
        and sum(map(int, numbers[:-1])) == int(numbers[-1])
    )


def _rewritten(text: str, rule: str, right: int) -> str:
    """Apply a rule, if it applies; of two middles the left or the right one goes."""
    if "middle" in rule:
        middle = (len(text) - 1 + right) // 2
        return text if len(text) < 16 else text[:middle] + text[middle + 1 :]
    word = found(r"'(\w+)'", rule)[0]
    end = "".join(re.findall(r"append '(\w+)'", rule))
    if "even number" in rule:
        return text if text.count(word) % 2 or word not in text else text + end
    kept = word[0] if re.search(r"remove the \w+ character\.", rule) else ""
    put = [kept, *re.findall(r"replace .* with [^']*'(\w+)'", rule)][-1]
    begins, ends = re.search("prefix|starts", rule), re.search("suffix|ends", rule)
    sought = f"{'^' if begins else '(?<=.)' if '(not' in rule else ''}{word}"
    after, count = re.subn(sought + "$" * bool(ends), put, text, count=1)
    after = after[:-1] if "and delete the last" in rule else after
    return (
        "".join(re.findall(r"prepend '(\w+)'", rule)) + after + end if count else text
    )


def _manipulation(question: str, gold: str) -> bool:
    rules = re.findall(r"^\d+\. (.*)", question, re.M)
    answers = set()
    for right in (0, 1):
        text, seen = question.split()[-1], []
        while text not in seen:
            seen.append(text)
            ways = (_rewritten(text, rule, right) for rule in rules)
            text = next((way for way in ways if way != text), text)
        answers.add(seen[-1])
    return answers == {gold}


def _caesar(question: str, gold: str) -> bool:
    """Judge a text by how its letters were shifted; the text has the letters A to Z.

    Any shift is let through, since the solver knows no English: the library shifts a
    line of a book by one number and gives the line, which no other shift is.
    """
    text = found(r": ([A-Z\W]+)\. Provide", question)[0]
    pairs = [(a, b) for a, b in zip(text, gold, strict=True) if a.isalpha()]
    shifts = {(ord(a) - ord(b)) % 26 for a, b in pairs}
    return len(shifts) == 1 and gold.isascii() and gold == gold.upper()


_BLOCKS = ["A", "B", "C", "a", "b", "c", "x", "y", "z"]
_COMBINED = ["ABC>a", "AB>c", "BC>b", "CC>c", "ac>xy", "bb>z"]


def synthesized(question: str) -> set[str]:
    """Count blocks; after a use of a rule comes the first rule, or the next one."""
    given = found(r"have (\d+) \[A\], (\d+) \[B\], and (\d+) \[C\]", question)
    answers = set()
    for from_the_first in (True, False):
        counts = Counter(dict(zip("ABC", map(int, given), strict=True)))
        before = None
        while counts != before:
            before = counts.copy()
            for used, made in (rule.split(">") for rule in _COMBINED):
                if Counter(used) <= counts:
                    counts = counts - Counter(used) + Counter(made)
                    if from_the_first:
                        break
        answers.add(" ".join(str(counts[block]) for block in _BLOCKS))
    return answers


_PARTS = (
    r"\nGiven the following (input|output):\n\n(.*)\n\nCan you predict (?:the|a) .*"
    r"not copy spans of code directly\.\n\n(.*)"
)


def _made(program: str, given: Mapping[str, Any], state: int) -> Any:
    """Return what a program makes of an input, as JSON has it.

    The global random generators are in one of several states.
    """
    names: dict[str, Any] = {"Random": random.Random}
    random.seed(state)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(program, names)  # noqa: S102 - the library's
        if "np" in names:
            names["np"].random.seed(state)
        return json.loads(json.dumps(names["main_solution"](**given)))


def _codeio(question: str, gold: str) -> bool:
    """Run the program on the input shown, or on that of the answer.

    Floats may differ by 1e-12, as in the scorer: a gold answer that is off by less
    costs no exact answer its score.
    """
    shows, text, program = found(_PARTS, question)
    answer = json.loads(gold)
    given = ast.literal_eval(text) if shows == "input" else answer
    try:
        made, again = (_made(program, given, state) for state in (1, 2))
    except (Exception, SystemExit):  # noqa: BLE001 - a program may raise anything
        return False
    if not is_same(made, again):
        return False
    if shows == "input":
        return is_same(made, answer)
    # Text is shown without quotes.
    is_text = isinstance(made, str)
    return made == text if is_text else is_same(made, ast.literal_eval(text))


SOLVERS: dict[str, Solver] = {
    "caesar_cipher": _caesar,
    "codeio": _codeio,
    "cryptarithm": _cryptarithm,
    "group_anagrams": _anagrams,
    "letter_counting": _letters,
    "palindrome_generation": _palindrome,
    "palindrome_partitioning": _partitions,
    "string_manipulation": _manipulation,
    "string_synthesis": one_of(synthesized),
}
