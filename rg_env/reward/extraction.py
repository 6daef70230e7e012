r"""Extracts the answer of a completion, or the reason why there is none.

    <think> ... </think> The sum is 5. <answer>5</answer>
    thinking             text          answer

Thinking is the text between `<think>` and `</think>`, the text before a `</think>`
without an opening tag (the chat template opened it), and the text after an unclosed
`<think>`. The rest must have exactly one `<answer>...</answer>`. If a completion has
opened and closed a thinking block itself, the template did not open one. Another
closing tag is then ignored and does not hide an answer before it.

`THINKING` lists the thinking tags of all models, in any case; a block of thinking ends
only at the closing tag that belongs to its opening tag. Tool calls are skipped, too. An
answer inside any other element, such as `<plan>`, is not the final one, unless all
words of the element's name are in `MESSAGE_WORDS`, as for `<b>` and `<response>`. An
answer is not final either if the text goes on with a word that takes it back, or with
more than `MAX_CLOSING_WORDS` words.

The time is linear in the length of any text. Answer tags must be written exactly as
above, without attributes. Nothing is repaired or guessed.

In the format "boxed", one `\boxed{...}` replaces the tags. It ends at its own closing
brace; `\{` and `\}` do not count.

Source: atropos 296a0bc, _extract_final_answer(); differs: the original took the last
answer of the whole text, so a draft inside the thinking could be the answer.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple, get_args

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
r"""How a completion marks its answer: with `<answer>` tags or with `\boxed`."""

# Only 37 correct completions (0.02 %) of 162,164 published ones go on for longer.
MAX_CLOSING_WORDS = 30


def _tag_pairs(text: str) -> dict[str, str]:
    """Read pairs of an opening and a closing tag."""
    return dict(re.findall(r"(\S+)\s+(\S+)", text))


_CHANNEL = "<|channel|>analysis<|message|>"
_END_OF_MESSAGE = "<|end|>"
_ELEMENTS = """think thinking thought thoughts reasoning seed:think mm:think
    longcat_think ifm|think ifm|think_fast ifm|think_faster"""
# Sources: the reasoning parsers of vLLM (vllm/reasoning, 2026) and SGLang 0.5.23
# (srt/parser/reasoning_parser.py), EXAONE Deep, and tags of common prompts and data.
THINKING = {f"<{name}>": f"</{name}>" for name in _ELEMENTS.split()} | _tag_pairs(f"""
    [think] [/think]  ◁think▷ ◁/think▷  [unused16] [unused17]  <|channel> <channel|>
    <|think:start|> <|think:end|>  <|start_thinking|> <|end_thinking|>
    <|begin_of_thought|> <|end_of_thought|>  <|inner_prefix|> <|inner_suffix|>
    <|open|>think<|sep|> <|close|>think<|sep|>  <|content_thinking|> <|end_message|>
    <|think|> {_END_OF_MESSAGE}  {_CHANNEL} {_END_OF_MESSAGE}""")
"""Opening tags of thinking to their closing tags, in lower case."""
_CALLS = _tag_pairs("""
    <tool_call> </tool_call>  <tool_calls> </tool_calls>  <|tool_call> <tool_call|>
    <function_call> </function_call>  <|tools_prefix|> <|tools_suffix|>
    <|start_action|> <|end_action|>  <｜tool▁calls▁begin｜> <｜tool▁calls▁end｜>
    <|python_tag|> <|eom_id|>  [tool_calls] </s>  <|tool_calls|> <|calls|>
    <|tool_calls_section_begin|> <|tool_calls_section_end|>""")  # noqa: RUF001
_CLOSING_TAG = THINKING | _CALLS
_MESSAGE_ENDS = frozenset({_END_OF_MESSAGE, "<|end_message|>", *_CALLS.values()})
_THINKING_ENDS = frozenset(THINKING.values()) - _MESSAGE_ENDS
_OTHER_MESSAGE_ENDS = ("<|call|>", "<|eom|>", "<|return|>")
_ANSWER_TAGS = frozenset({"<answer>", "</answer>"})

_MESSAGE_WORDS = """
    a ai answer assistant b big blockquote body boxed center code conclusion content div
    document em final font h html human i im item kbd li main mark math message model my
    of ol output p pre reply response result root s samp section sentence small solution
    span strong sub sup table tbody td text th the tr tt turn u ul user xml"""
MESSAGE_WORDS = frozenset(_MESSAGE_WORDS.split())
"""Words in the names of elements that may contain the final answer."""

_OPENING_WORDS = frozenset({"begin", "start", "open"})
_CLOSING_WORDS = frozenset({"end", "close"})


def _alternatives(first: str) -> str:
    """Return a pattern for the rest of the listed tags that begin with a sign."""
    tags = (*_CLOSING_TAG, *_CLOSING_TAG.values(), *_OTHER_MESSAGE_ENDS)
    return "|".join(re.escape(tag[1:]) for tag in tags if tag[0] == first)


# Each alternative begins with a different character, for speed. A header of gpt-oss or
# Muse names the channel or the recipient. Hunyuan has suffixes: `<think:opensource>`.
_HEADER = r"(?:<\|constrain\|>[^<]{0,99})?<\|message\|>"
_ELEMENT = r"[/|｜]{0,2}[^\W\d][\w.:|｜▁-]{0,60}"  # noqa: RUF001
_OTHER_TAGS = (
    rf"|<(?i:{_alternatives('<')}|\|channel\|>(?P<channel>[^<]{{0,99}}){_HEADER}"
    rf"|/?think(?P<suffix>:\w{{1,40}})>|(?P<element>{_ELEMENT})(?:[\s=][^<>]{{0,200}})?>)"
    rf"|\[(?i:{_alternatives('[')}|(?P<bracketed>/?[^\W\d]\w{{0,40}})\])"
    rf"|◁(?i:{_alternatives('◁')})"
    rf"|t(?<=\bt)o=(?P<to>[^<=]{{0,99}}){_HEADER}"
)
_TAG = {"tags": re.compile(f"</?answer>{_OTHER_TAGS}")}
_TAG["boxed"] = re.compile(rf"\\(?:boxed ?\{{|[{{}}]|\\(?!boxed))|[{{}}]{_OTHER_TAGS}")
_BRACES = {"{": 1, "}": -1}
# Messages of gpt-oss without their special tokens, and the sentences of Granite.
_UNTAGGED_THINKING = re.compile(
    r"\s*(?:(?:assistant)?(?:analysis|commentary)"
    r"(?:.*assistantfinal|(?=[^\s:;,.)*'/-]| to=).*\Z)"
    r"|(?i:Here(?:'s| is) my thought process:(?:.*Here(?:'s| is) my response:|.*\Z)))",
    re.DOTALL,
)
_FRAME = re.compile(r"\s*<answer>\n")
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


_Kind = Literal["listed", "opening", "closing", "block"]


class _Tag(NamedTuple):
    """A tag in a completion.

    Attributes:
        kind: "listed" for a tag of thinking, of a tool call or of an answer, "opening"
            or "closing" for a tag of any other element, or "block" for a thinking block
            or a tool call with its content.
        name: A listed tag in lower case, or the words in the name of the element.
        start: The position of the tag or the block.
        end: The position behind it.
    """

    kind: _Kind
    name: str
    start: int
    end: int


_LISTED_KINDS = ("listed", "block")
_NO_TAG = _Tag("listed", "", 0, 0)


@functools.lru_cache(maxsize=256)
def _element(name: str) -> tuple[_Kind, str] | None:
    """Return the kind and the words of an unlisted tag.

    Words such as "begin" and "end" do not belong to the name. The result is None if the
    element may contain the final answer.
    """
    words = re.findall(r"[^\W\d_]+", name.lower())
    is_closing = "/" in name or _CLOSING_WORDS.intersection(words)
    words = [word for word in words if word not in _OPENING_WORDS | _CLOSING_WORDS]
    if MESSAGE_WORDS.issuperset(words):
        return None
    return "closing" if is_closing else "opening", " ".join(words)


def _listed_name(match: re.Match[str], tag: str) -> str:
    """Return the tag of `THINKING` or of a call that a match stands for."""
    header = match["channel"] or match["to"]
    if header is not None:
        is_final = header.strip().lower().startswith(("final", "user"))
        return _END_OF_MESSAGE if is_final else _CHANNEL
    if match["suffix"]:
        return tag.replace(match["suffix"].lower(), "")
    return _END_OF_MESSAGE if tag in _OTHER_MESSAGE_ENDS else tag


def _tags(
    text: str, start: int, answer_format: AnswerFormat = "tags"
) -> Iterator[_Tag]:
    """Yield each tag behind a position; a box is yielded as answer tags.

    Other tags in quotation marks are skipped.
    """
    depth = 0  # open braces in a box
    for match in _TAG[answer_format].finditer(text, start):
        tag = match[0].lower()
        begin, end = match.span()
        if tag.startswith("\\boxed"):
            depth = 1
            tag = "<answer>"
        elif depth and tag in _BRACES:
            depth += _BRACES[tag]
            tag = tag if depth else "</answer>"
        # A brace that closes no box, or a backslash with the sign that it escapes.
        if tag[-1] in "{}\\":
            continue
        quote = text[max(begin - 1, 0) : begin]
        is_quoted = quote in {'"', "'", "`"} and text.startswith(quote, end)
        if is_quoted and tag not in _ANSWER_TAGS:
            continue
        name = match["element"] or match["bracketed"]
        if name is None:
            yield _Tag("listed", _listed_name(match, tag), begin, end)
        elif element := _element(name):
            kind, words = element
            yield _Tag(kind, words, begin, end)


def _message_tags(
    text: str, start: int, answer_format: AnswerFormat = "tags"
) -> Iterator[_Tag]:
    """Yield the tags outside of thinking blocks and tool calls.

    Each of these blocks is yielded as one tag. If the last one never ends, its opening
    tag is yielded.
    """
    block: _Tag | None = None
    for tag in _tags(text, start, answer_format):
        if block is not None:
            if tag.name == _CLOSING_TAG[block.name]:
                yield block._replace(kind="block", end=tag.end)
                block = None
        elif tag.name in _CLOSING_TAG:
            block = tag
        elif tag.name not in _MESSAGE_ENDS:
            yield tag
    if block is not None:
        yield block


def _find_thinking_end(text: str, start: int, thinking_open: bool) -> int | None:
    """Return the position behind the last `</think>` without an opening tag.

    It is `start` if there is none, and None if the template's thinking never ends.
    """
    if thinking_open:
        tags = _tags(text, start)
        closing = next((tag for tag in tags if tag.name in THINKING.values()), None)
        if closing is None:
            return None
        start = closing.end
    has_closed_its_own = False
    for tag in _message_tags(text, start):
        if tag.kind == "block":
            has_closed_its_own = True
        elif tag.name in _THINKING_ENDS and (thinking_open or not has_closed_its_own):
            start = tag.end
    return start


def opens_thinking(prompt: str) -> bool:
    """Return whether a rendered prompt ends with an opening tag of thinking.

    Example:
        >>> opens_thinking("<|im_start|>assistant <think> ")
        True
    """
    return prompt.rstrip().lower().endswith(tuple(THINKING))


def extract_answer(
    text: str, *, thinking_open: bool = False, answer_format: AnswerFormat = "tags"
) -> Extraction:
    """Extract the final answer of a completion.

    Args:
        text: A completion of any length and content.
        thinking_open: Whether the prompt ended with an opening tag of thinking.
        answer_format: How the completion marks its answer.

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
    untagged = _UNTAGGED_THINKING.match(text)
    begin = untagged.end() if untagged else 0
    start = _find_thinking_end(text, begin, thinking_open)
    if start is None or (untagged and start == len(text)):
        return Extraction(None, "unfinished_thinking")
    answers, failure = _find_answers(text, start, answer_format)
    if failure is not None:
        return Extraction(None, failure)
    if len(answers) > 1:
        return Extraction(None, "several_answers")
    answer, end = answers[0]
    if _goes_on(text, end, answer_format):
        return Extraction(None, "unfinished_thinking")
    return Extraction(answer, None)


