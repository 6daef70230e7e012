r"""Removes formatting around an answer: `**\boxed{5}**.` becomes 5.

Language models format their answers: in bold, in a fence, as LaTeX, in quotes, with a
final period, or after "The answer is". The library's scorers compare the text as it is.
Each rule below removes one kind of formatting; the rules are repeated until none
applies.

A rule that would change the reference answer is not applied to the answers to its item:
if a quote or a period belongs to the right answer, it is not formatting. The result and
the original answer are both scored, and the higher score counts. Normalization never
chooses, computes or rounds anything.

Every rule takes linear time, and there are at most `MAX_ROUNDS` rounds.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable

from rg_env.task_rules.answer_matching import is_balanced
from rg_env.task_rules.reading.filler_words import asked_words, lead_end
from rg_env.task_rules.reading.values import read_value

MAX_ROUNDS = 8

Rule = Callable[[str], str]

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_SPACES = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
_FULL_WIDTH = {sign: sign - 0xFEE0 for sign in range(0xFF01, 0xFF5F)}
_MINUS = re.compile("\u2212|[\u2010-\u2015\ufe63](?=\\s?[\\d.])")
_END = re.compile(
    r"(?:\s*(?:<(?:/s|eos|end_of_turn|[|\uff5c][^<>\s]{1,40}|\w{1,20}\|)>"
    r"|\[(?:/?INST|EOS|EOT|END|/?SYS)\]))+\Z"
)
# End tokens are only searched in this many last characters.
MAX_END_CHARS = 100

_FENCE = re.compile(r"(```+|~~~+)[ \t]*(?:[\w+#.-]+[ \t]*)?\n(.*)\n[ \t]*\1", re.DOTALL)
_WRAPPED = re.compile(
    r"(?P<mark>\*{1,3}|_{1,2}|`{1,3}|\${1,2}|[\"'])(.+)(?P=mark)"
    r"|(?P<opening>\\[(\[]|[\u201c\u2018\u00ab\u201e])(.+)"
    r"(?:\\[)\]]|[\u201d\u2019\u00bb\u201c])",
    re.DOTALL,
)
_LATEX_WORD = re.compile(
    r"(?:\$\$?|\\\(|\\\[)?\s?\\(?:boxed|fbox|text|textbf|textit|texttt|textrm|textsf"
    r"|mathrm|mathbf|mathtt|mathit|mathsf|boldsymbol|bm|operatorname|displaystyle|mbox"
    r"|emph|underline)\s*\{(.*)\}\s?(?:\$\$?|\\\)|\\\])?",
    re.DOTALL,
)
_LATEX_SIGNS = (
    (re.compile(r"\\(?:text|math)[a-z]{0,2}\{([^{}\\]*)\}"), r"\1"),
    (re.compile(r"\\(?:left|right)(?=\s?[()\[\]|])|\\displaystyle\s?"), ""),
    (re.compile(r"(?<![/\\])\\(?:[,;:! ]|q?quad(?![A-Za-z]))"), " "),
    (re.compile(r"\s?\^\s?(?:\\circ|\{\s?\\circ\s?\})|\\degree|\u00ba"), "\u00b0"),
    (re.compile(r"\\([#_&%*])"), r"\1"),
    (re.compile(r"\\[dt]?frac\s*\{\s*(-?\d+)\s*\}\s*\{\s*(\d+)\s*\}"), r"\1/\2"),
)
_TAGGED = re.compile(
    r"<(b|strong|i|em|u|code|pre|p|span|mark|tt|kbd|samp)>((?:(?!</?\1>).)*)</\1>", re.S
)
_BOLD_WORD = re.compile(r"(?<![\w*])\*\*(?=[^\s*])([^*\n]+)(?<=[^\s*])\*\*(?![\w*])")
_CODE_WORD = re.compile(r"(?<![\w`])`([^`\n]+)`(?![\w`])")
_BULLET = re.compile(
    r"\A(?:(?:[*\u2022\u25cf\u25aa\u2023]|#{1,6})[ \t]+(?=.+\Z)"
    # A dash before words; before anything that can be negative, it is a minus.
    r"|[-+\u2013\u2014][ \t]+(?=[^\W\d_]{2}[^\d()*/^+=\n]*\Z))"
)
_NAME = re.compile(
    r"(?:[A-Za-z](?:_\{?\d\}?|\d)?|[A-Za-z]+\([^()=\n]{1,200}\))?\s*=(?!>)\s*"
)
_POINT = re.compile(r"[A-Za-z]\d{0,2}")
"""A name that may be an answer itself: `G6 = G8`, `A = B`."""

_NAMES_OF_ANSWERS = frozenset({"answer", "solution", "result", "output"})
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_PERIOD_AFTER_MARK = re.compile(
    "(?<=[*_`$\"'\u201d\u2019\u00bb\u201c)\\]}])[.\u3002]\\Z"
)

_PIECE_MARKS = frozenset("$_`\"'")
"""Marks that may stand around each of several pieces, and never in a formula."""


def _without_invisible(text: str) -> str:
    plain = _SPACES.sub(" ", _INVISIBLE.sub("", text)).strip()
    return plain if plain.isascii() else plain.translate(_FULL_WIDTH)


def _with_plain_lines(text: str) -> str:
    """Remove spaces at the ends of lines."""
    return "\n".join(line.rstrip() for line in text.split("\n"))


def _with_plain_minus(text: str) -> str:
    return _MINUS.sub("-", text)


def _without_end(text: str) -> str:
    # At every character, the pattern is tried up to the end of a run of spaces. In a
    # long run, this takes quadratic time.
    match = _END.search(text, max(0, len(text) - MAX_END_CHARS))
    return text[: match.start()] if match else text


def _with_plain_latex(text: str) -> str:
    if "\\" in text or "\u00ba" in text:
        for sign, plain in _LATEX_SIGNS:
            text = sign.sub(plain, text)
    return text


def _without_fence(text: str) -> str:
    """Remove a fence and its language."""
    match = _FENCE.fullmatch(text)
    return match[2].strip() if match else text


def _without_marks(text: str, kept: str = "") -> str:
    """Remove quotes, bold, dollars and similar marks around a text, except `kept`."""
    match = _WRAPPED.fullmatch(text)
    if match is None:
        return text
    sign = (match["mark"] or match["opening"])[0]
    inner = match[2] or match[4]
    if sign in kept or (sign in _PIECE_MARKS and _has_pairs(inner, sign)):
        return text
    return inner.strip() or text


def _has_pairs(inner: str, sign: str) -> bool:
    """Return whether the marks around a text belong to two pieces: `"a", "b"`.

    A single mark inside is an apostrophe or belongs to a name. The marks inside a list
    belong to its elements.
    """
    if inner[:1] in ("[", "{", "(") and inner[-1:] in ("]", "}", ")"):
        return False
    count = inner.count(sign)
    return count > 0 and count % 2 == 0


def _without_tags(text: str) -> str:
    match = _TAGGED.fullmatch(text)
    return match[2].strip() or text if match else text


def _without_bullet(text: str) -> str:
    """Remove the bullet or the `#` before a text of one line."""
    return _BULLET.sub("", text)


def _without_marked_words(text: str) -> str:
    """Remove bold and code marks inside a text: `**Zoey** is a **knave**`."""
    if "**" not in text and "`" not in text:
        return text
    return _CODE_WORD.sub(r"\1", _BOLD_WORD.sub(r"\1", text))


def _without_latex_word(text: str) -> str:
    match = _LATEX_WORD.fullmatch(text)
    if match is None:
        return text
    # Otherwise the last brace belongs to another word: `\text{a} \text{b}`.
    braces = "".join(re.findall(r"(?<!\\)[{}]", match[1]))
    return match[1].strip() if is_balanced(braces) else text


def _without_lead(text: str, asked: frozenset[str] = frozenset()) -> str:
    """Remove the lead of an answer, `**Answer:**`, and the end of its bold mark."""
    end = lead_end(text, asked)
    rest = text[end:].strip()
    if text[:end].count("**") == 1 and rest.endswith("**"):
        rest = rest[:-2]
    return rest or text


def _without_name(text: str) -> str:
    """Remove `x =` if the text has no other `=`."""
    match = _NAME.match(text)
    if match is None or text.count("=") != 1 or "\n" in text:
        return text
    rest = text[match.end() :].strip()
    is_equation = not text.startswith("=") and _POINT.fullmatch(rest)
    return text if is_equation or not rest else rest


def _without_object(text: str) -> str:
    """Return the answer in a JSON object with nothing else: `{"answer": "5"}`."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        ((name, value),) = read_value(text).items()
    except ValueError:
        return text
    if name.lower().removeprefix("final").strip(" _") not in _NAMES_OF_ANSWERS:
        return text
    return value.strip() if isinstance(value, str) else json.dumps(value)


