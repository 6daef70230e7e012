r"""The answer in a completion, or the reason why there is none.

    <think> ... </think> The sum is 5. <answer>5</answer>
    thinking             text          answer

Thinking is what stands between `<think>` and `</think>`, what stands before a
`</think>` that nothing opened (the chat template did), and what follows a `<think>`
that is never closed. In the rest there must be exactly one `<answer>...</answer>`.
If a completion has opened and closed a thinking block itself, the template did not open
one. Another closing tag is then a slip and does not hide an answer before it.

Models have tags of their own (`THINKING`, in any case): what one of these opens, its
own closing tag ends. Calls of tools are no message and are skipped likewise. All other
thinking is known by one rule: an answer is not final if the text goes on after it, with
a word that takes it back or with more than `MOST_CLOSING_WORDS` words.

One pass over the tags of the text: time is linear in its length, whatever it holds.
Answer tags are written as here and have no attributes. Nothing is repaired or guessed.

In the format "boxed", one `\boxed{...}` takes the place of the tags. It ends with the
brace that closes its own; `\{` and `\}` are none.

Source: atropos 296a0bc, _extract_final_answer(); differs: that took the last answer
of the whole text, so that a draft inside the thinking could win or stand alone.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

FormatFailure = Literal[
    "no_answer",
    "several_answers",
    "nested_answer",
    "unclosed_answer",
    "stray_tag",
    "unfinished_thinking",
]
FORMAT_FAILURES = frozenset(get_args(FormatFailure))

AnswerFormat = Literal["tags", "boxed"]
"""What marks an answer."""

# 37 right ones (0.02 %) of 162,164 published answers of models have more.
MOST_CLOSING_WORDS = 30


def _pairs(text: str) -> dict[str, str]:
    tags = text.split()
    return dict(zip(tags[::2], tags[1::2], strict=True))


_CHANNEL, _END_OF_MESSAGE = "<|channel|>analysis<|message|>", "<|end|>"
_ELEMENTS = """think thinking thought thoughts reasoning seed:think mm:think
    longcat_think ifm|think ifm|think_fast ifm|think_faster"""
# Sources: the reasoning parsers of vLLM (vllm/reasoning, 2026) and SGLang 0.5.23
# (srt/parser/reasoning_parser.py), EXAONE Deep, and tags of common prompts and data.
THINKING = {f"<{name}>": f"</{name}>" for name in _ELEMENTS.split()} | _pairs(f"""
    [think] [/think]  ◁think▷ ◁/think▷  [unused16] [unused17]  <|channel> <channel|>
    <|think:start|> <|think:end|>  <|start_thinking|> <|end_thinking|>
    <|begin_of_thought|> <|end_of_thought|>  <|inner_prefix|> <|inner_suffix|>
    <|open|>think<|sep|> <|close|>think<|sep|>  <|content_thinking|> <|end_message|>
    {_CHANNEL} {_END_OF_MESSAGE}""")
"""What opens the thinking of a model to what closes it, in small letters."""
_CALLS = _pairs("""
    <tool_call> </tool_call>  <tool_calls> </tool_calls>  <|tool_call> <tool_call|>
    <function_call> </function_call>  <|tools_prefix|> <|tools_suffix|>
    <|start_action|> <|end_action|>  <｜tool▁calls▁begin｜> <｜tool▁calls▁end｜>
    <|tool_calls_section_begin|> <|tool_calls_section_end|>""")  # noqa: RUF001
_CLOSED_BY = THINKING | _CALLS
_ENDS_OF_MESSAGES = {_END_OF_MESSAGE, "<|end_message|>", *_CALLS.values()}
_ENDS_OF_THINKING = frozenset(THINKING.values()) - _ENDS_OF_MESSAGES
_OTHER_ENDS = ("<|call|>", "<|eom|>", "<|return|>")


def _after(first: str) -> str:
    tags = (*_CLOSED_BY, *_CLOSED_BY.values(), *_OTHER_ENDS)
    return "|".join(re.escape(tag[1:]) for tag in tags if tag[0] == first)


# Each alternative begins with a character of its own, for speed. A header of gpt-oss or
# Muse names the channel or the recipient. Hunyuan has suffixes: `<think:opensource>`.
_HEADER = r"(?:<\|constrain\|>[^<]{0,99})?<\|message\|>"
_OTHERS = (
    rf"|<(?i:{_after('<')}|\|channel\|>(?P<channel>[^<]{{0,99}}){_HEADER}"
    rf"|/?think(?P<suffix>:\w{{1,40}})>)|\[(?i:{_after('[')})|◁(?i:{_after('◁')})"
    rf"|t(?<=\bt)o=(?P<to>[^<=]{{0,99}}){_HEADER}"
)
_TAG = {"tags": re.compile(f"</?answer>{_OTHERS}")}
_TAG["boxed"] = re.compile(rf"\\(?:boxed ?\{{|[{{}}]|\\(?!boxed))|[{{}}]{_OTHERS}")
_BRACES = {"{": 1, "}": -1}
# Messages of gpt-oss without their special tokens, and the sentences of Granite.
_UNTAGGED = re.compile(
    r"\s*(?:(?:assistant)?(?:analysis|commentary)(?:.*assistantfinal|(?=[A-Z]).*\Z)"
    r"|Here(?:'s| is) my thought process:.*Here(?:'s| is) my response:)",
    re.DOTALL,
)
_TAKES_BACK = re.compile(
    r"\W*(?:wait|hm+|but|however|actually|alternatively|or|no[,.]|let's"
    r"|let me(?! know))(?!\w)",
    re.IGNORECASE,
)


@dataclasses.dataclass(frozen=True)
class Extraction:
    """The result for one completion; exactly one of the two is None.

    Attributes:
        answer: The content of the only answer, stripped; may be empty.
        failure: Why there is no answer.
    """

    answer: str | None
    failure: FormatFailure | None


def _tags(
    text: str, start: int, answer_format: AnswerFormat = "tags"
) -> Iterator[tuple[str, int, int]]:
    """Yield the tags from `start`, as in the tables, with where each begins and ends.

    A tag of thinking that stands in quotation marks is only mentioned. A box is yielded
    as answer tags.
    """
    depth = 0  # of the braces of a box
    for match in _TAG[answer_format].finditer(text, start):
        tag, (begin, end) = match.group().lower(), match.span()
        if tag.startswith("\\boxed"):
            depth, tag = 1, "<answer>"
        elif depth and tag in _BRACES:
            depth += _BRACES[tag]
            tag = tag if depth else "</answer>"
        if tag[-1] in "{}\\":
            continue
        quote = text[begin - 1 : begin] if begin else ""
        is_quoted = quote in {'"', "'", "`"} and text.startswith(quote, end)
        if is_quoted and not tag.endswith("answer>"):
            continue
        header = match["channel"] or match["to"]
        if header is not None:
            is_final = header.strip().lower().startswith(("final", "user"))
            tag = _END_OF_MESSAGE if is_final else _CHANNEL
        elif match["suffix"]:
            tag = tag.replace(match["suffix"].lower(), "")
        yield (_END_OF_MESSAGE if tag in _OTHER_ENDS else tag), begin, end


def _thinking_ends(text: str, start: int, thinking_open: bool) -> tuple[int, bool]:
    """Find where thinking that nothing in the text opened ends.

    Returns:
        The position behind the last such `</think>` (`start` where there is none), and
        whether the text is still inside the template's thinking at that position.
    """
    still_open, has_closed_its_own = thinking_open, False
    closed_by = frozenset(THINKING.values() if thinking_open else ())
    for tag, _, end in _tags(text, start):
        if not closed_by and tag in _CLOSED_BY:
            closed_by = frozenset({_CLOSED_BY[tag]})
        elif tag in closed_by:
            if still_open:
                start, still_open = end, False
            else:
                has_closed_its_own = True
            closed_by = frozenset()
        elif not closed_by and tag in _ENDS_OF_THINKING:
            is_slip = has_closed_its_own and not thinking_open
            start = start if is_slip else end
    return start, still_open


def opens_thinking(prompt: str) -> bool:
    """Return whether a prompt, with its template, ends with `<think>` or the like."""
    return prompt.rstrip().lower().endswith(tuple(THINKING))


def whole_text(completion: str | Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a completion, which may be messages, of which the last counts.

    Thinking that a chat template or a server has split off belongs to it.
    """
    if isinstance(completion, str):
        return completion
    last = completion[-1] if completion else {}
    thinking = last.get("reasoning_content") or last.get("thinking")
    content = str(last.get("content") or "")
    return f"<think>{thinking}</think>{content}" if thinking else content


