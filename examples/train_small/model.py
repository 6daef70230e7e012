"""A transformer of about a million parameters, for groups that share their prompts.

It reads B prompts once, and then G completions of each, whose attention goes to the
keys of the shared prompt and to their own. So a group costs one prompt, in sampling and
in training: gradients of all completions flow into the one reading of it.

Shapes: B prompts, G completions of each, T tokens, H heads, D their width, W = H * D.
Prompts are padded on the left; since positions are relative, padding moves nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 128
LAYERS = 4
HEADS = 4
HIDDEN = 352
HIDDEN_FROM_ALL = -1e9  # not infinite: a row of padding that sees nothing stays finite

KeysValues = tuple[Tensor, Tensor]
"""The keys and values of a layer, both of shape (B, G, H, T, D)."""


def rotated(x: Tensor, first: int) -> Tensor:
    """Turn pairs of values by their position (RoPE): x of shape (..., T, D)."""
    half = x.shape[-1] // 2
    speeds = 10_000.0 ** (-torch.arange(half, device=x.device) / half)
    places = torch.arange(first, first + x.shape[-2], device=x.device)
    angles = places[:, None] * speeds
    cos = angles.cos()
    sin = angles.sin()
    a = x[..., :half]
    b = x[..., half:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Layer(nn.Module):
    """Attention and a gated feed-forward network, each with a norm before it."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(WIDTH)
        self.norm = nn.RMSNorm(WIDTH)
        self.queries_keys_values = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate_up = nn.Linear(WIDTH, 2 * HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(
        self,
        x: Tensor,
        first: int,
        bias: Tensor,
        prompt: KeysValues | None,
        own: KeysValues | None,
    ) -> tuple[Tensor, KeysValues]:
        """Return the next states, (B, G, T, W), and the keys and values until here.

        Args:
            x: States, (B, G, T, W).
            first: Position of the first of the T tokens.
            bias: Added to the logits of the attention, (B, 1, 1 or T, keys).
            prompt: Of the shared prompts, with G = 1.
            own: Of the tokens between these and the prompt.
        """
        b, g, t, _ = x.shape
        parts = self.queries_keys_values(self.attention_norm(x)).chunk(3, -1)
        q, k, v = (p.view(b, g, t, HEADS, -1).transpose(2, 3) for p in parts)
        q = rotated(q, first)
        k = rotated(k, first)
        if own is not None:
            k = torch.cat([own[0], k], 3)
            v = torch.cat([own[1], v], 3)
        q = q * q.shape[-1] ** -0.5
        logits = q @ k.transpose(-1, -2)
        # All queries of a group at once: its prompt is neither copied nor read again.
        by_group = q.transpose(1, 2).reshape(b, HEADS, g * t, -1)
        if prompt is not None:
            to_prompt = by_group @ prompt[0][:, 0].transpose(-1, -2)
            to_prompt = to_prompt.view(b, HEADS, g, t, -1).transpose(1, 2)
            logits = torch.cat([to_prompt, logits], -1)
        weights = (logits + bias[:, :, None]).softmax(-1)
        size = weights.shape[-1] - k.shape[3]
        mixed = weights[..., size:] @ v
        if prompt is not None:
            share = weights[..., :size].transpose(1, 2).reshape(b, HEADS, g * t, size)
            read = share @ prompt[1][:, 0]
            mixed = mixed + read.view(b, HEADS, g, t, -1).transpose(1, 2)
        x = x + self.out(mixed.transpose(2, 3).reshape(b, g, t, WIDTH))
        gate, up = self.gate_up(self.norm(x)).chunk(2, -1)
        return x + self.down(functional.silu(gate) * up), (k, v)


class Transformer(nn.Module):
    """The language model; `vocabulary` is the number of its tokens."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, vocabulary, bias=False)
        for weights in self.parameters():
            if weights.dim() > 1:
                nn.init.normal_(weights, std=0.02)

    def forward(
        self,
        ids: Tensor,
        is_padding: Tensor,
        prompt: list[KeysValues] | None = None,
        own: list[KeysValues] | None = None,
    ) -> tuple[Tensor, list[KeysValues]]:
        """Return the logits of the next tokens, and the keys and values until here.

        Args:
            ids: Tokens, (B, G, T).
            is_padding: Of the prompts, (B, P); also while they are read.
            prompt: What a call with the prompts has returned, one a layer.
            own: What the call before has returned, where tokens come one by one.

        Returns:
            Logits of shape (B, G, T, vocabulary).
        """
        t = ids.shape[2]
        before = own[0][0].shape[3] if own else 0
        later = torch.ones(t, before + t, dtype=torch.bool, device=ids.device)
        hidden = later.triu(before + 1)[None].expand(len(ids), -1, -1)
        padding = is_padding[:, None].expand(-1, t, -1)
        hidden = torch.cat([padding, hidden], -1) if prompt else hidden | padding
        bias = hidden[:, None] * HIDDEN_FROM_ALL
        first = before + (is_padding.shape[1] if prompt else 0)
        x = self.embedding(ids)
        read = []
        for i, layer in enumerate(self.layers):
            x, keys_values = layer(
                x, first, bias, prompt[i] if prompt else None, own[i] if own else None
            )
            read.append(keys_values)
        return self.head(self.norm(x)), read
