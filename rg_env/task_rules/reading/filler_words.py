"""Words around an answer that say nothing but that it is the answer.

What may stand there is listed; any other word may deny the answer, offer a choice or
make another answer of it, and so may any sign that is no formatting.

    The answer is 5.   **5**   Total: 5 legs       filler words and the answer
    -5  50  1/5  5e3  5%  5!  ~5                   part of another number
    5 or 6   5, 6   not 5   5 more   Yes No        more than the answer

Scorers that search a text for what they can read take a right answer with a different
one beside it. A fix that keeps such a reader allows for filler words beside it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

_FILLER = (
    "an answer answers are boxed equal equals final hence here is it my of output"
    " result so solution text that the therefore this thus value we word"
)
FILLER = frozenset(_FILLER.split())
"""Words that are no answer to any task, lower case; no single letters."""

_SAYING = (
    "altogether at be by count do does exactly for had has have he in left now number"
    " remaining she sum there they total unit units will with would you"
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
    "a and as backward best complete correct from full minimal minimum on optimal reach"
    " required resulting right secret shortest solve spiral start to valid"
)
_VERBS = frozenset({"is", "was", "are", "be", "equals", "it's"})
LEADING = SAYING | _VERBS | frozenset(f"{_NAMED} {_DONE} {_DESCRIBING}".split())
"""Words that announce an answer, before it."""

_HEADINGS = frozenset({"answer", "solution", "result", "output"})
_SO = frozenset({"so", "thus", "therefore", "hence"})
_COUNTED = "answers boxed count have here number sum text total value word"
_LABELS = _HEADINGS | _VERBS | _SO | frozenset(f"{_COUNTED} {_NAMED} {_DONE}".split())
"""Words behind which a colon or `=` may stand. Of the others some are answers
themselves, as in `on: off` and `left = right`."""

_MARKS = "*_#>\u2022- \t\n"
_LEAD_WORD = re.compile(
    r"([A-Za-z]+(?:['\u2019]s)?)[*_]*[^\S\n]*([:\u2248,\n]|=(?!>)|)(?:(?<=\S)[*_:]+(?=\s))?\s*"
)
_NUMBER = re.compile(r"[$*\\-]*(?:boxed\{)?\d")
_MAX_LEAD_WORDS = 12


def lead_end(text: str, *, labelled: bool = False) -> int:
    """Return where the words end that announce an answer: `The moves are: `, `So, `.

    Args:
        text: An answer, perhaps with such words before it.
        labelled: Whether it is only what ends with `answer`, `solution`, `result` or
            `output`, the shortest: `The answer is `.
    """
    end, at = 0, len(text) - len(text.lstrip(_MARKS))
    words: list[str] = []
    for place in range(_MAX_LEAD_WORDS):
        match = _LEAD_WORD.match(text, at)
        word = match[1].lower().replace("\u2019", "'") if match else ""
        if match is None or word not in LEADING:
            break
        at, mark = match.end(), match[2]
        words.append(word)
        is_count = words[-2:] == ["total", "of"] and bool(_NUMBER.match(text, at))
        ends_lead = {
            "": word == "it's" or (word in _VERBS and place > 0) or is_count,
            ",": word in _SO,
            "\n": word in _HEADINGS | _VERBS,
        }
        if ends_lead.get(mark, word in _LABELS):
            end = at
            if labelled and not _HEADINGS.isdisjoint(words):
                return end
        elif mark:
            break
    return 0 if labelled else end


_PLAIN = re.compile(r"[A-Za-z\s.,:;'\"`$*_={}()\[\]\\]*")
_WORD = re.compile(r"[A-Za-z]+")
_ASKED = re.compile(r"\b(?:how (?:many|much)|number of)((?: [^\s.?!]+){1,3})", re.I)
_DENYING = "not no nor never or true false wrong incorrect"
_DENIALS = frozenset(_DENYING.split())


def _words_of(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def words_of_numbers(question: str) -> frozenset[str]:
    """Return the words that may stand beside a number, its unit in the question too."""
    asked = _words_of(" ".join(_ASKED.findall(question)))
    return SAYING | (asked - _DENIALS)


def is_filler(text: str, words: Collection[str] = FILLER) -> bool:
    """Say whether a text holds nothing but such words and formatting."""
    return bool(_PLAIN.fullmatch(text)) and _words_of(text).issubset(words)


def is_filler_beside(read: re.Pattern[str], answer: str) -> bool:
    """Say whether all that a scorer does not read of an answer is filler words."""
    return is_filler(read.sub(" ", answer))


def _stands_alone(answer: str, start: int, end: int) -> bool:
    """Say whether `answer[start:end]` is no part of a longer number or word."""
    before = answer[start - 1] if start else ""
    after = answer[end : end + 1]
    if before.isalnum() or before == "_" or after.isalnum() or after == "_":
        return False
    # A point or comma before a digit belongs to the number.
    if before in (".", ",") and answer[start].isdigit():
        return False
    return not (after in (".", ",") and answer[end + 1 : end + 2].isdigit())


def _pieces_beside(answer: str, gold: str) -> Iterator[str]:
    """Yield the pieces of an answer between the places where the gold stands alone."""
    piece_start = search_from = 0
    while (at := answer.find(gold, search_from)) >= 0:
        end = at + len(gold)
        if _stands_alone(answer, at, end):
            yield answer[piece_start:at]
            piece_start = search_from = end
        else:
            search_from = at + 1
    yield answer[piece_start:]


def is_wrapper(answer: str, gold: str, question: str = "") -> bool:
    """Say whether an answer is the gold answer with nothing but filler words around it.

    The unit of the question may stand beside a number, and no word beside several. The
    gold answer itself is one; an empty text is none and in none.
    """
    pieces = list(_pieces_beside(answer, gold)) if gold else []
    gold_words = _WORD.findall(gold)
    words = FILLER if gold_words else words_of_numbers(question)
    if len(gold_words) > 1:
        words = frozenset()
    return len(pieces) > 1 and is_filler(" ".join(pieces), words)
