"""Extraction: one answer outside the thinking, or the reason why there is none."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rg_env.reward.extraction import (
    FORMAT_FAILURES,
    MAX_CLOSING_WORDS,
    THINKING,
    Extraction,
    extract_answer,
    opens_thinking,
)
from rg_env.reward.prompt import SYSTEM_PROMPT, built_in_prompt

TAGS = [*THINKING, *THINKING.values(), "<answer>", "</answer>"]
ODD_TEXT = ["5", " ", "\n", "<", ">", "</", "<answer >", "<Answer>", "\x00", "\ud800"]

any_text = st.one_of(st.text(), st.lists(st.sampled_from(TAGS + ODD_TEXT)).map("".join))
plain_text = st.text(alphabet=st.characters(exclude_characters="<>[◁"))


def answer_of(text, **settings):
    return extract_answer(text, **settings).answer


def failure_of(text, **settings):
    return extract_answer(text, **settings).failure


# -- the answer ------------------------------------------------------------------------


FINAL = "<|start|>assistant<|channel|>final<|message|>"
"""The header of the final message of gpt-oss, which is no text."""


@pytest.mark.parametrize(("opening", "closing"), THINKING.items())
def test_a_draft_in_the_thinking_of_any_model_is_no_answer(opening, closing):
    draft = f"{opening}maybe <answer>4</answer>"
    final = f"{FINAL}<answer>5</answer>"
    assert answer_of(f"{draft}{closing}{final}") == "5"
    assert answer_of(f"{draft}{closing}{draft}{closing}{final}") == "5"
    assert failure_of(draft) == "unfinished_thinking"
    assert failure_of(f"<answer>{opening}4{closing}</answer>") == "nested_answer"


HEADERS = """
<|channel|> analysis <|message|> ¦ <|end|>
<|channel|>analysis to=python code<|message|> ¦
<|start|>assistant to=functions.x<|channel|>commentary json<|message|> ¦ <|call|>
<|channel|>commentary to=functions.x <|constrain|>json<|message|> ¦ <|call|>
<|channel|>analysis<|message|> ¦
 to=self<|message|> ¦ <|eom|><|start|>assistant to=user<|message|>
