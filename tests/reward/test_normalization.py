"""Normalization removes formatting around an answer, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rg_env.reward.normalization import MAX_ROUNDS, RULES, build_formatting_remover
from rg_env.reward.score import Score, ScoringRules, better_score

TABLE = r"""
**5** ⇒ 5
*5* ⇒ 5
***5*** ⇒ 5
__5__ ⇒ 5
`5` ⇒ 5
```↵5↵``` ⇒ 5
```json↵5↵``` ⇒ 5
$5$ ⇒ 5
\[ 5 \] ⇒ 5
\( 5 \) ⇒ 5
\boxed{5} ⇒ 5
$\boxed{\text{5}}$ ⇒ 5
5. ⇒ 5
"5" ⇒ 5
**5**. ⇒ 5
**5.** ⇒ 5
= 5 ⇒ 5
5, ⇒ 5
``5`` ⇒ 5
The answer is 5 ⇒ 5
The final answer is: 5. ⇒ 5
**Answer:** 5 ⇒ 5
Answer:↵5 ⇒ 5
**Answer: 5** ⇒ 5
x = 5 ⇒ 5
\boxed{5}. ⇒ 5
f(x) = 5 ⇒ 5
Therefore, 5 ⇒ 5
**Final Answer**↵↵\boxed{5} ⇒ 5
Here is the answer:↵↵```↵5↵``` ⇒ 5
The shortest path is 5. ⇒ 5
Sorted words: 5 ⇒ 5
### 5 ⇒ 5
* 5 ⇒ 5
<b>5</b> ⇒ 5
<p><code>5</code></p> ⇒ 5
5</s> ⇒ 5
5<|im_end|>↵<|endoftext|> ⇒ 5
5 [EOS] ⇒ 5
{"answer": "5"} ⇒ 5
{"final_answer": 5} ⇒ 5
{'Result': '5'} ⇒ 5
5
A B C
[1, 2, 3]
1, 234
a — b
is that so?
the answers were two
x = y = 5
5 ...
- 5
- x + 1
- sin(x)
> 5
not = 5
minus = 5
x == 5
1**2**3
2**3*x**4
True = False
mother = husband
G6 = G8
a1 = b2
A = B
on: off
on = off
{"question": "5"}
$5$x
\cancel{5}
<b>5</i>
<b>5</b> <b>6</b>
5 (five)
{"answer": 5, "or": 6}
{"answer": 5} {"answer": 6}
[NOT]
f{x}
"a", "b"
'a', 'b'
$a$, $b$
__Q_↵_Q__
down => up
$
**
""
1,234,567 ⇒ 1234567
35^\circ ⇒ 35°
\left(1, 2\right) ⇒ (1, 2)
274 \text{ legs} ⇒ 274  legs
\displaystyle \frac{1}{2} ⇒ 1/2
P /\ Q \, R ⇒ P /\ Q   R
A\# ⇒ A#
**Zoey** is a **knave** ⇒ Zoey is a knave
`A#` `B#` ⇒ A# B#
"["a", "b"]" ⇒ ["a", "b"]
-12,345.6 ⇒ -12345.6
'don't' ⇒ don't
_a_b_ ⇒ a_b
- dog ⇒ dog
{"answer": [1, "a"]} ⇒ [1, "a"]
"""
"""Answers with and without formatting; those without an arrow stay unchanged."""

PAIRS = [
    line.replace("↵", "\n").partition(" ⇒ ") for line in TABLE.strip().splitlines()
]
OTHER_FIVES = [
    "\u201c5\u201d",
    "5\xa0",
    "\ufeff5",
    "\u201e5\u201c",
    "\xab5\xbb",
    "\xab 5 \xbb.",
    "Answer\uff1a\uff15",
    "\u2022 5",
    "5<\uff5cend\u2581of\uff5c>",
]

OF_GOLD = r"""
He came. ¦ **She came.** ¦ She came.
"abc" ¦ `"abx"` ¦ "abx"
x = 5 ¦ **x = 6** ¦ x = 6
$5$ ¦ $\boxed{6}$ ¦ 6
It is. ¦ \boxed{It was.}. ¦ It was.
It is so. ¦ The answer is: It was so. ¦ It was so.
{"answer": 5} ¦ {"answer": 6} ¦ {"answer": 6}
`a` b ¦ **`c` b** ¦ `c` b
**b** ¦ **Answer: c** ¦ c
1,000 ¦ `1,001` ¦ 1,001
_ Q↵Q _ ¦ ```↵_ Q↵Q _↵``` ¦ _ Q↵Q _
"""
"""Reference, answer, and the answer without formatting: signs of the reference stay."""

WRITTEN = [
    *(("7", answer, read or answer) for answer, _, read in PAIRS),
    *(("7", text, "5") for text in OTHER_FIVES),
    ("7", "", ""),
    ("7", "\u22125", "-5"),
    ("7", "\u20135", "-5"),
    ("7", "x \u2212 3", "x - 3"),
    ("7", "35.5\xba", "35.5\xb0"),
    ("7", "1 2 \r\n3 4\r", "1 2\n3 4"),
    *(line.replace("↵", "\n").split(" ¦ ") for line in OF_GOLD.strip().splitlines()),
]
"""References, answers as they are written, and the same without formatting."""


@pytest.mark.parametrize(("gold", "answer", "read"), WRITTEN)
def test_only_formatting_is_removed_from_an_answer(gold, answer, read):
    assert build_formatting_remover(gold)(answer) == read


@given(st.text(alphabet="`*_$\\{}()[]\"'.=- \n5ax\u200b\u2212", max_size=60))
def test_gold_answers_stay_as_they_are(text):
    gold = text.strip()
    assert build_formatting_remover(gold)(gold) == gold


@given(st.text(alphabet="`*_$\\{}()[]\"'.=- \n5ax,:#<>isI\u200b\u2212", max_size=40))
def test_an_answer_that_any_rule_changes_is_changed(text):
    text = text.strip()
    for rule in RULES:
        assert rule(text) == text or build_formatting_remover("7")(text) != text


@given(st.text(max_size=200))
def test_no_rule_makes_a_text_longer(text):
    assert all(len(rule(text)) <= len(text) for rule in RULES)


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        *("*", "`", "$", "\\text{", "{", "(", "```\n", "answer is ", "= ", " "),
        *("\u2212", "** a", "`a ", "\\left", "1,234", "here is the final answer "),
    ],
)
@pytest.mark.parametrize("end", ["", "x", "**", "}"])
def test_no_text_takes_long(part, end):
    """A quadratic rule would take minutes."""
    text = "```" + part * 20_000 + end
    assert len(build_formatting_remover(None)(text)) <= len(text)
    assert len(build_formatting_remover(None)(part * 20_000 + end)) <= len(text)


def test_many_layers_of_formatting_end_at_a_bound():
    text = "5"
    for _ in range(10 * MAX_ROUNDS):
        text = f"\\text{{{text}}}."
    assert build_formatting_remover(None)(text).startswith("\\text{")


def best(answer, **scored):
    return better_score(
        answer, build_formatting_remover("7"), lambda text: scored[f"of_{text}"]
    )


BETTER = """
0.0 wrong        1.0 right    normalized
0.5 partial      0.0 wrong    written
0.2 partial      0.5 partial  normalized
0.5 partial      0.5 partial  written
0.0 wrong        0.0 rejected written
0.0 rejected     0.0 wrong    normalized
0.0 scorer_error 0.0 wrong    normalized
"""
"""The scores of the original and of the normalized answer, and the one that counts."""


@pytest.mark.parametrize("row", BETTER.strip().splitlines())
def test_the_higher_score_counts_and_of_equal_ones_that_of_a_parsed_text(row):
    value, outcome, other_value, other_outcome, counts = row.split()
    written = Score(float(value), outcome, "5.")
    normalized = Score(float(other_value), other_outcome, "5.", normalized=True)
    found = best("5.", **{"of_5.": written, "of_5": normalized})
    assert found == (normalized if counts == "normalized" else written)


@pytest.mark.parametrize(("answer", "value"), [("5", 0.5), ("5.", 1.0)])
def test_plain_answers_and_right_ones_are_scored_once(answer, value):
    found = best(answer, of_5=Score(value, "partial", "5"))
    assert found.normalized == (answer != "5")


@pytest.mark.parametrize(
    ("task", "written"), [("codeio", ['"5"', '"5"']), ("lcm", ["5", "5"])]
)
def test_a_quoted_number_is_a_text_in_json_and_formatted_elsewhere(task, written):
    normalized = ScoringRules().build_normalizer(task, {"question": "", "answer": "5"})
    assert [normalized('"5"'), normalized('**"5"**')] == written


def test_answers_stay_as_they_are_without_normalization():
    normalized = ScoringRules(normalize_answers=False).build_normalizer("lcm", {})
    assert normalized("**5**") == "**5**"
