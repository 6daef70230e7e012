r"""Extracts the answer of a completion, or the reason why there is none.

    <think> ... </think> The sum is 5. <answer>5</answer>
    thinking             text          answer

Thinking is the text between `<think>` and `</think>`, the text before a `</think>`
without an opening tag (the chat template opened it), and the text after an unclosed
`<think>`. The rest must have exactly one `<answer>...</answer>`. If a completion has
opened and closed a thinking block itself, the template did not open one. Another
closing tag is then ignored and does not hide an answer before it.

Models have thinking tags of their own (`THINKING`, in any case); each is ended by its
own closing tag. Tool calls are skipped, too. The content of any other element is not
the final message, unless its name is in `OF_THE_MESSAGE`, as in `<b>` and `<response>`.
An answer is not final if the text goes on with a word that takes it back, or with more
than `MAX_CLOSING_WORDS` words.

The time is linear in the length of any text. Answer tags must be written exactly as
above, without attributes. Nothing is repaired or guessed.

In the format "boxed", one `\boxed{...}` replaces the tags. It ends at its own closing
brace; `\{` and `\}` do not count.

Source: atropos 296a0bc, _extract_final_answer(); differs: the original took the last
answer of the whole text, so a draft inside the thinking could win or stand alone.
"""

from __future__ import annotations

import dataclasses
import functools
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
"""The marks of an answer."""

# Only 37 right ones (0.02 %) of 162,164 published answers of models have more.
MAX_CLOSING_WORDS = 30


def _pairs(text: str) -> dict[str, str]:
    tags = text.split()
    return dict(zip(tags[::2], tags[1::2], strict=True))


_CHANNEL = "<|channel|>analysis<|message|>"
_END_OF_MESSAGE = "<|end|>"
_ELEMENTS = """think thinking thought thoughts reasoning seed:think mm:think
    longcat_think ifm|think ifm|think_fast ifm|think_faster"""
# Sources: the reasoning parsers of vLLM (vllm/reasoning, 2026) and SGLang 0.5.23
# (srt/parser/reasoning_parser.py), EXAONE Deep, and tags of common prompts and data.
THINKING = {f"<{name}>": f"</{name}>" for name in _ELEMENTS.split()} | _pairs(f"""
    [think] [/think]  ◁think▷ ◁/think▷  [unused16] [unused17]  <|channel> <channel|>
    <|think:start|> <|think:end|>  <|start_thinking|> <|end_thinking|>
    <|begin_of_thought|> <|end_of_thought|>  <|inner_prefix|> <|inner_suffix|>
    <|open|>think<|sep|> <|close|>think<|sep|>  <|content_thinking|> <|end_message|>
    <|think|> {_END_OF_MESSAGE}  {_CHANNEL} {_END_OF_MESSAGE}""")
"""Opening tags of thinking to their closing tags, in lower case."""
_CALLS = _pairs("""
    <tool_call> </tool_call>  <tool_calls> </tool_calls>  <|tool_call> <tool_call|>
    <function_call> </function_call>  <|tools_prefix|> <|tools_suffix|>
    <|start_action|> <|end_action|>  <｜tool▁calls▁begin｜> <｜tool▁calls▁end｜>
    <|python_tag|> <|eom_id|>  [tool_calls] </s>  <|tool_calls|> <|calls|>
    <|tool_calls_section_begin|> <|tool_calls_section_end|>""")  # noqa: RUF001
_CLOSED_BY = THINKING | _CALLS
_ENDS_OF_MESSAGES = {_END_OF_MESSAGE, "<|end_message|>", *_CALLS.values()}
_ENDS_OF_THINKING = frozenset(THINKING.values()) - _ENDS_OF_MESSAGES
_OTHER_ENDS = ("<|call|>", "<|eom|>", "<|return|>")

_MESSAGE_WORDS = """
    a ai answer assistant b big blockquote body boxed center code conclusion content div
    document em final font h html human i im item kbd li main mark math message model my
    of ol output p pre reply response result root s samp section sentence small solution
    span strong sub sup table tbody td text th the tr tt turn u ul user xml"""
OF_THE_MESSAGE = frozenset(_MESSAGE_WORDS.split())
"""Words in the names of elements that may contain the final answer."""

_OPENING = frozenset({"begin", "start", "open"})
_CLOSING = frozenset({"end", "close"})


def _after(first: str) -> str:
    tags = (*_CLOSED_BY, *_CLOSED_BY.values(), *_OTHER_ENDS)
    return "|".join(re.escape(tag[1:]) for tag in tags if tag[0] == first)