def _without_period(text: str) -> str:
    """Remove a period or a comma at the end, but not three dots."""
    if text.endswith(("..", ",,", "\u2026")) or not text.endswith((".", "\u3002", ",")):
        return text
    return text[:-1].strip() or text


def _without_period_after_mark(text: str) -> str:
    return _PERIOD_AFTER_MARK.sub("", text)


def _without_separators(text: str) -> str:
    """Remove thousands separators from a number."""
    return text.replace(",", "") if _THOUSANDS.fullmatch(text) else text


RULES: tuple[Rule, ...] = (
    _without_invisible,
    _with_plain_lines,
    _with_plain_minus,
    _without_end,
    _without_period_after_mark,
    _without_fence,
    _without_marked_words,
    _without_marks,
    _without_latex_word,
    _with_plain_latex,
    _without_tags,
    _without_object,
    _without_lead,
    _without_bullet,
    _without_period,
    _without_name,
    _without_separators,
)


def build_formatting_remover(
    gold: str | None, kept_signs: str = "", question: str = ""
) -> Rule:
    """Return the function that removes formatting from the answers to an item.

    Args:
        gold: The reference answer, which is never changed; None if there is none.
        kept_signs: Signs that are not formatting at the beginning of an answer.
        question: The question. An answer may begin with its name for the answer, as in
            `GCD = 3`.

    Returns:
        A function from a stripped answer to the stripped answer without formatting.

    Example:
        >>> build_formatting_remover("5")("The answer is **5**.")
        '5'
    """
    gold = gold or ""
    kept = kept_signs
    if _without_marks(gold) != gold:
        kept += gold[0]
    rules_of_item = {
        _without_lead: functools.partial(_without_lead, asked=asked_words(question)),
        _without_marks: functools.partial(_without_marks, kept=kept),
    }
    rules = [
        rules_of_item.get(rule, rule)
        for rule in RULES
        if rule is not _without_name or "=" not in kept_signs
    ]
    # A rule that changes the reference answer would also remove a part of others.
    rules = [rule for rule in rules if rule(gold) == gold]

    def remove_formatting(answer: str) -> str:
        for _ in range(MAX_ROUNDS):
            before = answer
            for rule in rules:
                answer = rule(answer)
            if answer == before:
                break
        return answer

    return remove_formatting
