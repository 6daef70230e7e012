"""Words around an answer that say nothing but that it is the answer.

What may stand there is listed; any other word may deny the answer, offer a choice or
make another answer of it, and so may any sign that is no formatting.

    The answer is 5.   **5**   Total: 5 legs       filler words and the answer
    -5  50  1/5  5e3  5%  5!  ~5                   part of another number
    5 or 6   5, 6   not 5   5 more   Yes No        more than the answer
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
"""Words that are no answer to any task, lower case; no single letters."""

_SAYING = (
    "altogether appears at be by count difference do does exactly for had has have he"
    " in left now number occurs product remaining she sum there they total unit units"
    " will with would you"
)
SAYING = FILLER | frozenset(_SAYING.split())
"""Words of a sentence that says a number."""

_NAMED = (
    "angle assignment board buttons cells chain color coloring colors colour colours"
    " coordinates cube day detector directions distances elements following fraction"
    " goal grid groups instructions key ladder letters light list mapping matrix"
    " message move moves name nodes numbers operations order palindrome partition"
    " partitions path pattern person plaintext plan point position presses press"
    " probability program puzzle queens radius relation relationship roots rotations"
    " route rows sentence sequence state status step steps string table test tokens"
    " values way words"
)
_DONE = (
    "completed decoded decrypted filled finished reversed rotated simplified solved"
    " sorted transformed"
)
_DESCRIBING = (
    "a and as backward best complete correct from full minimal minimum optimal reach"
    " required resulting right secret shortest solve spiral start to valid"
)
_VERBS = frozenset({"is", "was", "are", "be", "equals", "it's"})
_ANNOUNCING = frozenset(f"{_NAMED} {_DONE} {_DESCRIBING}".split())
LEADING = (SAYING - {"left"}) | _VERBS | _ANNOUNCING
"""Words that announce an answer, before it; those of its question are `asked_words`."""

_HEADINGS = frozenset({"answer", "solution", "result", "output"})
_SO = frozenset({"so", "thus", "therefore", "hence"})
_COUNTED = "answers boxed count have here number sum text total value word"
_LABELS = _HEADINGS | _SO | frozenset(f"{_COUNTED} {_NAMED} {_DONE}".split())
"""Words behind which a colon or `=` may stand. Of the others some are answers
themselves, as in `valid: no` and `left = right`."""
_SUBJECTS = _LABELS | {"difference", "it", "product", "she", "that", "there", "this"}
"""One has to stand before a verb, as does not in `left will be up`."""

_MARKS = "*_#>\u2022- \t\n"
_LEAD_WORD = re.compile(
    r"([A-Za-z]+(?:['\u2019]s)?|\d+(?=[\s,:=]))[*_]*[^\S\n]*([:\u2248,\n]|=(?!>)|)(?:(?<=\S)[*_:]+(?=\s))?\s*"
)
_NUMBER = re.compile(r"[$*\\-]*(?:boxed\{)?\d")
_MAX_LEAD_WORDS = 12


def lead_end(
    text: str, asked: frozenset[str] = frozenset(), *, labelled: bool = False
) -> int:
    """Return where the words end that announce an answer: `The moves are: `, `So, `.

    `asked` are the `asked_words` of its question. If `labelled`, it is only what ends
    with `answer`, `solution`, `result` or `output`, the shortest.
    """
    end, at = 0, len(text) - len(text.lstrip(_MARKS))
    words: list[str] = []
    numbers: set[str] = set()
    for _ in range(_MAX_LEAD_WORDS):
        match = _LEAD_WORD.match(text, at)
        word = match[1].lower().replace("\u2019", "'") if match else ""
        is_asked = word in asked
        if word[:1].isdigit():  # `The GCD of 12 and 18 is`
            is_asked &= bool(words) and words[-1] in {"of", "and", *numbers}
            numbers.add(word)
        if match is None or not (is_asked or word in LEADING):
            break
        at, mark = match.end(), match[2]
        words.append(word)
        is_count = words[-2:] == ["total", "of"] and bool(_NUMBER.match(text, at))
        has_subject = not (_SUBJECTS.isdisjoint(words) and asked.isdisjoint(words))
        is_verb = word == "it's" or (word in _VERBS and has_subject)
        ends_lead = {
            "": is_verb or is_count,
            ",": word in _SO,  # or between numbers
            "\n": is_verb or word in _HEADINGS,
        }
        if ends_lead.get(mark, is_verb or is_asked or word in _LABELS):
            end = at
            if labelled and not _HEADINGS.isdisjoint(words):
                return end
        elif mark and not (mark == "," and word in numbers):
            break
    return 0 if labelled else end


_PLAIN = re.compile(r"[A-Za-z\s.,:;'\"`$*_={}()\[\]\\]*")
_WORD = re.compile(r"[A-Za-z]+")
_ASKING = (
    "how many|how much|number of|what is|what are|find|give|compute|calculate|determine"
    "|evaluate|return|provide|state|name|pick|simplify|solve|reply|respond|as an?"
    "|should be"
)
_ARTICLES = r"(?:\s+(?:only|with|the|an?|its|now))*"
_NO_NAME = (
    "and|are|as|between|did|do|does|for|from|has|have|if|in|is|of|or|out|that|there|to"
    "|when|which|with"
)
_NAME = rf"(?:\s+(?!(?:{_NO_NAME})\b)(?-i:[a-z0-9])[^\s.,;:?!]*){{1,4}}"
_SHORTENED = r"(?:\s+[A-Za-z]+){1,4}\s+(?-i:\([A-Z]+\))"
_ASKED = re.compile(
    rf"\b(?:{_ASKING})\b(?={_ARTICLES}"
    rf"((?:{_SHORTENED}|{_NAME})(?:\s+of{_ARTICLES}{_NAME})?))",
    re.IGNORECASE,
)
_UNIT = re.compile(r"\b(?:how (?:many|much)|number of)((?: [^\s.?!]+){1,3})", re.I)
_DENYING = "not no nor never or true false wrong incorrect yes"
_DENIALS = frozenset(_DENYING.split())


def _words_of(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _named_by(pattern: re.Pattern[str], question: str) -> frozenset[str]:
    """Return the words that a pattern finds, each in its singular and its plural."""
    words = frozenset(_words_of(" ".join(pattern.findall(question)))) - _DENIALS
    return words | {f"{word}s" for word in words} | {w.removesuffix("s") for w in words}


@functools.lru_cache(maxsize=64)
def asked_words(question: str) -> frozenset[str]:
    """Return the words by which a question names what it asks for, and its numbers.

    Of `Find the Greatest Common Divisor (GCD) of these numbers: 12, 18` they are the
    name, its abbreviation and `these numbers`, in lower case.
    """
    return _named_by(_ASKED, question) | {*re.findall(r"\b\d+\b", question)}


def words_of_numbers(question: str) -> frozenset[str]:
    """Return the words that may stand beside a number, its unit in the question too."""
    return SAYING | _named_by(_UNIT, question)


def is_filler(text: str, words: Collection[str] = FILLER) -> bool:
    """Say whether a text holds nothing but such words and formatting."""
    return bool(_PLAIN.fullmatch(text)) and _words_of(text).issubset(words)


def is_filler_beside(read: re.Pattern[str], answer: str) -> bool:
    """Say whether all that a scorer does not read of an answer is filler words."""
    return is_filler(read.sub(" ", answer))
