"""SmolLM2 as a policy of the small trainer, with a tiny random model in its place."""

import json

import pytest

torch = pytest.importorskip("torch")
smollm2 = pytest.importorskip("examples.smollm2.policy")
small_llama = pytest.importorskip("examples.small_llama")

QUESTIONS = ["What is 3 + 4?", "Spell this word backward: moon, and no other one"]


@pytest.fixture
def base(tmp_path):
    torch.set_num_threads(1)
    small_llama.make_model(tmp_path / "base")
    return tmp_path / "base"


def test_log_probabilities_are_those_of_the_model_without_padding_or_other_prompts(
    base,
):
    policy = smollm2.SmolLM2(base)
    made = policy.sample(QUESTIONS, 2, 5, torch.Generator().manual_seed(0))
    assert [len(group) for group in made.texts] == [2, 2] and made.is_padding.any()
    found = policy.logprobs(made.prompts, made.is_padding, made.ids)
    for place, question in enumerate(QUESTIONS):
        prompt = policy.tokenizer.encode(question)
        for number in range(2):
            ids = made.ids[place, number].tolist()
            logits = policy.model(torch.tensor([prompt + ids])).logits[0]
            told = logits[len(prompt) - 1 : -1].log_softmax(-1)
            expected = told.gather(-1, made.ids[place, number][:, None])[:, 0]
            is_token = made.is_token[place, number]
            assert torch.allclose(
                found[place, number][is_token], expected[is_token], atol=1e-4
            )


@pytest.mark.processes
def test_a_cell_of_the_study_on_a_gpu_is_kept_with_its_settings(
    base, tmp_path, monkeypatch
):
    study = pytest.importorskip("examples.smollm2.rewards")
    from examples.studies import cells, items, rewards

    for module in (cells, items):
        monkeypatch.setattr(module, "FOLDER", tmp_path)
    monkeypatch.setattr(rewards, "HELD_OUT", 10)
    monkeypatch.setattr(rewards, "SHOWN", 20)
    monkeypatch.setattr(smollm2.SmolLM2, "warm_steps", 1)
    monkeypatch.setattr(smollm2.SmolLM2.__init__, "__defaults__", (base,))
    monkeypatch.setattr("examples.train_small.train.WARM_STRIDE", 1)
    monkeypatch.setattr("examples.train_small.train.KEPT", 8)
    monkeypatch.setattr(study, "TOKENS", 100)
    study.STUDY.one(("verl", "chain_sum", 100))
    kept = json.loads(study.STUDY.file(("verl", "chain_sum", 100)).read_text())
    assert kept["settings"]["tokens"] == 100 and kept["rounds"][-1]["tokens"] >= 100
    assert 0 <= kept["accuracy"] <= 1 and study.STUDY.pending([100])[0][0] != "verl"
