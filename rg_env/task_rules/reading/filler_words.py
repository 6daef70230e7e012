"""Filler words: words beside an answer that do not change its meaning.

FILLER words may stand beside any answer; COUNTING words and the unit in the question
may stand beside a number. NAMES, and the words by which a question asks, name the
answer. The lead of an answer consists of such words and contains a name. A verb, a
colon, `=`, a line or the comma of `So,` ends it.

    The answer is 5.   **5**   Total: 5 legs       filler words and the answer
    -5  50  1/5  5e3  5%  5!  ~5                   part of another number
    5 or 6   5, 6   not 5   5 more   Yes No        more than the answer

Any other word may deny the answer, offer a choice or change the answer.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection

_FILLER = (
    "an answer answers are boxed equal equals final hence here is it my of output"
    " result so solution text that the therefore this thus value we word"
)
FILLER = frozenset(_FILLER.split())
"""Words that are no answer in any task, in lower case; no single letters."""

_COUNTING = (
    "altogether and appears at be by correct count difference do does exactly for"
    " had has have he in left now number occurs product remaining right she shortest"
    " sum there they total unit units was will with would you"
)
COUNTING = frozenset(_COUNTING.split())
"""Words of a sentence that states a number."""

_NAMES = (
    "answer board coloring decoded decrypted difference elements fraction grid hence"
    " list mapping matrix message moves name numbers order output path plan product"
    " result reversed roots rotated route sentence sequence simplified so solution"
    " sorted string sum therefore thus total word words"
)
NAMES = frozenset(_NAMES.split())
"""Words that name an answer; a lead contains at least one."""

MAX_LEAD_CHARS = 120
_LEAD_ENDS = re.compile(
    r"(?:\b(?:is|are|was|be|equals)\b[*_]*:?|[:=](?!>)"
    r"|(?:(?<=answer|output|result)|(?<=solution))[*_]*\n"
    r"|(?:(?<=\bso)|(?<=\bthus)|(?<=\bhence)|(?<=\btherefore)),)[*_]*\s*",
    re.IGNORECASE,
)
_IN_LEAD = re.compile(r"[A-Za-z\d\s*_#>\u2022:=,()-]*")
_LEAD_WORD = re.compile(r"[a-z]+|\d+")


def lead_end(text: str, asked: Collection[str] = frozenset()) -> int:
    """Return the length of the lead of an answer; 0 if it has none.

    Args:
        text: An answer without formatting.
        asked: The `asked_words` of the question.

    Example:
        >>> lead_end("The final answer is: 5")
        21
    """
    names = NAMES | {word for word in asked if word.isalpha()}
    known = FILLER | COUNTING | names | {*asked}
    end = 0
    for match in _LEAD_ENDS.finditer(text, 0, MAX_LEAD_CHARS):
        clause = text[end : match.start()]
        words = set(_LEAD_WORD.findall(clause.lower()))
        if words - known or not _IN_LEAD.fullmatch(clause):
            break
        if words & names:
            end = match.end()
    return end


_WORDS_AND_FORMATTING = re.compile(r"[A-Za-z\s.,:;'\"`$*_={}()\[\]\\]*")
_WORD = re.compile(r"[A-Za-z]+")
_ASKING = (
    "how many|how much|number of|what is|what are|find|give|compute|calculate|determine"
    "|evaluate|return|provide|state|pick|simplify|solve|as an?|should be"
)
_ASKED_WORD = (
    r"(?!(?:if|is|off|on|or|to)\b)[a-z0-9]+\b(?!')|\(?[A-Z]{2,}\)?"
    r"|[A-Z][a-z]+(?=[A-Za-z ]*\([A-Z]+\))"
)
_ASKED = re.compile(rf"\b(?i:{_ASKING})((?:\s+(?:{_ASKED_WORD})){{1,8}})")
_UNIT = re.compile(r"\b(?:how (?:many|much)|number of)((?: [^\s.?!]+){1,3})", re.I)
_DENYING = "not no nor never or true false wrong incorrect yes on off"
_DENIALS = frozenset(_DENYING.split())


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _find_words(pattern: re.Pattern[str], question: str) -> frozenset[str]:
    """Return the words that a pattern finds, each in singular and plural."""
    found = _words(" ".join(pattern.findall(question)))
    words = frozenset(word for word in found if len(word) > 1) - _DENIALS
    return words | {f"{word}s" for word in words} | {w.removesuffix("s") for w in words}


@functools.lru_cache(maxsize=64)
def asked_words(question: str) -> frozenset[str]:
    """Return the words by which a question asks, in lower case, and its numbers.

    Example:
        >>> "gcd" in asked_words("Find the Greatest Common Divisor (GCD) of 12 and 18")
        True
    """
    return _find_words(_ASKED, question) | {*re.findall(r"\b\d+\b", question)}


def words_of_numbers(question: str) -> frozenset[str]:
    """Return the words that may stand beside a number, including its unit."""
    return FILLER | COUNTING | _find_words(_UNIT, question)


def is_filler(text: str, words: Collection[str] = FILLER) -> bool:
    """Return whether a text contains only these words and formatting."""
    return bool(_WORDS_AND_FORMATTING.fullmatch(text)) and _words(text).issubset(words)


def is_filler_beside(pattern: re.Pattern[str], answer: str) -> bool:
    """Return whether only filler words stand beside the matches of a pattern."""
    return is_filler(pattern.sub(" ", answer))
