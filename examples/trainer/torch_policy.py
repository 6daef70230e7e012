"""A causal language model of transformers as a policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging

from examples.trainer.policy import Derivative, Rows, TrainingError

OPTIMISER_FILE = "optimiser.pt"
WEIGHTS = "*.safetensors*"
"""The files that hold weights, and their index."""

MAX_PADDED = 1.5
"""The longest row of a pass is at most this many times as long as its shortest."""

MAX_GRAD_NORM = 1.0
"""A gradient with a larger norm is scaled down to it."""

torch.set_flush_denormal(True)  # what an optimiser forgets would cost the most time
logging.disable_progress_bar()  # weights are read and written at every step


class TorchPolicy:
    """A model with AdamW and a bound on the gradient's norm, in float32.

    Its logits have to be the output embedding times the last hidden state, as in Llama
    and Qwen: only those of tokens that are trained on are computed. A model whose
    logits are scaled or capped after that is refused.

    Args:
        folder: Of the model. Weights are handed over in the precision that it has.
        device: `cpu`, `cuda` or another one of torch.
        tokens_at_once: Tokens of one forward pass at most, but for a single longer row;
            a step adds up the gradients of as many passes as its rows need.
    """

    def __init__(
        self,
        folder: Path,
        *,
        device: str = "cpu",
        tokens_at_once: int = 4096,
    ) -> None:
        self._device = torch.device(device)
        self._tokens_at_once = tokens_at_once
        self._begin_at(folder)
        config = AutoConfig.from_pretrained(folder).get_text_config()
        self._served_as = config.dtype or torch.float32
        self._check_logits()

    def backward(
        self,
        rows: Rows,
        trained: Sequence[np.ndarray],
        derivative: Derivative,
        temperatures: Sequence[float] | None = None,
    ) -> float:
        """Compute the gradient of a loss; see `Policy`."""
        self._optimiser.zero_grad()
        entropy = 0.0
        tokens = 0
        for part in self._parts(rows):
            logits, targets = self._logits(
                [rows[i] for i in part], [trained[i] for i in part]
            )
            if temperatures is not None:
                counts = [int(trained[i].sum()) for i in part]
                divisors = np.repeat([temperatures[i] for i in part], counts)
                logits = logits / torch.from_numpy(divisors).to(logits)[:, None]
            logprobs = logits.log_softmax(-1)
            chosen = logprobs.gather(1, targets[:, None])[:, 0]
            values = derivative(part, chosen.detach().cpu().double().numpy())
            chosen.backward(torch.from_numpy(values).to(chosen))
            entropy += float(torch.special.entr(logprobs.detach().exp()).sum())
            tokens += len(targets)
        return entropy / tokens

    def step(self, learning_rate: float) -> float:
        """Take an optimiser step down that gradient; see `Policy`."""
        for group in self._optimiser.param_groups:
            group["lr"] = learning_rate
        norm = clip_grad_norm_(self._model.parameters(), MAX_GRAD_NORM)
        if not norm.isfinite():
            raise TrainingError("the gradient is not finite; no step was taken")
        self._optimiser.step()
        return float(norm)

    def save_weights(self, folder: Path) -> None:
        """Write the weights as an inference server reads them; see `Policy`."""
        state = self._model.state_dict()
        self._model.save_pretrained(
            folder, state_dict={n: w.to(self._served_as) for n, w in state.items()}
        )
        for file in set(folder.iterdir()) - set(folder.glob(WEIGHTS)):
            file.unlink()  # what the folder says of the model stays as it is

    def save(self, folder: Path) -> None:
        """Write all that the next step depends on; see `Policy`."""
        self._model.save_pretrained(folder)
        torch.save(self._optimiser.state_dict(), folder / OPTIMISER_FILE)

    def load(self, folder: Path) -> None:
        """Take what was saved; see `Policy`."""
        self._begin_at(folder)
        state = folder / OPTIMISER_FILE
        if state.is_file():
            self._optimiser.load_state_dict(
                torch.load(state, map_location=self._device, weights_only=True)
            )

    def _begin_at(self, folder: Path) -> None:
        try:
            model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        except (OSError, ValueError) as error:
            raise TrainingError(f"{folder} holds no model: {error}") from error
        self._model: PreTrainedModel = model.to(self._device)
        # Without dropout: a log-probability has to be the one that was sampled with.
        self._model.eval()
        # Weight decay would pull at weights that no token of a small batch has moved.
        self._optimiser = torch.optim.AdamW(
            self._model.parameters(), lr=0.0, weight_decay=0.0
        )

    @torch.no_grad()
    def _check_logits(self) -> None:
        """Refuse a model whose logits are made in another way.

        Raises:
            TrainingError: They are.
        """
        row = list(range(1, 9))
        ids = torch.tensor([row], device=self._device)
        right = self._model(input_ids=ids).logits[0, :-1].float()
        found, _ = self._logits([row], [np.arange(len(row)) > 0])
        if not torch.allclose(found, right, atol=1e-3):
            raise TrainingError(
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
                or length > MAX_PADDED * len(rows[part[0]])
            ):
                yield part
                part = []
            part.append(place)
        if part:
            yield part

    def _logits(
        self, rows: Rows, trained: Sequence[np.ndarray]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the logits for N trained tokens, row after row, and these tokens.

        Rows are padded at their ends, which no token looks at.

        Returns:
            Shapes (N, V) and (N,).
        """
        ids = pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
        flags = pad_sequence([torch.from_numpy(f) for f in trained], batch_first=True)
        ids = ids.to(self._device)
        chosen = flags[:, 1:].to(self._device)
        hidden = self._model.base_model(input_ids=ids, use_cache=False)
        before = hidden.last_hidden_state[:, :-1][chosen]
        logits = self._model.get_output_embeddings()(before).float()
        return logits, ids[:, 1:][chosen]
