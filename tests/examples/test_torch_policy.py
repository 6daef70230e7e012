"""The policy made of torch, where torch is installed."""

import dataclasses

import numpy as np
import pytest

from examples.trainer.grpo import Batch
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
    """Return a batch of rows of several lengths and temperatures."""
    scores = np.random.default_rng(seed).random((3, 4))
    zero = [False, False, True, False]
    groups = [
        dataclasses.replace(group_of(row, zero, size=19, seed=n), temperature=heat)
        for n, (row, heat) in enumerate(zip(scores, (1.0, 0.7, 1.3), strict=True))
    ]
    return Batch(groups)


def backward(model, batch):
    """Compute the gradient row by row, without padding; return the mean entropy."""
    entropy = 0.0
    for place, row in enumerate(batch.rows):
        ids = torch.tensor(row)
        is_trained = torch.tensor(batch.trained[place])[1:]
        logits = model(input_ids=ids[None]).logits[0, :-1] / batch.temperatures[place]
        told = logits.log_softmax(-1)[is_trained]
        now = told.gather(1, ids[1:][is_trained, None])[:, 0]
        now.backward(torch.tensor(batch.derivative([place], now.detach().numpy())))
        entropy -= (told.exp() * told).sum().item() / batch.tokens
    return entropy


def test_one_pass_in_micro_batches_has_the_gradient_of_single_rows(folder):
    from examples.trainer.torch_policy import TorchPolicy

    policy = TorchPolicy(folder, tokens_at_once=64)
    batch = batch_of(0)
    entropy = policy.backward(
        batch.rows, batch.trained, batch.derivative, batch.temperatures
    )
    weights = list(policy._model.parameters())
    found = [weight.grad.clone() for weight in weights]
    policy._model.zero_grad()
    by_row = batch_of(0)
    assert entropy == pytest.approx(backward(policy._model, by_row), abs=1e-4)
    for gradient, weight in zip(found, weights, strict=True):
        torch.testing.assert_close(gradient, weight.grad, atol=1e-6, rtol=1e-4)
    assert batch.measures().loss == pytest.approx(by_row.measures().loss, abs=1e-5)


def test_a_policy_that_was_saved_takes_the_same_next_step(folder, tmp_path):
    from examples.trainer.torch_policy import TorchPolicy

    def step(policy):
        batch = batch_of(1)
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
