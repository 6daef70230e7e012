"""A reply that cannot get better by waiting ends a start, and no run."""

import asyncio
import logging

import pytest
from odd_servers import (
    MODEL,
    Odd,
    atropos_vllm,
    chat,
    hanging,
    openai_endpoint,
    refusal,
    serving,
    sglang,
    stock_vllm,
    web_page,
)
from parts import (
    ENTRY_OF_FOUR,
    GUARD_S,
    NOWHERE,
    RIGHT,
    WRONG,
    Exact,
    build_env,
    env_config,
    free_port,
    options_of,
    run_main,
    server_config,
    until,
    vllm_reply,
)

from reasoning_gym_environment import ReasoningGymEnv
from rg_env import patience
from rg_env.errors import SettingError
from rg_env.inference import circuit_breaker
from rg_env.inference.generation import Sampling
from rg_env.inference.native_servers import NativeVllmServer

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(circuit_breaker, "FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr(circuit_breaker, "LONGEST_PAUSE_S", 0.02)
    monkeypatch.setattr(patience, "LOOK_TIMEOUT_S", 0.5)
    monkeypatch.setattr(patience, "LOOK_FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr(patience, "COMPLETION_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(patience, "COMPLETION_LONGEST_PAUSE_S", 0.01)
    monkeypatch.setattr(patience, "OUTAGE_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(patience, "OUTAGE_LONGEST_PAUSE_S", 0.05)
    monkeypatch.setattr(patience, "OUTAGE_LOOK_EVERY_S", 0.05)


class Bare(ReasoningGymEnv):
    """An environment that asks one question for ever and starts no worker."""

    async def setup(self):
        """Watch, and do nothing else."""
        give_up = self.config.give_up_after_s if self.process_mode else None
        self._watch.start(give_up_after_s=give_up)

    async def get_next_item(self):
        return self._requests.messages("2 + 2"), ENTRY_OF_FOUR, Exact()


def bare(*urls, kind="vllm", model=MODEL, cls=Bare, folder=None, **changes):
    # The name of a `trl` server's model is the one of its tokenizer.
    servers = [server_config(url, kind, model_name=model) for url in urls]
    settings = {"ensure_scores_are_not_same": False, **changes}
    if folder is not None:
        settings["data_path_to_save_groups"] = str(folder / "rows.jsonl")
    env = cls(env_config(**settings), servers)
    env.n_groups_to_process, env.group_size_to_process = 2, 4
    return env


async def ended(env):
    """Run `process`; return the refusal or the exit status."""
    try:
        await env.process_manager()
    except SettingError as error:
        return str(error)
    except SystemExit as end:
        return end.code
    return 0


def end_at(odd, *, folder, **settings):
    """Run `process` at an odd server; return how it ended, the address as U."""

    async def run():
        async with serving(odd) as url:
            end = await ended(bare(url, folder=folder, **settings))
            return end.replace(url, "U") if isinstance(end, str) else end

    return asyncio.run(run())


# -- what is said while generating -----------------------------------------------------


def always(status, body):
    """Return what refuses every request that holds a question, and no empty one."""

    def reply(asked):
        is_empty = not asked
        return (
            (400, refusal("you must provide messages")) if is_empty else (status, body)
        )

    return reply


UNSUPPORTED = refusal(
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use"
    " 'max_completion_tokens' instead.",
    "unsupported_parameter",
    "max_tokens",
)
NO_MODEL = {"object": "error", "message": "The model `m` does not exist.", "code": 404}
OPENAI_REPLIES = {
    "no model": (404, NO_MODEL, "openai.model_name: "),
    "context": (400, refusal("maximum context length is 9"), "env.max_token_length: "),
    "key": (401, refusal("Incorrect API key provided"), "openai.api_key: "),
    "rights": (403, refusal("Country not supported"), "openai.api_key: "),
    "credit": (402, {"error": {"message": "Add credits"}}, "openai.api_key: "),
    "no reason": (400, "computer says no", "openai.base_url: "),
}


@pytest.mark.parametrize("case", OPENAI_REPLIES)
def test_a_request_that_is_refused_for_good_ends_the_start(case, tmp_path, logged):
    status, body, begin = OPENAI_REPLIES[case]
    odd = openai_endpoint(always(status, body))
    end = end_at(odd, folder=tmp_path, kind="openai")
    assert end.startswith(begin) and "U/v1" in end
    assert "does not answer" not in logged.text


def test_a_native_server_is_read_too(tmp_path):
    said = {"error": {"message": "The input is longer than the model's context length"}}
    end = end_at(sglang((400, said)), kind="sglang", folder=tmp_path)
    assert end.startswith("env.max_token_length: ") and "U/v1 says 400" in end


def test_a_reply_of_another_form_ends_the_start(tmp_path):
    end = end_at(atropos_vllm({"error": "unexpected endpoint"}), folder=tmp_path)
    assert end.startswith(
        "openai.server_type: U/v1 answers, but not as a server of type"
    )
    assert "unexpected endpoint" in end


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_get_better_is_tried_again_until_it_is_time(status, tmp_path, logged):
    odd = openai_endpoint(always(status, refusal("no quota left")))
    assert end_at(odd, kind="openai", give_up_after_s=0.3, folder=tmp_path) == 1
    assert "answers with an error" in logged.text and "no quota left" in logged.text


def test_after_the_first_completion_the_same_reply_is_counted_and_logged(
    tmp_path, logged
):
    left = [chat]

    def reply(body):
        return left.pop()(body) if left and body else always(401, refusal("no"))(body)

    odd = openai_endpoint(reply)
    env = None

    class Scored(Bare):
        async def score(self, rollouts):
            return None

    async def run():
        nonlocal env
        async with serving(odd) as url:
            settings = {"kind": "openai", "give_up_after_s": 0.3, "cls": Scored}
            env = bare(url, folder=tmp_path, max_num_workers=1, **settings)
            return await ended(env)

    assert asyncio.run(run()) == 1
    assert env._watch.kinds["status_401"] > 0 and "401" in logged.text


# -- the look --------------------------------------------------------------------------


def test_one_wrong_server_of_several_is_named(tmp_path):
    async def run():
        right = atropos_vllm(vllm_reply([RIGHT, WRONG, RIGHT, WRONG]))
        async with serving(right) as one, serving(sglang()) as other:
            end = await ended(bare(one, other, folder=tmp_path))
            return end.replace(other, "OTHER"), right.bodies

    end, asked = asyncio.run(run())
    assert end.startswith("openai.server_type: ") and "OTHER" in end
    assert asked == []


def test_a_wrong_server_that_is_started_later_is_refused_then(tmp_path, logged):
    port = free_port()

    async def run():
        running = asyncio.ensure_future(
            ended(bare(f"http://127.0.0.1:{port}", folder=tmp_path))
        )
        await until(lambda: "does not answer yet" in logged.text, "it is waited for")
        async with serving(sglang(), port):
            return await running

    assert asyncio.run(run()).startswith("openai.server_type: http://127.0.0.1")
    assert [r for r in logged.records if r.levelno >= logging.ERROR] == []


def test_serve_ends_while_it_waits_for_the_api():
    async def run():
        async with serving(openai_endpoint()) as url:
            api = NOWHERE.removesuffix("/v1")
            env = bare(url, kind="openai", rollout_server_url=api)
            await asyncio.wait_for(env.env_manager(), GUARD_S)

    with pytest.raises(SettingError, match=r"returns no token ids .*; `serve` needs"):
        asyncio.run(run())


def test_a_server_that_is_not_there_is_said_once_plainly_with_the_time(
    tmp_path, logged
):
    end = asyncio.run(ended(bare(NOWHERE, folder=tmp_path, give_up_after_s=0.4)))
    lines = [r for r in logged.records if NOWHERE in r.getMessage()]
    assert end == 1 and lines[0].levelno == logging.WARNING
    assert "nothing listens there" in lines[0].getMessage()
    assert "env.give_up_after_s" in lines[0].getMessage()
    assert sum("does not answer" in line.getMessage() for line in lines) == 1


def test_a_server_that_hangs_is_given_up_in_time(tmp_path, logged):
    async def run():
        async with hanging() as url:
            settings = {"kind": "openai", "give_up_after_s": 0.4}
            return await ended(bare(url, folder=tmp_path, **settings))

    assert asyncio.run(run()) == 1
    assert "takes the connection and says nothing" in logged.text


def test_an_outage_is_said_again_once_in_a_while(tmp_path, logged, monkeypatch):
    monkeypatch.setattr(patience, "OUTAGE_SAY_AGAIN_S", 0.1)
    asyncio.run(ended(bare(NOWHERE, folder=tmp_path, give_up_after_s=0.6)))
    assert logged.text.count("does not answer yet") > 1


class OwnServer(NativeVllmServer):
    """A client that a subclass names."""


class OwnClient(Bare):
    server_cls = OwnServer


def test_a_client_of_a_subclass_is_left_to_itself(tmp_path):
    odd = Odd({"POST /generate": lambda body: vllm_reply([RIGHT, WRONG] * 2)})

    async def run():
        async with serving(odd) as url:
            env = bare(url, cls=OwnClient, folder=tmp_path)

            async def work():
                await env._start_look.looked()

            await env._start_look.unless_refused(work(), trains=False)
            await env.close()

    asyncio.run(run())
    assert odd.asked == []


def test_the_hosts_mock_server_is_not_looked_at():
    env = ReasoningGymEnv(env_config(), [server_config()], testing=True)

    async def run():
        async def work():
            await env._start_look.looked()

        await env._start_look.unless_refused(work(), trains=False)
        await env.close()

    asyncio.run(run())


def test_an_environment_that_is_used_from_python_looks_at_nothing():
    odd = stock_vllm()

    async def run():
        async with serving(odd) as url:
            env = build_env(url, cls=Bare)
            await env.setup()
            await env.close()

    asyncio.run(run())
    assert odd.asked == []


# -- the commands ----------------------------------------------------------------------


def sentence_of(command, odd, folder, capsys, kind="vllm", **changes):
    """Run a command line at an odd server; return its status and what it said."""

    async def run():
        async with serving(odd) as url:
            argv = options_of(
                url,
                kind,
                data_path_to_save_groups=folder / "rows.jsonl",
                data_dir_to_save_evals=folder / "evals",
                **changes,
            )
            return await asyncio.to_thread(run_main, [command, *argv])

    status = asyncio.run(run())
    return status, capsys.readouterr().err


@pytest.mark.processes
@pytest.mark.parametrize("command", ["serve", "process", "evaluate"])
def test_a_command_at_another_server_ends_with_one_sentence(command, tmp_path, capsys):
    status, said = sentence_of(command, sglang(), tmp_path, capsys)
    assert status == 2 and said.count("error: ") == 1
    assert "error: openai.server_type: " in said and "looks like SGLang" in said
    assert "Traceback" not in said and "does not answer" not in said


def test_a_model_that_takes_another_limit_is_asked_with_that(tmp_path):
    def reply(body):
        return (400, UNSUPPORTED) if "max_tokens" in body else chat(body)

    odd = openai_endpoint(reply)

    async def run():
        async with serving(odd) as url:
            env = bare(url, kind="openai", folder=tmp_path)
            prompt = await env._requests.prompt(env._requests.messages("2 + 2"))
            made = [
                await env._inference.generate(prompt, 2, Sampling(9, 1.0, 1.0, "train"))
                for _ in range(2)
            ]
            await env.close()
            return made

    made = asyncio.run(run())
    assert [len(group) for group in made] == [2, 2]
    limits = ["max_completion_tokens" in body for body in odd.bodies]
    assert limits == [False, True, True]


@pytest.mark.processes
def test_serve_ends_where_a_web_page_is_in_the_place_of_the_api(tmp_path, capsys):
    async def run():
        right = atropos_vllm()
        async with serving(right) as url, serving(web_page()) as page:
            argv = options_of(url, rollout_server_url=page)
            status = await asyncio.to_thread(run_main, ["serve", *argv])
            return status, page

    status, page = asyncio.run(run())
    said = capsys.readouterr().err
    assert status == 2 and said.count("error: ") == 1
    assert f"error: env.rollout_server_url: what is at {page} is an ordinary" in said