<think:opensource> ¦ </think:opensource>
<Think> ¦ </THINK>
[think] ¦ [/Think]
analysisWe ask:  ¦ assistantfinal
commentary to=functions.x json{}assistantanalysis ¦ assistantfinal
<tool_call> ¦ </tool_call>
<|python_tag|> ¦ <|eom_id|>
<|START_ACTION|> ¦ <|END_ACTION|>
<|tool_calls_section_begin|> ¦ <|tool_calls_section_end|>
"""
"""Headers and tags before text that is not final, and what ends this text."""


@pytest.mark.parametrize("row", HEADERS.strip("\n").splitlines())
def test_headers_as_models_write_them_hide_the_answers_after_them(row):
    opening, closing = re.split(" ¦ ?", row)
    draft = f"{opening}maybe <answer>4</answer>"
    final = f"{FINAL}<answer>5</answer><|return|>"
    if closing == "assistantfinal":
        final = "<answer>5</answer>"
    assert answer_of(f"{draft}{closing}{final}") == "5"
    if "{}" not in opening:
        assert failure_of(f"{draft} so") == "unfinished_thinking"


def test_the_example_in_the_system_prompt_is_one_that_extraction_accepts():
    assert answer_of(SYSTEM_PROMPT.partition("Example:")[2]) == "5"
    boxed = built_in_prompt("boxed")
    assert "tag" not in boxed and "answer>" not in boxed
    assert answer_of(boxed.partition("Example:")[2], answer_format="boxed") == "5"


FOREIGN = {
    **{f"<{name}>": f"</{name}>" for name in ("scratchpad", "PLAN", "思考", "step_1")},
    "<function=calc>{": "}</function>",
    '<minimax:tool_call>\n<invoke name="x">': "</invoke>\n</minimax:tool_call>",
    "<｜DSML｜function_calls>": "</｜DSML｜function_calls>",  # noqa: RUF001
    "<|tool_call_start|>": "<|tool_call_end|>",
    "<start_function_call>": "<end_function_call>",
    "[reflect]": "[/reflect]",
    "<details><summary>How</summary>": "</details>",
}


@pytest.mark.parametrize(("opening", "closing"), FOREIGN.items())
def test_an_unlisted_element_holds_no_final_answer(opening, closing):
    draft = f"{opening}maybe <answer>4</answer>{closing}"
    assert failure_of(f"{draft} It is 5.") == "no_answer"
    assert answer_of(f"{draft}<answer>5</answer>") == "5"
    assert answer_of(f"<answer>5</answer>{draft}") == "5"
    assert failure_of(f"<answer>5</answer> wait {draft}") == "unfinished_thinking"
    assert answer_of(f"<answer>{opening}5{closing}</answer>") == f"{opening}5{closing}"


AROUND = """
<b>{}</b>
<p class='x'>It is {}</p>
<response>↵{}↵</response>
<|im_start|>assistant↵{}<|im_end|>
<final_answer>{}</final_answer>
for x<y and y>3, {}
a vector<int> or <vector> {}
<plan> {} </step>
<step>1</step> {} <step>2</step>
[b] {} [c]
`<plan>` {} `</plan>`
<think>x</think>↵<answer>↵So {}.↵</answer>
<answer>↵{}↵</answer>
"""


@pytest.mark.parametrize("line", AROUND.strip().splitlines())
def test_elements_of_the_message_may_hold_the_answer(line):
    text = line.format("<answer>5</answer>").replace("↵", "\n")
    assert answer_of(text) == "5"


NO_THINKING = """
**Thinking:** 2 + 3 = 5.
### Thought process
Thought: add them.
think
Analysis: 2 + 3 is 5.
analysis↵2 + 3
Reasoning: so
My thought process: 2 + 3.
assistantfinal
Commentary: easy.
The text "<think>" has 7 characters.
It quotes `</think>` and '[THINK]'.
The channel is <|channel|>, it says.
to=5 and from=3
I think> so, <thin>
<analysis of 2 + 3>
x <think
[thinking]
<b>Thinking</b>
think<|end|>
The words are thought, reasoning and </tool_call>.
"""


@pytest.mark.parametrize("line", NO_THINKING.strip().splitlines())
def test_words_about_thinking_are_text(line):
    text = line.replace("↵", "\n")
    assert answer_of(f"{text}\n<answer>5</answer>") == "5"
    assert answer_of(f"<answer>5</answer>\n{text}") == "5"
    assert answer_of(f"<answer>{text}</answer>") == text


@pytest.mark.parametrize(
    "rest",
    [
        *(".", "```", "</end_of_thought>", "I hope this helps!", "Order matters here."),
        *("Let me know if you need more.", "Not 6, as 6 is even."),
        " ".join(["word"] * MAX_CLOSING_WORDS),
    ],
)
def test_closing_words_may_follow_the_answer(rest):
    assert answer_of(f"<answer>5</answer> {rest}") == "5"


GOING_ON = """
 but wait
? Hmm, no
↵↵Wait, that's wrong.
. Let me check.
 or 6
. However, 6
... no, 6
 Scratch that, 4
↵Sorry, I meant 4.
 Oops: 4
. I mean 4
"""


@pytest.mark.parametrize(
    "rest",
    [*GOING_ON.strip("\n").splitlines(), " ".join(["word"] * (MAX_CLOSING_WORDS + 1))],
)
@pytest.mark.parametrize("opening", ["", "<ponder>", "<|begin_plan|>"])
def test_an_answer_is_not_final_if_the_text_goes_on(opening, rest):
    text = f"{opening}so <answer>3</answer>{rest}".replace("↵", "\n")
    assert failure_of(text) == "unfinished_thinking"
    assert answer_of(f"<think>{text}</think><answer>5</answer>") == "5"


OPENED = [
    "maybe <answer>4</answer></think><answer>5</answer>",
    "<think>2 + 3</think><answer>5</answer>",
    "a</think>b<think><answer>4</answer></think><answer>5</answer>",
    *(f"<answer>4</answer>{end}<answer>5</answer>" for end in set(THINKING.values())),
]


@pytest.mark.parametrize("text", sorted(OPENED))
def test_the_only_answer_behind_the_template_s_thinking_counts(text):
    assert answer_of(text, thinking_open=True) == "5"


def test_the_answer_is_stripped_and_keeps_its_inner_whitespace():
    assert answer_of("<answer>\r\n\t 1 2\n3 4 \n</answer>") == "1 2\n3 4"


def test_an_empty_answer_is_an_answer():
    assert extract_answer("<answer> \n\t </answer>") == Extraction("", None)
    assert extract_answer(r"\boxed{}", answer_format="boxed") == Extraction("", None)
    assert failure_of("") == "no_answer"


@pytest.mark.parametrize("content", ["a\x00b", "\ud800", "x < 3 > y", "<b>5</b>", "</"])
def test_text_that_is_no_tag_stays_unchanged(content):
    assert answer_of(f"<answer>{content}</answer>") == content


# -- thinking --------------------------------------------------------------------------


def test_the_template_s_thinking_must_end():
    for text in ("<answer>5</answer>", "", "<think>"):
        assert failure_of(text, thinking_open=True) == "unfinished_thinking"


# -- failures --------------------------------------------------------------------------


EXTRACTED = {
    "tags": r"""
