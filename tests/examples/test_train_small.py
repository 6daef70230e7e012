"""The small trainer: its objective, model and loop, where torch is installed."""

from itertools import cycle, islice
from types import SimpleNamespace

import numpy as np
import pytest

from examples.trainer import grpo

torch = pytest.importorskip("torch")
trainer = pytest.importorskip("examples.train_small.train")
policies = pytest.importorskip("examples.train_small.policy")

QUESTIONS = ["say a", "say bb", "say abab", "say b"]
ANSWERS = "<answer>ab</answer>"


@pytest.fixture
def policy():
    torch.set_num_threads(1)
    return policies.Policy(policies.Tokenizer.of([QUESTIONS], ANSWERS), seed=1)


def items():
    return cycle(SimpleNamespace(question=question) for question in QUESTIONS)


def weights(policy):
    return [weight.detach().clone() for weight in policy.model.parameters()]


def has_two_b(item, completions):
    return [float(text.count("b") > 1) for text in completions]


def trained(policy, reward, tokens=6_000, told=lambda item, values: None):
    return list(trainer.train(policy, items(), reward, told, tokens, seed=3))


def test_a_text_is_the_text_of_its_tokens():
    questions = [f"Spell this: {word}!" for word in ("sun", "moon", "su")]
    tokenizer = policies.Tokenizer.of([questions], ANSWERS)
    for text in [*questions, ANSWERS]:
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert len(tokenizer.encode(questions[0])) == 5  # its ends, and the letters
    assert tokenizer.decode(tokenizer.encode("sz")) == "s?"


def test_the_tokens_that_are_sampled_are_the_likeliest_of_their_log_probabilities(
    policy,
):
    made = policy.sample(QUESTIONS, 1, 9, None)
    chosen = policy.logprobs(made.prompts, made.is_padding, made.ids)
    for place in range(made.ids.shape[2]):
        for token in range(len(policy.tokenizer.pieces) + 2):
            others = made.ids.clone()
            others[..., place] = token
            told = policy.logprobs(made.prompts, made.is_padding, others)[..., place]
            is_less = told <= chosen[..., place] + 1e-5
            assert (is_less | ~made.is_token[..., place]).all()


def test_neither_padding_nor_the_other_prompts_change_a_completion(policy):
    together = policy.sample(QUESTIONS, 2, 9, None)
    for question, texts in zip(QUESTIONS, together.texts, strict=True):
        assert policy.sample([question], 1, 9, None).texts == [texts[:1]]


def test_a_step_goes_down_the_objective_of_the_trainer_at_a_ratio_of_1():
    rng = np.random.default_rng(0)
    shape = (2, 3, 7)
    now = torch.tensor(rng.normal(-2, 0.3, shape), requires_grad=True)
    rewards = [[0.2, None, 0.9], [0.5, 0.1, 0.0]]
    made = SimpleNamespace(
        prompts=torch.zeros(2, 1),
        is_padding=torch.zeros(2, 1, dtype=torch.bool),
        ids=torch.arange(now.numel()).view(shape),
        is_token=torch.tensor(rng.random(shape) < 0.7),
        has_ended=torch.tensor([[True] * 3, [True, True, False]]),
    )
    policy = SimpleNamespace(logprobs=lambda prompts, _, ids: now.flatten()[ids])
    before = now.detach().clone()
    optimiser = torch.optim.SGD([now], lr=0.0)
    assert trainer.grpo_step(policy, optimiser, made, rewards, 0.5) == 1.0
    advantage = np.stack([grpo.advantages(np.array(r, dtype=float)) for r in rewards])
    terms = grpo.ppo_clip(before.numpy(), before.numpy(), advantage[..., None], 0.2)
    trained = made.is_token.numpy()
    trained[0, 1] = trained[1, 2] = False  # without a score, and truncated
    step = 0.5 * terms.derivative * trained / trained.sum()
    np.testing.assert_allclose((before - now).detach(), step, atol=1e-12)


def test_a_warm_start_ends_where_it_was_asked_to(monkeypatch):
    monkeypatch.setattr(trainer, "KEPT", 64)
    shown = [SimpleNamespace(question=f"say {n % 7}{n}") for n in range(600)]
    texts = [f"<answer>{i.question[4]}</answer>" for i in shown]

    def is_same(item, completions):
        return [float(f">{item.question[4]}<" in text) for text in completions]

    policy = policies.Policy(policies.Tokenizer.of([["say 0123456789"]], ANSWERS))
    found = trainer.warm_start(policy, shown, texts, is_same, 0.6, seed=0)
    assert found == trainer.mean_of(trainer.evaluate(policy, shown[:64], is_same, 0))
    assert 0.5 < found <= 0.6 + trainer.TOLERANCE


def test_it_learns_what_is_rewarded_and_the_same_from_the_same_seed(
    policy, tmp_path, monkeypatch
):
    monkeypatch.setattr(policies.Policy, "learning_rate", 3e-3)
    monkeypatch.setattr(trainer, "MAX_NEW_TOKENS", 8)
    policy.save(tmp_path / "start.pt")
    steps = trained(policy, has_two_b, 15_000)
    assert steps[-1].tokens >= 15_000 > steps[-2].tokens
    assert steps[-1].reward > steps[0].reward + 0.2
    again = policies.Policy.load(tmp_path / "start.pt")
    assert trained(again, has_two_b, 15_000) == steps
    assert all(map(torch.equal, weights(again), weights(policy)))


@pytest.mark.parametrize("value", [None, 0.5])
def test_groups_without_variance_cost_tokens_and_teach_nothing(policy, value):
    before = weights(policy)
    told = []
    steps = trained(
        policy,
        lambda item, texts: [value] * len(texts),
        told=lambda *of: told.append(of),
    )
    assert all(map(torch.equal, weights(policy), before))
    assert steps[-1].tokens >= 6_000 and {s.with_variance for s in steps} == {0.0}
    assert {step.reward for step in steps} == {value}
    assert len(told) == len(steps) * trainer.GROUPS
    asked = [item.question for item, _ in told]
    assert asked == [item.question for item in islice(items(), len(told))]