# Each alternative begins with a different character, for speed. A header of gpt-oss or
# Muse names the channel or the recipient. Hunyuan has suffixes: `<think:opensource>`.
_HEADER = r"(?:<\|constrain\|>[^<]{0,99})?<\|message\|>"
_ELEMENT = r"[/|｜]{0,2}[^\W\d][\w.:|｜▁-]{0,60}"  # noqa: RUF001
_OTHERS = (
    rf"|<(?i:{_after('<')}|\|channel\|>(?P<channel>[^<]{{0,99}}){_HEADER}"
    rf"|/?think(?P<suffix>:\w{{1,40}})>|(?P<element>{_ELEMENT})(?:[\s=][^<>]{{0,200}})?>)"
    rf"|\[(?i:{_after('[')}|(?P<bracketed>/?[^\W\d]\w{{0,40}})\])"
    rf"|◁(?i:{_after('◁')})"
    rf"|t(?<=\bt)o=(?P<to>[^<=]{{0,99}}){_HEADER}"
)
_TAG = {"tags": re.compile(f"</?answer>{_OTHERS}")}
_TAG["boxed"] = re.compile(rf"\\(?:boxed ?\{{|[{{}}]|\\(?!boxed))|[{{}}]{_OTHERS}")
_BRACES = {"{": 1, "}": -1}
# Messages of gpt-oss without their special tokens, and the sentences of Granite.
_UNTAGGED = re.compile(
    r"\s*(?:(?:assistant)?(?:analysis|commentary)"
    r"(?:.*assistantfinal|(?=[^\s:;,.)*'/-]| to=).*\Z)"
    r"|(?i:Here(?:'s| is) my thought process:(?:.*Here(?:'s| is) my response:|.*\Z)))",
    re.DOTALL,
)
_TAKES_BACK = re.compile(
    r"\W*(?:wait|hm+|but|however|actually|alternatively|or|no[,.]|nope|let's"
    r"|let me(?! know)|scratch|strike|ignore|sorry|apologies|w?h?oops|my mistake"
    r"|correction|on second thoughts?|i mean|i meant|rather|make that)(?!\w)",
    re.IGNORECASE,
)


@dataclasses.dataclass(frozen=True)
class Extraction:
    """The result for one completion; exactly one of the two is None.

    Attributes:
        answer: The content of the only answer, stripped; may be empty.
        failure: The reason why there is no answer.
    """

    answer: str | None
    failure: FormatFailure | None


@functools.lru_cache(maxsize=256)
def _element(name: str) -> str | None:
    """Return an unlisted tag as `+name` (it opens) or `-name` (it closes).

    Words such as "begin" and "end" are not a part of the name. The result is None if
    the element may contain the final answer.
    """
    words = re.findall(r"[^\W\d_]+", name.lower())
    sign = "-" if "/" in name or _CLOSING.intersection(words) else "+"
    words = [word for word in words if word not in _OPENING | _CLOSING]
    return None if OF_THE_MESSAGE.issuperset(words) else sign + " ".join(words)


def _tags(
    text: str, start: int, answer_format: AnswerFormat = "tags"
) -> Iterator[tuple[str, int, int]]:
    """Yield each tag from `start`, its start and its end.

    Thinking tags in quotation marks are skipped. A box is yielded as answer tags, and
    an unlisted tag as the result of `_element`.
    """
    depth = 0  # open braces in a box
    for match in _TAG[answer_format].finditer(text, start):
        tag = match.group().lower()
        begin, end = match.span()
        if tag.startswith("\\boxed"):
            depth = 1
            tag = "<answer>"
        elif depth and tag in _BRACES:
            depth += _BRACES[tag]
            tag = tag if depth else "</answer>"
        if tag[-1] in "{}\\":
            continue
        quote = text[begin - 1 : begin] if begin else ""
        is_quoted = quote in {'"', "'", "`"} and text.startswith(quote, end)
        if is_quoted and not tag.endswith("answer>"):
            continue
        name = match["element"] or match["bracketed"]
        if name is not None:
            if element := _element(name):
                yield element, begin, end
            continue
        header = match["channel"] or match["to"]
        if header is not None:
            is_final = header.strip().lower().startswith(("final", "user"))
            tag = _END_OF_MESSAGE if is_final else _CHANNEL
        elif match["suffix"]:
            tag = tag.replace(match["suffix"].lower(), "")
        yield (_END_OF_MESSAGE if tag in _OTHER_ENDS else tag), begin, end