<think>2 + 3</think> It is 5. <answer>5</answer> ⇒ 5
It is <answer>5</answer>. ⇒ 5
<answer>5</answer><think>let me check</think> ⇒ 5
<think><answer>3</answer></think><think><answer>4</answer></think><answer>5</answer> ⇒ 5
maybe <answer>4</answer></think><answer>5</answer> ⇒ 5
a</think><answer>4</answer></think><answer>5</answer> ⇒ 5
<|channel|>commentary<|message|><answer>4</answer><|call|><answer>5</answer> ⇒ 5
<think>a</think><answer>5</answer></think> ⇒ 5
<answer>5</answer><think>or <answer> ⇒ 5
<answer>4</answer></thinking><answer>5</answer> ⇒ 5
<thinking>a</thinking>[/THINK]<|end|><answer>5</answer> ⇒ 5
<thinking>[/THINK]<|end|><answer>4</answer></thinking><answer>5</answer> ⇒ 5
<answer>5</answer><|end|> ⇒ 5
HERE is my thought process: <answer>4</answer>Here's my response:<answer>5</answer> ⇒ 5
<|think|><answer>4</answer><|end|><|begin|>assistant<|content|><answer>5</answer> ⇒ 5
It is 5. ⇒ no_answer
<think>5</think> ⇒ no_answer
<answer>5</answer></think> ⇒ no_answer
<think><answer>5</answer></think> So 5. ⇒ no_answer
<ANSWER>5</ANSWER> ⇒ no_answer
<answer >5</answer > ⇒ no_answer
< answer>5</ answer> ⇒ no_answer
<answer id="1">5</answer id="1"> ⇒ no_answer
[answer]5[/answer] ⇒ no_answer
<think> ⇒ unfinished_thinking
<think>hm <answer>5</answer> ⇒ unfinished_thinking
<think>a</think>b<think>c ⇒ unfinished_thinking
As asked I used <think>. <answer>5</answer> ⇒ unfinished_thinking
<think>a[/THINK]<answer>5</answer> ⇒ unfinished_thinking
analysisWe <answer>4</answer> ⇒ unfinished_thinking
analysisthe <answer>4</answer> ⇒ unfinished_thinking
commentary to=x json{"a": 1}<answer>4</answer> ⇒ unfinished_thinking
HERE is my thought process:↵<answer>4</answer> ⇒ unfinished_thinking
<think>a</think><answer>4</answer> wait </think><answer>5</answer> ⇒ several_answers
<answer>4</answer> no: <answer>5</answer> ⇒ several_answers
<answer>4</answer><|end|><answer>5</answer> ⇒ several_answers
<answer>5 ⇒ unclosed_answer
<answer>4</answer><answer>5 ⇒ unclosed_answer
<answer><answer>5</answer></answer> ⇒ nested_answer
<answer><think>2 + 3</think>5</answer> ⇒ nested_answer
<think>a</think><answer>5</think></answer> ⇒ nested_answer
<think>a</think>`<answer>` is: <answer>5</answer> ⇒ nested_answer
so <answer>↵<answer>5</answer>↵</answer> ⇒ nested_answer
<answer>↵<answer>5</answer> ⇒ nested_answer
<answer>↵<answer>↵<answer>5</answer></answer></answer> ⇒ nested_answer
5</answer> ⇒ stray_tag
<answer>5</answer></answer> ⇒ stray_tag
""",
    "boxed": r"""
