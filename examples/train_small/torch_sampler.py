"""A causal language model of transformers that samples many prompts at once."""

from __future__ import annotations

import torch
from transformers import DynamicCache

from examples.train_small.sampler import Sample
from examples.trainer.policy import Rows
from examples.trainer.torch_policy import TorchPolicy


class TorchSampler(TorchPolicy):
    """A policy that samples, too."""

    @torch.inference_mode()
    def sample(
        self,
        prompts: Rows,
        max_tokens: int,
        temperature: float,
        stop_ids: frozenset[int],
        seed: int,
    ) -> list[Sample]:
        """Complete every prompt once; see `Sampler`."""
        torch.manual_seed(seed)
        model, longest = self._model, max(map(len, prompts))
        padding = [longest - len(prompt) for prompt in prompts]
        rows = [[0] * n + [*row] for n, row in zip(padding, prompts, strict=True)]
        ids = torch.tensor(rows, device=model.device)
        slots = torch.arange(longest, device=model.device)
        seen = (slots >= torch.tensor(padding, device=model.device)[:, None]).long()
        positions = (seen.cumsum(-1) - 1).clamp(min=0)
        stops = torch.tensor(sorted(stop_ids), device=model.device)
        samples: list[Sample] = [([], []) for _ in prompts]
        origins = torch.arange(len(prompts), device=model.device)
        cache = DynamicCache()
        for _ in range(max_tokens):
            read = model.base_model(
                input_ids=ids,
                attention_mask=seen,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
            )
            states = read.last_hidden_state[:, -1]
            logits = model.get_output_embeddings()(states).float()
            if temperature:
                ids = (logits / temperature).softmax(-1).multinomial(1)
            else:
                ids = logits.argmax(-1, keepdim=True)
            told = logits.log_softmax(-1).gather(1, ids)[:, 0].tolist()
            for origin, token, logprob in zip(
                origins.tolist(), ids[:, 0].tolist(), told, strict=True
            ):
                samples[origin][0].append(token)
                samples[origin][1].append(logprob)
            left = (~torch.isin(ids[:, 0], stops)).nonzero()[:, 0]
            if not len(left):
                break
            cache.batch_select_indices(left)
            ids, origins, seen = ids[left], origins[left], seen[left]
            positions = positions[left, -1:] + 1
            seen = torch.cat([seen, torch.ones_like(ids)], 1)
        return samples
