"""The system prompt; it asks for an answer in the form that `extraction` expects."""

from collections.abc import Sequence

from rg_env.reward.extraction import AnswerFormat

SYSTEM_PROMPT = """\
You solve reasoning problems. First work the problem out inside a block that starts \
with <think> and ends with </think>: be thorough, check your steps and try another \
way when one fails. After the thinking block, give your final answer exactly once, \
inside <answer> and </answer>.

Rules for the answer:
- Put nothing but the final answer between the tags: no explanation and no units \
that were not asked for.
- If the problem shows the form an answer should have, follow that form exactly.
- Use the answer tags only once, and never inside the thinking block.

Example:
<think>
The problem asks for 2 + 3. Adding them gives 5.
</think>
The sum of the two numbers is 5.
<answer>5</answer>"""
"""The built-in system prompt; the setting `system_prompt` replaces it."""

_BOXED_WORDING = {
    "inside <answer> and </answer>.": r"inside \boxed{}.",
    "between the tags": "between its braces",
    "Use the answer tags": r"Use \boxed{}",
    "<answer>5</answer>": r"\boxed{5}",
}


def built_in_prompt(answer_format: AnswerFormat) -> str:
    """Return the built-in system prompt for an answer format."""
    prompt = SYSTEM_PROMPT
    for tags, boxed in _BOXED_WORDING.items() if answer_format == "boxed" else ():
        prompt = prompt.replace(tags, boxed)
    return prompt


def list_prompts(
    setting: str | Sequence[str] | None, answer_format: AnswerFormat
) -> Sequence[str]:
    """Return the system prompts in the setting `system_prompt`.

    The setting is one prompt, several of them, or None for the built-in prompt.
    """
    if setting is None:
        return [built_in_prompt(answer_format)]
    return [setting] if isinstance(setting, str) else setting


def choose_prompt(
    setting: str | Sequence[str] | None, answer_format: AnswerFormat, seed: int
) -> str:
    """Return the system prompt that the seed of an item chooses.

    Example:
        >>> [choose_prompt(["Think.", "Answer."], "tags", seed) for seed in (7, 8)]
        ['Answer.', 'Think.']
    """
    prompts = list_prompts(setting, answer_format)
    return prompts[seed % len(prompts)]