So it is $\boxed{5}$. ⇒ 5
\[ \boxed {\frac{1}{2^{3}}} \] ⇒ \frac{1}{2^{3}}
\boxed{{"a": {"b": 1}}} ⇒ {"a": {"b": 1}}
\boxed{\{1, 2\}} ⇒ \{1, 2\}
\\boxed{1 \\ 2\\} ⇒ 1 \\ 2\\
{x} or } and \boxed{5} } ⇒ 5
<think>\boxed{4} or \boxed{</think>\boxed{ 5 } ⇒ 5
`\boxed{5}` ⇒ 5
<answer>\boxed{5}</answer> ⇒ 5
<answer>5</answer> ⇒ no_answer
\boxed5, \fbox{5} ⇒ no_answer
\boxed{4} and \boxed{5} ⇒ several_answers
\boxed{\boxed{5}} ⇒ nested_answer
\boxed{<think>a</think>5} ⇒ nested_answer
\boxed{\frac{1}{2} ⇒ unclosed_answer
\boxed{5\} ⇒ unclosed_answer
<think>so \boxed{5} ⇒ unfinished_thinking
\boxed{5} Wait, no. ⇒ unfinished_thinking
""",
}
"""Texts, and the answer or the reason why there is none."""


@pytest.mark.parametrize(
    ("answer_format", "line"),
    [
        (kind, line)
        for kind, rows in EXTRACTED.items()
        for line in rows.split("\n")[1:-1]
    ],
)
def test_a_text_has_an_answer_or_a_failure_says_why(answer_format, line):
    text, _, expected = line.replace("↵", "\n").partition(" ⇒ ")
    is_failure = expected in FORMAT_FAILURES
    wanted = (None, expected) if is_failure else (expected, None)
    assert extract_answer(text, answer_format=answer_format) == Extraction(*wanted)


# -- any text --------------------------------------------------------------------------


@pytest.mark.slow
@given(text=any_text, thinking_open=st.booleans())
def test_any_text_gives_a_stripped_part_of_itself_or_a_reason(text, thinking_open):
    found = extract_answer(text, thinking_open=thinking_open)
    answer = found.answer
    assert (answer is None) != (found.failure is None)
    if answer is not None:
        assert answer in text and answer == answer.strip()
        assert not any(tag in answer for tag in TAGS)


@pytest.mark.slow
@given(answers=st.lists(plain_text, max_size=4), between=plain_text)
def test_exactly_one_answer_is_an_answer(answers, between):
    text = between.join(f"<answer>{answer}</answer>" for answer in answers)
    expected = answers[0].strip() if len(answers) == 1 else None
    assert answer_of(between + text) == expected


def read_in_one_pass(piece, begin="", **settings):
    """Return the answer of a long text; a quadratic pass would take minutes."""
    began_s = time.process_time()
    answer = answer_of(begin + piece * (500_000 // len(piece)), **settings)
    assert time.process_time() - began_s < 5.0
    return answer


HOSTILE = """
<answer>
</answer>
<think>
</think>
<answer><think>
<
<answer
"<think>"
to=
<|channel|>final␣
<|channel|>a<|constrain|>
<|message|>
<|end|>
<think:x
t
analysis
assistantfinal
Here is my thought process:
Here is my␣
Here is my thought process: Here is my response
commentaryA
<a
<a␣
<a>
</a>
[a]
<|a
</plan><answer>5</answer><plan>
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [*HOSTILE.replace("␣", " ").strip("\n").split("\n"), "to=" + "x" * 90 + "<"],
)
def test_a_long_hostile_text_is_read_in_one_pass(piece):
    assert read_in_one_pass(piece) is None


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["\\", r"\boxed{", r"\boxed{}", r"\boxed ", "{}"])
@pytest.mark.parametrize("begin", ["", r"\boxed{"])
def test_a_long_row_of_boxes_is_read_in_one_pass(piece, begin):
    assert read_in_one_pass(piece, begin, answer_format="boxed") is None


# -- prompts ---------------------------------------------------------------------------


@pytest.mark.parametrize("opened", ["<think>", "<think>\n", "◁think▷", "<Think>\n\n"])
def test_a_prompt_that_ends_with_an_opening_tag_opens_the_thinking(opened):
    assert opens_thinking(f"Question\nassistant\n{opened}")
    assert not opens_thinking(f"{opened}\n\n</think>\n\n")
    assert not opens_thinking(f"{opened} I say")
