"""The completions of the simulated model depend only on the item, and are usable."""

import asyncio
import dataclasses
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.demo.simulated_model import (
    PolicyProfile,
    SimulatedClient,
    chance_right,
    sample_completion,
    spoil_answer,
)
from rg_env.inference.completions import Sampling
from rg_env.inference.prompts import Prompt
from rg_env.reward.extraction import extract_answer
from rg_env.settings.server_and_launch_settings import SIMULATED
from rg_env.stream.item import Item
from tests.support.parts import (
    ENTRY_OF_FOUR,
    build_env,
    env_config,
    server_config,
)
from tests.support.runs import evaluated, processed, samples

NO_FAULTS = PolicyProfile(bad_format=0, unfinished=0, hedged=0)
RIGHT = dataclasses.replace(NO_FAULTS, mean_skill=0.9, skill_spread=0, sharpness=40)
NEVER_ENDS = dataclasses.replace(NO_FAULTS, unfinished=1)
PROMPT = Prompt([], [1], False, item=((), ENTRY_OF_FOUR, Item("gcd")))


def client_of(profile=RIGHT):
    client = build_env(SIMULATED).server.servers[0]
    client.profile = profile
    return client


async def write(*prompts, n=4, max_tokens=2000, profile=RIGHT):
    """Have one client complete prompts at the same time."""
    client = client_of(profile)
    sampling = Sampling(max_tokens, 1.0, 1.0, "train")
    return await asyncio.gather(*(client.complete(p, n, sampling) for p in prompts))


def of_item(dataset, entry=ENTRY_OF_FOUR):
    return dataclasses.replace(PROMPT, item=((), entry, dataset))


async def test_completions_can_be_used_and_end_with_the_end_token():
    end = client_of().tokenizer.eos_token_id
    (completions,) = await write(PROMPT)
    for each in completions:
        assert each.unusable is None and each.finish_reason == "stop"
        assert each.tokens.index(end) == len(each.tokens) - 1
        assert extract_answer(each.text).answer == "4"


async def test_an_unfinished_completion_is_truncated_without_an_end_token():
    end = client_of().tokenizer.eos_token_id
    (completions,) = await write(PROMPT, max_tokens=1500, profile=NEVER_ENDS)
    for each in completions:
        assert each.unusable is None and each.finish_reason == "length"
        assert len(each.tokens) == 1500 and end not in each.tokens


async def test_a_completion_depends_only_on_its_item_and_number():
    other = of_item(Item("gcd", index=1))
    (one, two), (again, same) = await write(PROMPT, other), await write(other, PROMPT)
    assert (one, two) == (same, again)
    assert len({each.text for each in (*one, *two)}) == 8
    for number, each in enumerate(one):
        numbered = dataclasses.replace(PROMPT, first=number)
        assert await write(numbered, n=1) == [[each]]


async def test_the_format_and_the_thinking_are_those_of_the_prompt():
    boxed = of_item(Item("gcd", answer_format="boxed"))
    opened = dataclasses.replace(boxed, thinking_open=True)
    ((closed,), (open_,)) = await write(boxed, opened, n=1)
    assert closed.text == f"<think>\n{open_.text}"
    found = extract_answer(open_.text, thinking_open=True, answer_format="boxed")
    assert found.answer == "4"


async def test_a_prompt_without_an_item_is_refused():
    client = client_of()
    for requests in (
        client._tokens_and_logprobs_completion_wrapper(prompt="hi", max_tokens=9),
        client._chat_completion_wrapper(messages=[{"role": "user", "content": "hi"}]),
    ):
        with pytest.raises(NotImplementedError, match="only completes items"):
            await requests


async def test_a_long_group_does_not_block_the_event_loop():
    client, turns = client_of(NEVER_ENDS), []

    async def turn():
        while True:
            await asyncio.sleep(0)
            turns.append(1)

    turning = asyncio.ensure_future(turn())
    await client.complete(PROMPT, 16, Sampling(1500, 1.0, 1.0, "train"))
    turning.cancel()
    assert len(turns) > 16


# -- kinds of completions --------------------------------------------------------------


def sampled(count, **profile):
    """Return completions of an item, and the kind of each."""
    item = Item("gcd", level=0.4, _entry=ENTRY_OF_FOUR)
    profile = dataclasses.replace(NO_FAULTS, **profile)
    rng = random.Random(5)
    return [sample_completion(item, "4", profile, rng) for _ in range(count)]


def test_a_completion_with_a_bad_format_has_no_answer():
    texts = [text for text, _ in sampled(200, bad_format=1)]
    assert {extract_answer(text).answer for text in texts} == {None}
    assert {text.count("answer>") for text in texts} == {0, 1, 2, 4}


def test_the_kinds_are_as_frequent_as_in_the_profile():
    faults = {"bad_format": 0.2, "unfinished": 0.1, "hedged": 0.1}
    counts = Counter(kind for _, kind in sampled(4000, **faults))
    expected = chance_right(NO_FAULTS, "gcd", 0.4) * 0.6
    for kind, share in {**faults, "right": expected}.items():
        assert counts[kind] / 4000 == pytest.approx(share, abs=0.03)


@given(st.text(max_size=20) | st.integers(0, 10**12).map(str), st.integers(0, 100))
def test_a_spoiled_answer_is_another_answer_of_the_same_form(answer, seed):
    spoiled = spoil_answer(answer, random.Random(seed))
    assert spoiled.strip() != answer.strip()
    if answer.isascii() and answer.isdigit():
        assert len(spoiled) == len(answer) and spoiled.isdigit()


# -- in a run --------------------------------------------------------------------------


async def rows(folder, workers):
    _, rows = await processed(folder, 8, max_num_workers=workers)
    for row in rows:
        assert row.pop("seconds") > 0
    return sorted(rows, key=lambda row: row["index"])


async def evaluation(folder, workers):
    await evaluated(folder, eval_completions=3, max_eval_workers=workers)
    return sorted(samples(folder), key=lambda row: (row["task"], row["completion"]))


@pytest.mark.processes
@pytest.mark.parametrize("made", [rows, evaluation])
async def test_results_do_not_depend_on_the_groups_in_flight(made, tmp_path):
    found = await made(tmp_path / "1", 1)
    assert found == await made(tmp_path / "8", 8)
    assert {row["model"] for row in found} == {SIMULATED}


def test_the_log_says_once_that_the_model_is_simulated(logged):
    ours = ReasoningGymEnv(env_config(), [server_config(SIMULATED, model_name="mine")])
    assert ours.server.servers[0].config.model_name == SIMULATED
    assert isinstance(ours.server.servers[0], SimulatedClient)
    assert logged.text.count("the model is simulated") == 1
