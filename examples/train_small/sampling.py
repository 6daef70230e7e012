"""Completions of a causal language model, many prompts at once.

    prompts      equal ones are read once; they are padded at their ends, which no token
                 of a prompt looks at
    tokens       lie in the cache behind the longest prompt, and do not see the padding;
                 their positions are as if it were not there
    rows         that have ended leave the batch, once a quarter of it has

The model's logits have to be the output embedding times the last hidden state, as in
Llama and Qwen, and its attention has to be to all tokens before.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, DynamicLayer

from examples.train_small.policy import Rows, Sample

ROOM = 64
"""Tokens by which the cache grows."""

KEPT_SHARE = 0.75
"""Rows leave the batch when no more than this share of it goes on."""


class _RoomyLayer(DynamicLayer):
    """One layer's keys and values, with room behind them.

    Appending to a tensor copies all of it: a fifth of the time of 128 rows.
    """

    _room: tuple[torch.Tensor, torch.Tensor] | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add tokens; return all keys and all values."""
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        if self._room is None or end > self._room[0].shape[-2]:
            self._room = self._with_room(key_states, start, end)
            self.is_initialized = True
        keys, values = self._room
        keys[:, :, start:end] = key_states
        values[:, :, start:end] = value_states
        self.keys, self.values = keys[:, :, :end], values[:, :, :end]
        return self.keys, self.values

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep the rows of these indices, as often as each is named."""
        super().batch_select_indices(indices)
        self._room = None

    def _with_room(
        self, like: torch.Tensor, start: int, end: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        rows, heads, _, width = like.shape
        keys, values = (like.new_empty(rows, heads, end + ROOM, width) for _ in "kv")
        if start:
            keys[:, :, :start], values[:, :, :start] = self.keys, self.values
        return keys, values


class _Rows:
    """The rows of a batch that go on, and what the model has read of them.

    Args:
        model: Is asked for the next token.
        prompts: One a row; equal ones are read once.
        max_tokens: That will be added to a row at most.

    Attributes:
        logits: Of each row's next token, shape (B, V).
    """

    def __init__(self, model: PreTrainedModel, prompts: Rows, max_tokens: int) -> None:
        self._base, self._embedding = model.base_model, model.get_output_embeddings()
        self._cache = Cache(layer_class_to_replicate=_RoomyLayer)
        device = model.device
        places = {tuple(prompt): 0 for prompt in prompts}
        places.update({prompt: place for place, prompt in enumerate(places)})
        lengths = torch.tensor([len(prompt) for prompt in places])
        self._read = int(lengths.max())
        padded = torch.zeros((len(places), self._read), dtype=torch.long)
        for prompt, place in places.items():
            padded[place, : len(prompt)] = torch.tensor(prompt)
        states = self._ask(input_ids=padded.to(device))
        ends = states[torch.arange(len(places)), lengths - 1]
        rows = torch.tensor([places[tuple(prompt)] for prompt in prompts])
        self._cache.batch_select_indices(rows.to(device))
        self.logits = self._embedding(ends[rows.to(device)]).float()
        self._position = lengths[rows].to(device)[:, None]
        slots = torch.arange(self._read + max_tokens, device=device)
        is_padding = (slots >= self._position) & (slots < self._read)
        self._is_seen = ~is_padding[:, None, None]

    def add(self, tokens: torch.Tensor) -> None:
        """Read one token a row, shape (B,)."""
        self._read += 1
        states = self._ask(
            input_ids=tokens[:, None],
            attention_mask=self._is_seen[..., : self._read],
            position_ids=self._position,
        )
        self._position = self._position + 1
        self.logits = self._embedding(states[:, -1]).float()

    def keep(self, rows: torch.Tensor) -> None:
        """Let go of all rows but these."""
        self._cache.batch_select_indices(rows)
        self._position, self._is_seen = self._position[rows], self._is_seen[rows]

    def _ask(self, **inputs: torch.Tensor) -> torch.Tensor:
        reply = self._base(**inputs, past_key_values=self._cache, use_cache=True)
        states: torch.Tensor = reply.last_hidden_state
        return states


def _draw(
    logits: torch.Tensor, temperature: float, chances: torch.Tensor
) -> torch.Tensor:
    """Return one token a row: the likeliest at 0, else where the row's chance falls."""
    if temperature == 0:
        return logits.argmax(-1)
    sums = (logits / temperature).softmax(-1).cumsum(-1, dtype=torch.float64)
    places = torch.searchsorted(sums, chances[:, None] * sums[:, -1:], right=True)
    return places[:, 0].clamp_(max=logits.shape[-1] - 1)


@torch.inference_mode()
def sample(
    model: PreTrainedModel,
    prompts: Rows,
    max_tokens: int,
    temperature: float,
    stop_ids: frozenset[int],
    seed: int,
) -> list[Sample]:
    """Complete every prompt once; see `Policy.sample`."""
    if not prompts:
        return []
    device, shape = model.device, (max_tokens, len(prompts))
    thrown = torch.Generator().manual_seed(seed)
    # Thrown for all rows at once, so that none depends on when another one ends.
    chances = torch.rand(shape, generator=thrown, dtype=torch.float64).to(device)
    stops = torch.tensor(sorted(stop_ids), dtype=torch.long, device=device)
    tokens = torch.zeros(shape, dtype=torch.long, device=device)
    logprobs = torch.zeros(shape, device=device)
    counts = torch.full((len(prompts),), max_tokens, device=device)
    rows = _Rows(model, prompts, max_tokens)
    origins = torch.arange(len(prompts), device=device)
    goes_on = torch.ones(len(prompts), dtype=torch.bool, device=device)
    for step in range(max_tokens):
        drawn = _draw(rows.logits, temperature, chances[step, origins])
        told = rows.logits.log_softmax(-1).gather(1, drawn[:, None])[:, 0]
        tokens[step, origins], logprobs[step, origins] = drawn, told
        has_ended = goes_on & torch.isin(drawn, stops)
        counts[origins[has_ended]] = step + 1
        goes_on &= ~has_ended
        left = int(goes_on.sum())
        if not left or step + 1 == max_tokens:
            break
        if left <= KEPT_SHARE * len(goes_on):
            kept = goes_on.nonzero()[:, 0]
            rows.keep(kept)
            drawn, origins, goes_on = drawn[kept], origins[kept], goes_on[kept]
        rows.add(drawn)
    made = zip(tokens.T.tolist(), logprobs.T.tolist(), counts.tolist(), strict=True)
    return [(ids[:count], told[:count]) for ids, told, count in made]
