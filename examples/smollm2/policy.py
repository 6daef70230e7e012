"""SmolLM2-135M-Instruct as a policy of the small trainer, on a GPU if there is one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

from examples.smollm2.model import save_base
from examples.studies.cells import FOLDER
from examples.train_small.policy import END, Policy, Rollouts, Tokenizer

BASE = FOLDER / "base"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class BytePairs(Tokenizer):
    """The tokenizer of the model, whose first token is its end of a text."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids up to the first `END`."""
        ids = ids[: ids.index(END)] if END in ids else ids
        return str(self._tokenizer.decode(ids))


class SmolLM2(Policy):
    """The model without a chat template: a completion follows its question."""

    learning_rate = 1e-5
    warm_learning_rate = 1e-4
    warm_steps = 600

    def __init__(self, base: Path = BASE) -> None:
        if not base.is_dir():
            save_base(base)
        self.tokenizer = BytePairs(AutoTokenizer.from_pretrained(base))
        read = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
        self.model = read.to(DEVICE)
        torch.set_float32_matmul_precision("high")

    @classmethod
    def new(cls, items: Iterable[Any], completions: Iterable[str], seed: int) -> Any:
        """Return the model before its warm start."""
        return cls()

    def save(self, path: Path) -> None:
        """Write the weights."""
        torch.save(self.model.state_dict(), path)

    @classmethod
    def load(cls, path: Path) -> SmolLM2:
        """Return what was saved."""
        policy = cls()
        policy.model.load_state_dict(torch.load(path, map_location=DEVICE))
        return policy

    @torch.no_grad()
    def sample(
        self,
        questions: Sequence[str],
        count: int,
        max_new_tokens: int,
        rng: torch.Generator | None,
    ) -> Rollouts:
        """Complete each question `count` times; see `Policy`."""
        prompts, is_padding = self.tokenizer.padded(questions, "left")
        how: dict[str, Any] = {"do_sample": False}
        if rng is not None:
            drawn = torch.randint(2**31, (), generator=rng)
            torch.manual_seed(int(drawn))  # which `generate` draws from
            how = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0}
        made = self.model.eval().generate(
            prompts.to(DEVICE),
            attention_mask=(~is_padding).long().to(DEVICE),
            max_new_tokens=max_new_tokens,
            num_return_sequences=count,
            eos_token_id=END,
            pad_token_id=END,
            **how,
        )
        ids = made[:, prompts.shape[1] :].cpu().view(len(questions), count, -1)
        is_end = ids == END
        is_token = is_end.cumsum(-1) - is_end.long() == 0
        texts = [[self.tokenizer.decode(row) for row in g] for g in ids.tolist()]
        return Rollouts(prompts, is_padding, ids, is_token, texts)

    def logprobs(self, prompts: Tensor, is_padding: Tensor, ids: Tensor) -> Tensor:
        """Return the log-probabilities of completions, (B, G, C), with gradients."""
        shape = ids.shape
        count = ids.shape[2]
        by_row = prompts[:, None].expand(-1, shape[1], -1)
        rows = torch.cat([by_row, ids[..., :-1]], -1).flatten(0, 1).to(DEVICE)
        read = (~is_padding)[:, None].expand(-1, shape[1], -1)
        known = torch.cat([read, torch.ones_like(ids[..., :-1]).bool()], -1)
        mask = known.flatten(0, 1).long().to(DEVICE)
        places = (mask.cumsum(-1) - 1).clamp(min=0)
        made = self.model.train(torch.is_grad_enabled())(
            rows, attention_mask=mask, position_ids=places, logits_to_keep=count
        )
        chosen = ids.flatten(0, 1)[..., None].to(DEVICE)
        told = made.logits.log_softmax(-1).gather(-1, chosen)[..., 0]
        return told.view(shape).cpu()