def extract_answer(
    text: str, *, thinking_open: bool = False, answer_format: AnswerFormat = "tags"
) -> Extraction:
    """Extract the final answer of a completion.

    Args:
        text: What the model wrote, of any length and content.
        thinking_open: Whether the prompt itself ended with `<think>` or the like.
        answer_format: What marks the answer.

    Returns:
        The answer, or the reason: `no_answer`, `several_answers`, `nested_answer` (a
        tag inside the answer), `unclosed_answer`, `stray_tag` (a closing tag that
        closes nothing) or `unfinished_thinking` (the thinking never ended and there
        is no answer outside it, or the text goes on after the answer).
    """
    untagged = _UNTAGGED.match(text)
    start = untagged.end() if untagged else 0
    start, still_open = _thinking_ends(text, start, thinking_open)
    if still_open or (untagged and start == len(text)):
        return Extraction(None, "unfinished_thinking")
    open_at: int | None = None
    closed_by: str | None = None
    answers: list[str] = []
    rest_at, rest_end = start, len(text)
    for tag, begin, end in _tags(text, start, answer_format):
        if closed_by is not None:
            closed_by = None if tag == closed_by else closed_by
            continue
        if tag in _ENDS_OF_MESSAGES:
            continue
        rest_end = begin if len(answers) == 1 and rest_end == len(text) else rest_end
        if tag == "</answer>":
            if open_at is None:
                return Extraction(None, "stray_tag")
            answers.append(text[open_at:begin].strip())
            open_at, rest_at = None, end
        elif open_at is not None:
            return Extraction(None, "nested_answer")
        elif tag == "<answer>":
            open_at = end
        else:
            closed_by = _CLOSED_BY.get(tag)
    if open_at is not None:
        return Extraction(None, "unclosed_answer")
    if len(answers) > 1:
        return Extraction(None, "several_answers")
    if not answers:
        return Extraction(None, "unfinished_thinking" if closed_by else "no_answer")
    rest = text[rest_at:rest_end]
    is_long = len(rest.split(None, MOST_CLOSING_WORDS)) > MOST_CLOSING_WORDS
    if is_long or _TAKES_BACK.match(rest):
        return Extraction(None, "unfinished_thinking")
    return Extraction(answers[0], None)