def _find_answers(
    text: str, start: int, answer_format: AnswerFormat
) -> tuple[list[tuple[str, int]], FormatFailure | None]:
    r"""Return the answers behind the thinking with their ends, or why there is none.

    Hunyuan A13B puts its message into a frame of answer tags, which are no answer:
    `<answer>\nIt is <answer>5</answer>.\n</answer>`.
    """
    answers: list[tuple[str, int]] = []
    answers_before: dict[str, int] = {}  # open element to the number of answers
    has_open_frame = False
    missing: FormatFailure = "no_answer"
    tags = _message_tags(text, start, answer_format)
    listed = (tag for tag in tags if tag.kind in _LISTED_KINDS)  # advances `tags`
    for tag in tags:
        if tag.kind == "opening":
            answers_before.setdefault(tag.name, len(answers))
        elif tag.kind == "closing":
            kept = answers_before.pop(tag.name, len(answers))
            del answers[kept:]  # those inside the element
        elif tag.kind == "block":
            start = tag.end
        elif tag.name == "<answer>":
            begin = tag.end
            closing = next(listed, _NO_TAG)
            if closing.name == "<answer>" and _FRAME.fullmatch(text, start, begin + 1):
                has_open_frame = True
                begin = closing.end
                closing = next(listed, _NO_TAG)
            if closing is _NO_TAG and not has_open_frame:
                return [], "unclosed_answer"
            if closing.name != "</answer>":
                return [], "nested_answer"
            answers.append((text[begin : closing.start].strip(), closing.end))
        elif tag.name == "</answer>":
            if not has_open_frame:
                return [], "stray_tag"
            has_open_frame = False
        elif tag.name in _CLOSING_TAG:
            missing = "unfinished_thinking"
    if has_open_frame:
        return [], "nested_answer"
    return answers, None if answers else missing


def _goes_on(text: str, start: int, answer_format: AnswerFormat) -> bool:
    """Return whether the text goes on from an answer to the next listed tag."""
    next_starts = (
        tag.start
        for tag in _message_tags(text, start, answer_format)
        if tag.kind in _LISTED_KINDS and tag.name != "</answer>"
    )
    rest = text[start : next(next_starts, len(text))].replace("</answer>", "")
    is_long = len(rest.split(None, MAX_CLOSING_WORDS)) > MAX_CLOSING_WORDS
    return is_long or _TAKES_BACK.match(rest) is not None
