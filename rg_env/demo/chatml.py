"""The chat format of the demo tokenizer: ChatML without a BOS token.

One message is `<|im_start|>role`, a newline, the content, `<|im_end|>`, a newline; a
prompt ends with an opened assistant message. `CHAT_TEMPLATE` is the same format in the
template language of tokenizers, and a test holds the two together.

Contents are not escaped: a message that itself holds `<|im_end|>` is cut there.
"""

from collections.abc import Sequence

START = "<|im_start|>"
END = "<|im_end|>"
PAD = "<|pad|>"
SPECIAL_TOKENS = (START, END, PAD)

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] }}"
    "{{ '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

_USER_HEAD = f"{START}user\n"


def build_prompt(messages: Sequence[tuple[str, str]]) -> str:
    """Write messages as one prompt that ends with an opened assistant message.

    Args:
        messages: (role, content) of each message, in order.
    """
    body = "".join(f"{START}{role}\n{content}{END}\n" for role, content in messages)
    return f"{body}{START}assistant\n"


def extract_last_user_message(prompt: str) -> str:
    """Cut the last user message out of a prompt.

    Returns:
        Its content, unchanged; a prompt that is not in this format is taken whole, as a
        question asked without a template.
    """
    head = prompt.rfind(_USER_HEAD)
    if head < 0:
        return prompt
    content = prompt[head + len(_USER_HEAD) :]
    return content.split(END, 1)[0]
