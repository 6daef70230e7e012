"""The simulated model: its completions depend on the item alone, and can be used."""

import asyncio
import dataclasses

import pytest

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.demo.policy import PolicyProfile
from rg_env.demo.simulated_model import SimulatedClient
from rg_env.inference.completions import Sampling
from rg_env.inference.prompts import Prompt
from rg_env.reward.extraction import extract_answer
from rg_env.settings.program_settings import SIMULATED
from rg_env.stream.item import Item
from tests.support.parts import (
    ENTRY_OF_FOUR,
    Exact,
    build_env,
    env_config,
    server_config,
)
from tests.support.runs import evaluated, processed, samples

RIGHT = PolicyProfile(
    mean_skill=0.9, skill_spread=0, sharpness=40, bad_format=0, unfinished=0, hedged=0
)
NEVER_ENDS = PolicyProfile(bad_format=0, unfinished=1, hedged=0)
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


async def test_one_that_never_ends_is_cut_at_the_limit_without_end_token():
    end = client_of().tokenizer.eos_token_id
    (completions,) = await write(PROMPT, max_tokens=1500, profile=NEVER_ENDS)
    for each in completions:
        assert each.unusable is None and each.finish_reason == "length"
        assert len(each.tokens) == 1500 and end not in each.tokens


async def test_the_item_and_the_number_decide_a_completion_and_nothing_else():
    other = of_item(Item("gcd", index=1))
    (one, two), (again, same) = await write(PROMPT, other), await write(other, PROMPT)
    assert (one, two) == (same, again)
    assert len({each.text for each in (*one, *two)}) == 8
    for number, each in enumerate(one):
        numbered = dataclasses.replace(PROMPT, first=number)
        assert await write(numbered, n=1) == [[each]]


async def test_an_item_of_a_subclass_is_known_as_well():
    ((completion,),) = await write(of_item(Exact()), n=1)
    assert extract_answer(completion.text).answer == "4"


async def test_the_format_and_the_thinking_are_those_of_the_prompt():
    boxed = of_item(Item("gcd", answer_format="boxed"))
    opened = dataclasses.replace(boxed, thinking_open=True)
    ((closed,), (open_,)) = await write(boxed, opened, n=1)
    assert closed.text == f"<think>\n{open_.text}"
    found = extract_answer(open_.text, thinking_open=True, answer_format="boxed")
    assert found.answer == "4"


async def test_what_is_no_item_is_refused():
    client = client_of()
    for requests in (
        client._tokens_and_logprobs_completion_wrapper(prompt="hi", max_tokens=9),
        client._chat_completion_wrapper(messages=[{"role": "user", "content": "hi"}]),
    ):
        with pytest.raises(NotImplementedError, match="items alone"):
            await requests


async def test_the_event_loop_goes_on_while_a_long_group_is_written():
    client, turns = client_of(NEVER_ENDS), []

    async def turn():
        while True:
            await asyncio.sleep(0)
            turns.append(1)

    turning = asyncio.ensure_future(turn())
    await client.complete(PROMPT, 16, Sampling(1500, 1.0, 1.0, "train"))
    turning.cancel()
    assert len(turns) > 16


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
async def test_results_are_the_same_however_many_are_made_at_once(made, tmp_path):
    found = await made(tmp_path / "1", 1)
    assert found == await made(tmp_path / "8", 8)
    assert {row["model"] for row in found} == {SIMULATED}


def test_the_model_is_named_and_the_log_says_once_that_it_is_simulated(logged):
    ours = ReasoningGymEnv(env_config(), [server_config(SIMULATED, model_name="mine")])
    assert ours.server.servers[0].config.model_name == SIMULATED
    assert isinstance(ours.server.servers[0], SimulatedClient)
    assert logged.text.count("the model is simulated") == 1