def _thinking_ends(text: str, start: int, thinking_open: bool) -> tuple[int, bool]:
    """Find the end of thinking without an opening tag in the text.

    Returns:
        The position behind the last such `</think>` (`start` if there is none), and
        whether the template's thinking is still open at that position.
    """
    still_open = thinking_open
    has_closed_its_own = False
    closed_by = frozenset(THINKING.values() if thinking_open else ())
    for tag, _, end in _tags(text, start):
        if not closed_by and tag in _CLOSED_BY:
            closed_by = frozenset({_CLOSED_BY[tag]})
        elif tag in closed_by:
            if still_open:
                start = end
                still_open = False
            else:
                has_closed_its_own = True
            closed_by = frozenset()
        elif not closed_by and tag in _ENDS_OF_THINKING:
            is_slip = has_closed_its_own and not thinking_open
            start = start if is_slip else end
    return start, still_open


def opens_thinking(prompt: str) -> bool:
    """Return whether a rendered prompt ends with an opening tag of thinking.

    Example:
        >>> opens_thinking("<|im_start|>assistant <think> ")
        True
    """
    return prompt.rstrip().lower().endswith(tuple(THINKING))


def completion_text(completion: str | Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a completion, which may be a list of messages.

    The last message counts. If the server split off its thinking, this is joined again.

    Example:
        >>> message = {"content": "<answer>5</answer>", "reasoning_content": "2+3"}
        >>> completion_text([message])
        '<think>2+3</think><answer>5</answer>'
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
        text: A completion of any length and content.
        thinking_open: Whether the prompt ended with an opening tag of thinking.
        answer_format: The marks of the answer.

    Returns:
        The answer, or the reason: `no_answer`, `several_answers`, `nested_answer` (a
        tag inside the answer), `unclosed_answer`, `stray_tag` (a closing tag without an
        opening tag) or `unfinished_thinking` (the thinking never ended and there is no
        answer outside it, or the text goes on after the answer).

    Example:
        >>> extract_answer("<think>2 + 3</think> <answer> 5 </answer>")
        Extraction(answer='5', failure=None)
        >>> extract_answer("It is 5.")
        Extraction(answer=None, failure='no_answer')
    """
    untagged = _UNTAGGED.match(text)
    start = untagged.end() if untagged else 0
    start, still_open = _thinking_ends(text, start, thinking_open)
    if still_open or (untagged and start == len(text)):
        return Extraction(None, "unfinished_thinking")
    found = _only_answer(text, start, answer_format)
    if isinstance(found, str):
        return Extraction(None, found)
    answer, end = found
    if _goes_on(text, end, answer_format):
        return Extraction(None, "unfinished_thinking")
    return Extraction(answer, None)


def _only_answer(
    text: str, start: int, answer_format: AnswerFormat
) -> tuple[str, int] | FormatFailure:
    """Return the only answer behind the thinking and its end, or why there is none."""
    open_at: int | None = None
    message_at = start
    is_framed = False  # Hunyuan A13B puts its whole message into answer tags
    closed_by: str | None = None
    answers: list[tuple[str, int]] = []  # with their ends
    opened: dict[str, int] = {}  # element to the number of answers before it
    for tag, begin, end in _tags(text, start, answer_format):
        if closed_by is not None:
            if tag == closed_by:
                closed_by = None
                message_at = end
        elif tag in _ENDS_OF_MESSAGES:
            continue
        elif tag[0] in "+-":
            if open_at is None and tag[0] == "+":
                opened.setdefault(tag[1:], len(answers))
            elif open_at is None:
                del answers[opened.pop(tag[1:], len(answers)) :]
        elif tag == "</answer>" and open_at is not None:
            answers.append((text[open_at:begin].strip(), end))
            open_at = None
        elif tag == "</answer>":
            if not is_framed:
                return "stray_tag"
            is_framed = False
        elif open_at is not None:
            is_first = text[message_at:open_at].strip() == "<answer>"
            if not is_first or tag != "<answer>" or text[open_at] != "\n":
                return "nested_answer"
            is_framed = True
            open_at = end
        elif tag == "<answer>":
            open_at = end
        else:
            closed_by = _CLOSED_BY.get(tag)
    if is_framed:
        return "nested_answer"
    if open_at is not None:
        return "unclosed_answer"
    if len(answers) > 1:
        return "several_answers"
    if not answers:
        return "unfinished_thinking" if closed_by else "no_answer"
    return answers[0]


def _goes_on(text: str, start: int, answer_format: AnswerFormat) -> bool:
    """Return whether the text goes on between an answer and the next listed tag."""
    rest_end = len(text)
    for tag, begin, _ in _tags(text, start, answer_format):
        if tag[0] not in "+-" and tag not in {*_ENDS_OF_MESSAGES, "</answer>"}:
            rest_end = begin
            break
    rest = text[start:rest_end].replace("</answer>", "")
    is_long = len(rest.split(None, MAX_CLOSING_WORDS)) > MAX_CLOSING_WORDS
    return is_long or _TAKES_BACK.match(rest) is not None
