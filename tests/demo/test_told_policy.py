"""A simulated policy that is told the answers, as the demo tells it."""

import asyncio
import dataclasses

import aiohttp
import pytest

from rg_env.demo.child_process import running_program
from rg_env.demo.inference_server import TELL
from rg_env.demo.policy import KeyEntry
from tests.support.parts import run_main

ENTRY = KeyEntry("gcd", "arithmetic", "2 + 2?", "a rare answer", 0.0)


@pytest.mark.processes
def test_it_gives_at_times_the_answer_that_it_was_told():
    async def run():
        program = running_program("rg_env.demo.inference_server", "--policy")
        async with program as url, aiohttp.ClientSession(url) as session:
            await session.post(TELL, json=dataclasses.asdict(ENTRY))
            body = {"messages": [{"role": "user", "content": "2 + 2?"}], "n": 20}
            async with session.post("/v1/chat/completions", json=body) as reply:
                choices = (await reply.json())["choices"]
        return [choice["message"]["content"] for choice in choices]

    texts = asyncio.run(run())
    assert any("<answer>a rare answer</answer>" in text for text in texts)


def test_the_server_that_draws_its_answers_refuses_a_curriculum(capsys):
    assert run_main(["simulated-server", "--complexity_mode", "curriculum"]) == 2
    assert "--complexity_mode" in capsys.readouterr().err
