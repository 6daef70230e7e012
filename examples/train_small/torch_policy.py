"""A causal language model of transformers as a policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging

from examples.train_small.policy import Rows, Sample
from examples.train_small.sampling import sample
from rg_env.errors import RunFailed

OPTIMISER_FILE = "optimiser.pt"

MOST_PADDED = 1.5
"""The longest row of a pass is at most this many times as long as its shortest."""

torch.set_flush_denormal(True)  # what an optimiser forgets would cost the most time
logging.disable_progress_bar()  # weights are read and written at every step


class TorchPolicy:
    """A model with AdamW and a bound on the gradient's norm.

    Its logits have to be the output embedding times the last hidden state, as in Llama
    and Qwen: only those of tokens that count are computed. A model whose logits are
    scaled or capped after that is refused.

    Args:
        folder: Of the model, or its name on the Hugging Face hub.
        device: `cpu`, `cuda` or another one of torch.
        tokens_at_once: Tokens of one forward pass at most, but for a single longer row;
            a step adds up the gradients of as many passes as its rows need.
        longest_gradient: A gradient with a larger norm is scaled down to it.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        device: str = "cpu",
        tokens_at_once: int = 4096,
        longest_gradient: float = 1.0,
    ) -> None:
        self.learning_rate = 0.0
        self._device = torch.device(device)
        self._tokens_at_once = tokens_at_once
        self._longest_gradient = longest_gradient
        self._begin_at(folder)
        self._check_logits()

    def sample(
        self,
        prompts: Rows,
        max_tokens: int,
        temperature: float,
        stop_ids: frozenset[int],
        seed: int,
    ) -> list[Sample]:
        """Complete every prompt once; see `Policy`."""
        return sample(self._model, prompts, max_tokens, temperature, stop_ids, seed)

    @torch.no_grad()
    def log_probabilities(
        self, rows: Rows, chosen: Sequence[np.ndarray] | None = None
    ) -> list[np.ndarray]:
        """Say how likely tokens are, given those before them; see `Policy`."""
        result = [np.zeros(len(row), np.float32) for row in rows]
        masks = chosen or [np.ones(len(row), bool) for row in rows]
        for part in self._parts(rows):
            found = self._logprobs([rows[i] for i in part], [masks[i] for i in part])
            ends = np.cumsum([masks[i][1:].sum() for i in part])
            parts = np.split(found.cpu().numpy(), ends[:-1])
            for i, values in zip(part, parts, strict=True):
                result[i][1:][masks[i][1:]] = values
        return result

    def step(self, rows: Rows, weights: Sequence[np.ndarray]) -> float:
        """Take one step up the sum of weight x log-probability; see `Policy`."""
        for group in self._optimiser.param_groups:
            group["lr"] = self.learning_rate
        self._optimiser.zero_grad()
        pairs = [
            pair for pair in zip(rows, weights, strict=True) if np.any(pair[1][1:])
        ]
        for part in self._parts([row for row, _ in pairs]):
            masks = [pairs[i][1] != 0 for i in part]
            logprobs = self._logprobs([pairs[i][0] for i in part], masks)
            factors = np.concatenate(
                [pairs[i][1][1:][mask[1:]] for i, mask in zip(part, masks, strict=True)]
            )
            (-(logprobs * torch.from_numpy(factors).to(logprobs)).sum()).backward()
        norm = torch.nn.utils.clip_grad_norm_(
            self._model.parameters(), self._longest_gradient
        )
        if not norm.isfinite():
            raise RunFailed("the gradient is not finite; the weights stay as they were")
        self._optimiser.step()
        return float(norm)

    def save(self, folder: Path, *, with_optimiser: bool = False) -> None:
        """Write the weights as an inference server reads them; see `Policy`."""
        self._model.save_pretrained(folder)
        if with_optimiser:
            torch.save(self._optimiser.state_dict(), folder / OPTIMISER_FILE)

    def load(self, folder: Path) -> None:
        """Take weights that were saved; see `Policy`."""
        self._begin_at(folder)
        state = folder / OPTIMISER_FILE
        if state.is_file():
            self._optimiser.load_state_dict(
                torch.load(state, map_location=self._device, weights_only=True)
            )

    def _begin_at(self, folder: str | Path) -> None:
        self._model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32
        ).to(self._device)
        # Without dropout: a log-probability has to be the one that was sampled with.
        self._model.eval()
        # Weight decay would pull at weights that no token of a small batch has moved.
        self._optimiser = torch.optim.AdamW(
            self._model.parameters(), lr=self.learning_rate, weight_decay=0.0
        )

    @torch.no_grad()
    def _check_logits(self) -> None:
        """Refuse a model whose logits are made in another way.

        Raises:
            RunFailed: They are.
        """
        row = list(range(1, 9))
        ids = torch.tensor([row], device=self._device)
        logprobs = self._model(input_ids=ids).logits.float().log_softmax(-1)
        right = logprobs[0, :-1].gather(1, ids[0, 1:, None])[:, 0]
        found = self._logprobs([row], [np.ones(len(row), bool)])
        if not torch.allclose(found, right, atol=1e-3):
            raise RunFailed(
                "the logits of this model are not its output embedding times its last"
                " hidden state, which is how they are computed here"
            )

    def _parts(self, rows: Rows) -> Iterator[list[int]]:
        """Yield the places of rows of like length, as many as go into one pass."""
        part: list[int] = []
        for place in sorted(range(len(rows)), key=lambda i: len(rows[i])):
            length = len(rows[place])
            if part and (
                length * (len(part) + 1) > self._tokens_at_once
                or length > MOST_PADDED * len(rows[part[0]])
            ):
                yield part
                part = []
            part.append(place)
        if part:
            yield part

    def _logprobs(self, rows: Rows, masks: Sequence[np.ndarray]) -> torch.Tensor:
        """Return the log-probabilities of the masks' tokens, row after row.

        The first token of a row has none, whatever its mask says. Rows are padded at
        their ends, which no token looks at.
        """
        longest = max(map(len, rows))
        ids = torch.zeros((len(rows), longest), dtype=torch.long)
        chosen = torch.zeros((len(rows), longest), dtype=torch.bool)
        for i, (row, flags) in enumerate(zip(rows, masks, strict=True)):
            ids[i, : len(row)] = torch.tensor(row)
            chosen[i, : len(row)] = torch.from_numpy(flags)
        ids, chosen = ids.to(self._device), chosen[:, 1:].to(self._device)
        hidden = self._model.base_model(input_ids=ids, use_cache=False)
        before = hidden.last_hidden_state[:, :-1][chosen]
        logits = self._model.get_output_embeddings()(before).float()
        return -torch.nn.functional.cross_entropy(
            logits, ids[:, 1:][chosen], reduction="none"
        )
