"""The policy made of torch, where torch is installed."""

import dataclasses

import numpy as np
import pytest

from examples.trainer.grpo import Batch, advantages
from tests.examples.groups_of_rows import group_of

torch = pytest.importorskip("torch")


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a small model whose embeddings are tied."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=99,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(tmp_path / "tied")
    return tmp_path / "tied"


def batch_of(seed):
    """Return groups of several lengths and temperatures, and their batch."""
    scores = np.random.default_rng(seed).random((3, 4))
    zero = [False, False, True, False]
    groups = [
        dataclasses.replace(group_of(row, zero, size=19, seed=n), temperature=heat)
        for n, (row, heat) in enumerate(zip(scores, (1.0, 0.7, 1.3), strict=True))
    ]
    return groups, Batch(groups)


def loss_and_entropy(model, groups, tokens):
    """Compute them from whole rows, as the formulas of grpo.py stand there."""
    loss = 0.0
    entropy = 0.0
    for group in groups:
        for i, advantage in enumerate(advantages(group.scores)):
            if group.has_zero_advantage[i]:
                continue
            ids = torch.tensor([group.tokens[i]])
            logits = model(input_ids=ids).logits[0, :-1] / group.temperature
            told = logits.log_softmax(-1)
            mask = torch.tensor(group.trained[i][1:])
            now = told.gather(1, ids[0, 1:, None])[:, 0][mask]
            ratio = (now - torch.tensor(group.logprobs[i][1:])[mask]).exp()
            held = ratio.clamp(0.8, 1.2)
            loss -= torch.minimum(ratio * advantage, held * advantage).sum() / tokens
            entropy -= (told.exp() * told).sum(-1)[mask].sum().item() / tokens
    return loss, entropy


def test_one_pass_in_micro_batches_has_the_gradient_of_the_loss(folder):
    from examples.trainer.torch_policy import TorchPolicy

    policy = TorchPolicy(folder, tokens_at_once=64)
    groups, batch = batch_of(0)
    entropy = policy.backward(
        batch.rows, batch.trained, batch.derivative, batch.temperatures
    )
    weights = list(policy._model.parameters())
    found = [weight.grad.clone() for weight in weights]
    policy._model.zero_grad()
    loss, right_entropy = loss_and_entropy(policy._model, groups, batch.tokens)
    loss.backward()
    for gradient, weight in zip(found, weights, strict=True):
        torch.testing.assert_close(gradient, weight.grad, atol=1e-6, rtol=1e-4)
    assert batch.measures().loss == pytest.approx(float(loss.detach()), abs=1e-5)
    assert entropy == pytest.approx(right_entropy, abs=1e-4)


def test_a_policy_that_was_saved_takes_the_same_next_step(folder, tmp_path):
    from examples.trainer.torch_policy import TorchPolicy

    def step(policy):
        _, batch = batch_of(1)
        policy.backward(batch.rows, batch.trained, batch.derivative)
        policy.step(1e-2)

    first = TorchPolicy(folder)
    second = TorchPolicy(folder)
    step(first)
    first.save(tmp_path / "saved")
    second.load(tmp_path / "saved")
    step(first)
    step(second)
    pairs = zip(first._model.parameters(), second._model.parameters(), strict=True)
    assert all(torch.equal(*pair) for pair in pairs)
