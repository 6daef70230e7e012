"""The rooms of the host's side, one by one: arithmetic, URLs, HTTP, files."""

import asyncio
import dataclasses
import json
import logging
import stat
import time

import aiohttp
import pytest
from aiohttp import web
from atroposlib.envs.server_handling.server_manager import APIServerConfig
from parts import (
    NOWHERE,
    RIGHT,
    TOKENIZER,
    WRONG,
    build_env,
    rollout,
    server_config,
    vllm_reply,
    vllm_server,
)

from rg_env import patience
from rg_env.atropos import checkpoint_files, group_forms, process_rows
from rg_env.atropos.api_client import ApiClient, ApiFaulted, ApiRefused, ApiUnreachable
from rg_env.atropos.checkpoint_files import BadCheckpoint
from rg_env.atropos.flight_limits import (
    FlightLimits,
    groups_to_start,
    queue_holds_the_end,
)
from rg_env.atropos.server_configs import server_list, slurm_urls
from rg_env.errors import SettingError
from rg_env.inference.generation import InferenceFailed, Sampling
from rg_env.inference.outages import OutageWatch, kind_of
from rg_env.inference.prompts import render_prompt
from rg_env.rollouts.dump_writer import read_groups
from rg_env.rollouts.row_writer import RowWriter
from rg_env.rollouts.run_dumps import Dumps
from rg_env.simulation.api_process import running_api
from rg_env.simulation.inference_server import serve_app

# -- workers ---------------------------------------------------------------------------

LIMITS = FlightLimits(
    max_workers=8,
    group_size=8,
    batch_size=64,
    own_batch_size=64,
    max_batches_offpolicy=3,
    min_batch_allocation=None,
)


def status(queue=0, own=0, step=0, pack=8):
    return {
        "queue_size": queue,
        "self_queue_size": own,
        "max_group_size": pack,
        "current_step": step,
    }


def started(queue=0, asking=0, in_flight=0, own=0, **limits):
    changed = dataclasses.replace(LIMITS, **limits)
    return groups_to_start(changed, status(queue, own), asking, in_flight, 10**6)


@pytest.mark.parametrize(("queue", "allowed"), [(0, 8), (17, 7), (23, 1), (24, 0)])
def test_groups_in_flight_and_in_the_queue_stay_within_the_offpolicy_bound(
    queue, allowed
):
    assert started(queue) == allowed


def test_a_bound_of_0_batches_is_no_bound():
    assert started(10**6, max_batches_offpolicy=0) == 8


def test_a_group_that_has_its_replies_leaves_its_place_to_another():
    assert started(asking=8, in_flight=8) == 0
    assert started(asking=5, in_flight=8) == 3


def test_groups_being_scored_and_sent_are_bounded_as_well():
    assert started(asking=0, in_flight=15) == 1
    assert started(asking=0, in_flight=16) == 0


def test_an_instance_with_a_minimum_goes_on_while_others_fill_the_queue():
    assert started(100, own=0, min_batch_allocation=0.25) > 0
    assert started(100, own=100, min_batch_allocation=0.25) == 0


@pytest.mark.parametrize(
    ("queue", "in_flight", "allowed"), [(0, 0, 8), (3, 0, 5), (3, 4, 1), (3, 5, 0)]
)
@pytest.mark.parametrize("minimum", [None, 1.0])
def test_no_more_groups_are_started_than_the_run_needs(
    queue, in_flight, allowed, minimum
):
    limits = dataclasses.replace(LIMITS, min_batch_allocation=minimum)
    last = status(queue, step=10)
    assert groups_to_start(limits, last, in_flight, in_flight, 10) == allowed


@pytest.mark.parametrize(
    ("step", "queue", "ends"),
    [(0, 0, False), (10, 0, False), (11, 0, True), (9, 8, False), (9, 16, True)],
)
def test_the_run_is_complete_when_batches_made_and_queued_pass_its_last_step(
    step, queue, ends
):
    assert queue_holds_the_end(LIMITS, status(queue, step=step), 10) is ends


# -- servers ---------------------------------------------------------------------------


@pytest.fixture
def scontrol(tmp_path, monkeypatch):
    """A `scontrol` that knows three nodes."""
    program = tmp_path / "scontrol"
    program.write_text('#!/bin/sh\n[ "$*" = "show hostnames n[1-3]" ] || exit 1\n')
    with program.open("a") as file:
        file.write("printf 'n1\\nn2\\nn3\\n'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))


JOB = {"SLURM_JOB_NODELIST": "n[1-3]", "NUM_TRAINING_NODES": "1"}


def test_slurm_gives_eight_servers_for_each_inference_node(scontrol):
    urls = slurm_urls(JOB)
    assert urls[:2] == ["http://n2:9000/v1", "http://n2:9001/v1"]
    assert len(urls) == 16 and urls[-1] == "http://n3:9007/v1"


def test_tensor_parallelism_divides_the_servers_of_a_node(scontrol):
    urls = slurm_urls({**JOB, "INFER_TP": "4"})
    assert urls == [f"http://n{n}:{p}/v1" for n in (2, 3) for p in (9000, 9001)]


def test_every_slurm_server_is_like_the_one_that_was_configured(scontrol):
    servers = server_list(
        [server_config(kind="sglang", timeout=7)],
        tokenizer_name=TOKENIZER,
        slurm=True,
        environ=JOB,
    )
    assert len(servers) == 16
    assert {(s.server_type, s.timeout) for s in servers} == {("sglang", 7)}


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({}, "SLURM_JOB_NODELIST"),
        ({"SLURM_JOB_NODELIST": "n[1-3]"}, "NUM_TRAINING_NODES"),
        ({**JOB, "NUM_TRAINING_NODES": "one"}, "NUM_TRAINING_NODES"),
        ({**JOB, "INFER_TP": "0"}, "INFER_TP"),
        ({**JOB, "INFER_TP": "9"}, "INFER_TP"),
        ({**JOB, "SLURM_JOB_NODELIST": "other"}, "scontrol"),
        ({**JOB, "NUM_TRAINING_NODES": "3"}, "NUM_TRAINING_NODES"),
    ],
)
def test_a_slurm_variable_that_cannot_be_used_is_named(scontrol, environ, named):
    with pytest.raises(SettingError, match=named):
        slurm_urls(environ)


def test_a_machine_without_slurm_is_told_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SettingError, match="--slurm false"):
        slurm_urls(JOB)


def listed(*configs):
    return server_list(list(configs), tokenizer_name="t", slurm=False)


def test_an_empty_key_and_a_missing_tokenizer_are_filled_in():
    (server,) = listed(
        APIServerConfig(base_url=NOWHERE, api_key="", server_type="vllm")
    )
    assert server.api_key and server.tokenizer_name == "t"


def test_no_server_is_refused():
    with pytest.raises(SettingError, match="found none"):
        listed()


def test_servers_of_two_types_are_refused():
    with pytest.raises(SettingError, match=r"\['sglang', 'vllm'\]"):
        listed(server_config(), server_config(kind="sglang"))


def test_a_server_without_a_url_is_refused():
    with pytest.raises(SettingError, match=r"openai\.base_url"):
        listed(APIServerConfig(base_url=None, server_type="vllm"))


# -- checkpoint ------------------------------------------------------------------------


class Part:
    def __init__(self, value):
        self.value = value

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = int(state["value"])


SETTINGS = {"seed": 1}


def test_state_goes_through_a_file(tmp_path):
    target = checkpoint_files.path(str(tmp_path), "env", 3)
    state = checkpoint_files.collect({"a": Part(1), "b": Part(2)}, SETTINGS)
    checkpoint_files.write(target, state)
    a, b = Part(0), Part(0)
    checkpoint_files.restore({"a": a, "b": b}, SETTINGS, target)
    assert (a.value, b.value) == (1, 2)


@pytest.mark.parametrize("broken", [{}, {"value": "x"}, None, [1]])
def test_a_part_that_cannot_be_loaded_leaves_every_part_as_it_was(tmp_path, broken):
    target = checkpoint_files.path(str(tmp_path), "env", 3)
    state = checkpoint_files.collect({"a": Part(5)}, SETTINGS)
    checkpoint_files.write(target, {**state, "b": broken})
    a, b = Part(0), Part(0)
    with pytest.raises(BadCheckpoint, match=r"step-3\.json"):
        checkpoint_files.restore({"a": a, "b": b}, SETTINGS, target)
    assert (a.value, b.value) == (0, 0)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"settings": {"seed": 2}}, "its settings and hash differ"),
        ({"settings": None}, "does not say which settings"),
        ({"settings_hash": ""}, "its settings and hash differ"),
        ({"version": 1}, "has version 1, needed is 2"),
    ],
)
def test_a_file_that_was_changed_is_refused(tmp_path, changes, said):
    target = checkpoint_files.path(str(tmp_path), "env", 3)
    state = checkpoint_files.collect({"a": Part(5)}, SETTINGS)
    checkpoint_files.write(target, {**state, **changes})
    with pytest.raises(BadCheckpoint, match=said):
        checkpoint_files.restore({"a": Part(0)}, SETTINGS, target)


def test_a_file_of_other_settings_is_refused_with_what_differs(tmp_path):
    target = checkpoint_files.path(str(tmp_path), "env", 3)
    checkpoint_files.write(target, checkpoint_files.collect({"a": Part(5)}, SETTINGS))
    with pytest.raises(BadCheckpoint, match="another seed: 1, now 2"):
        checkpoint_files.restore({"a": Part(0)}, {"seed": 2}, target)


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    target = checkpoint_files.path(str(tmp_path), "env", 3)
    checkpoint_files.write(target, {"version": 1})
    with pytest.raises(TypeError):
        checkpoint_files.write(target, {"version": object()})
    assert checkpoint_files.read(target) == {"version": 1}


def test_the_newest_step_is_found_by_number_and_not_by_name(tmp_path):
    for step in (9, 10, 30):
        checkpoint_files.write(checkpoint_files.path(str(tmp_path), "env", step), {})
    (tmp_path / "env_checkpoints" / "env" / "step-x.json").write_text("")
    found = checkpoint_files.newest(str(tmp_path), "env", 29)
    assert found is not None and found.name == "step-10.json"
    assert checkpoint_files.newest(str(tmp_path), "env", 8) is None


# -- API client ------------------------------------------------------------------------


def asked(handler, method="GET", path="/x", **patience):
    """Ask a server once, or patiently."""

    async def run():
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        async with serve_app(app) as url:
            client = ApiClient(url)
            try:
                if not patience:
                    return await client.request(method, path)
                return await client.patiently(
                    lambda: client.request(method, path), **patience
                )
            finally:
                await client.close()
                await client.close()

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("status_code", "error"),
    [(500, ApiFaulted), (503, ApiFaulted), (429, ApiFaulted), (422, ApiRefused)],
)
def test_a_status_becomes_its_error(status_code, error):
    async def handler(request):
        return web.Response(status=status_code, text="why")

    with pytest.raises(error, match=f"GET /x: status {status_code}"):
        asked(handler)


@pytest.mark.parametrize("text", ["<html>", "[]", '"ok"', "null"])
def test_an_answer_that_is_no_object_is_no_answer(text):
    async def handler(request):
        return web.Response(text=text)

    with pytest.raises(ApiUnreachable):
        asked(handler)


def test_a_faulting_api_is_asked_again_and_its_recovery_is_said_once(logged):
    left = [500, 500]

    async def handler(request):
        return web.Response(status=left.pop()) if left else web.json_response({"a": 1})

    assert asked(handler, even_if_refused=False) == {"a": 1}
    said = [record.getMessage() for record in logged.records]
    assert len(said) == 2 and "status 500" in said[0] and "again" in said[1]


def test_a_refusal_is_waited_out_where_it_cannot_be_meant():
    left = [404, 403]

    async def handler(request):
        return web.Response(status=left.pop()) if left else web.json_response({"a": 1})

    assert asked(handler, even_if_refused=True) == {"a": 1}


def test_a_refusal_is_not_tried_again():
    count = 0

    async def handler(request):
        nonlocal count
        count += 1
        return web.Response(status=422)

    with pytest.raises(ApiRefused):
        asked(handler, even_if_refused=False)
    assert count == 1


# -- the talk with the real API --------------------------------------------------------


async def registered(http, api, batch_size):
    """Be a trainer that has started."""
    values = {
        "wandb_group": "g",
        "wandb_project": "p",
        "batch_size": batch_size,
        "max_token_len": 512,
        "checkpoint_dir": "",
        "save_checkpoint_interval": 0,
        "starting_step": 0,
        "num_steps": 33,
    }
    async with http.post(f"{api}/register", json=values):
        pass
    async with http.get(f"{api}/batch"):
        pass


async def after_registration(batch_size, work, **changes):
    async with running_api() as api, aiohttp.ClientSession() as http:
        await registered(http, api, batch_size)
        env = build_env(rollout_server_url=api, **changes)
        try:
            await env.register_env()
            await env.get_server_info()
            return await work(env)
        finally:
            await env.close()


async def nothing(env):
    return env


def test_the_trainers_batch_limit_and_steps_are_taken_over():
    env = asyncio.run(after_registration(16, nothing, total_steps=-1, wandb_name=None))
    assert (env.config.batch_size, env.max_token_len) == (16, 512)
    assert env.config.total_steps == 33
    assert env.wandb_prepend == "reasoning_gym_0"


def test_a_group_that_does_not_fit_the_batch_is_refused():
    with pytest.raises(SettingError, match=r"env\.group_size: 8 .* batch of 4"):
        asyncio.run(after_registration(4, nothing, group_size=8))


def test_a_batch_that_no_groups_make_up_is_warned_of(logged):
    asyncio.run(after_registration(18, nothing, group_size=4))
    assert "no multiple" in logged.text


def test_a_group_that_the_api_refuses_is_counted_and_does_not_end_the_run():
    async def work(env):
        scored = await env.score([rollout(RIGHT), rollout(WRONG)])
        scored["masks"] = "no masks"
        env.ledger.ask(2)
        await env.handle_send_to_api(scored)
        return env.metrics

    metrics = asyncio.run(after_registration(16, work, group_size=2))
    assert metrics.ledger.in_flight == 0
    assert metrics.ledger.fates["sent"] == 0


def test_several_groups_can_be_sent_at_once():
    async def work(env):
        groups = [await env.score([rollout(RIGHT), rollout(WRONG)]) for _ in range(2)]
        env.ledger.ask(4)
        await env.handle_send_to_api(groups)
        await env.get_status()
        return env.ledger.fates["sent"], env.status_dict["queue_size"]

    assert asyncio.run(after_registration(16, work, group_size=2)) == (4, 2)


# -- watch -----------------------------------------------------------------------------


class Server:
    def __init__(self, healthy):
        self.server_healthy = healthy
        self.config = server_config()


async def watched(healthy, give_up_after_s, wait_s):
    watched = OutageWatch([Server(healthy)])
    watched.start(give_up_after_s=give_up_after_s)
    await asyncio.sleep(wait_s)
    await watched.stop()
    await watched.stop()
    return watched


def test_unhealthy_servers_are_named_once_and_given_up_in_time(logged):
    found = asyncio.run(watched(False, 0.5, 2.6))
    assert found.gave_up.is_set() and found.outages == 1
    downs = [r for r in logged.records if "does not answer" in r.getMessage()]
    assert len(downs) == 1 and NOWHERE in downs[0].getMessage()


def test_without_a_bound_it_never_gives_up():
    assert not asyncio.run(watched(False, None, 1.2)).gave_up.is_set()


def test_healthy_servers_are_no_episode():
    assert asyncio.run(watched(True, 0.1, 1.2)).outages == 0


async def failing(monkeypatch, *reasons):
    """Let requests fail without an answer between them, after an episode's length."""
    monkeypatch.setattr(patience, "OUTAGE_AFTER_S", 0.0)
    watched = OutageWatch([Server(True)])
    for reason in reasons:
        await watched.note_failure(reason)
    return watched


def test_an_answer_ends_an_episode(logged, monkeypatch):
    async def run():
        watched = await failing(monkeypatch, "500")
        watched.note_answer()
        await watched.note_failure("500")
        return watched

    watched = asyncio.run(run())
    assert (watched.failures, watched.outages) == (2, 2)
    assert "answers again" in logged.text


def test_an_episode_is_one_line(logged, monkeypatch):
    watched = asyncio.run(failing(monkeypatch, "500", "502", "503"))
    downs = [r for r in logged.records if "does not answer" in r.getMessage()]
    assert watched.outages == len(downs) == 1


def test_a_failed_request_among_answered_ones_is_no_episode(logged):
    async def run():
        watched = OutageWatch([Server(True)])
        for _ in range(3):
            await watched.note_failure("500")
            watched.note_answer()
        return watched

    watched = asyncio.run(run())
    assert (watched.failures, watched.outages) == (3, 0)
    assert "does not answer" not in logged.text


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("ClientResponseError: 503, message='x', url='http://h:500/v1'", "status_503"),
        ("InternalServerError: Error code: 500 - {}", "status_500"),
        ("status 429: later", "status_429"),
        ("ServerDisconnectedError: Server disconnected", "ServerDisconnectedError"),
        ("KeyError: 'logprobs'", "KeyError"),
        ("1 of 4 usable completions after 3 requests", "unusable"),
    ],
)
def test_failed_requests_are_counted_by_their_kind(reason, kind):
    assert kind_of(reason) == kind


def test_giving_up_ends_a_request_that_never_returns():
    async def run():
        watched = OutageWatch([Server(True)])
        asking = asyncio.ensure_future(watched.unless_given_up(asyncio.sleep(3600)))
        await asyncio.sleep(0)
        watched.gave_up.set()
        await asking

    with pytest.raises(InferenceFailed):
        asyncio.run(run())


# -- inference -------------------------------------------------------------------------


def completions(reply, n=2, max_tokens=50, kind="vllm"):
    """Ask a server that answers as told for completions."""

    async def run():
        async with vllm_server(reply) as url:
            env = build_env(url, kind)
            try:
                messages = env._requests.messages("2 + 2?")
                prompt = render_prompt(env.tokenizer, messages)
                sampling = Sampling(max_tokens, 1.0, 1.0, "train")
                made = await env._inference.generate(prompt, n, sampling)
                return prompt, made
            finally:
                await env.close()

    return asyncio.run(run())


def test_completions_carry_tokens_masks_and_logprobs_of_one_length():
    prompt, made = completions(lambda body: vllm_reply([RIGHT, WRONG]))
    assert [c.text for c in made] == [RIGHT, WRONG]
    for completion in made:
        begin = len(prompt.tokens)
        assert completion.tokens[:begin] == list(prompt.tokens)
        assert completion.masks[:begin] == [-100] * begin
        assert completion.masks[begin:] == completion.tokens[begin:]
        assert len(completion.logprobs) == len(completion.tokens)


def test_the_prompt_is_what_the_server_is_sent():
    bodies = []

    def reply(body):
        bodies.append(body)
        return vllm_reply([RIGHT] * body["n"])

    prompt, _ = completions(reply)
    assert bodies[0]["prompt"]["prompt_token_ids"] == list(prompt.tokens)
    assert (bodies[0]["n"], bodies[0]["max_tokens"]) == (2, 50)


def test_missing_choices_are_asked_for_again():
    wanted = []

    def reply(body):
        wanted.append(body["n"])
        return vllm_reply([RIGHT])

    _, made = completions(reply, n=3)
    assert len(made) == 3 and wanted == [3, 2, 1]


def test_too_few_choices_again_and_again_are_a_failure():
    with pytest.raises(InferenceFailed, match="3 of 4"):
        completions(lambda body: vllm_reply([RIGHT]), n=4)


def test_surplus_choices_are_left_out():
    _, made = completions(lambda body: vllm_reply([RIGHT] * 5))
    assert len(made) == 2


@pytest.mark.parametrize("logprob", [float("nan"), float("-inf")])
def test_a_completion_with_a_logprob_that_is_no_number_is_not_used(logprob):
    replies = [vllm_reply([RIGHT] * 2), vllm_reply([WRONG] * 2, logprob=logprob)]
    _, made = completions(lambda body: replies.pop())
    assert [c.text for c in made] == [RIGHT, RIGHT]


def test_a_completion_that_is_too_long_is_cut_and_counts_as_truncated():
    prompt, made = completions(
        lambda body: vllm_reply(["word " * 100] * 2), max_tokens=10
    )
    for completion in made:
        assert len(completion.tokens) == len(prompt.tokens) + 10
        assert len(completion.masks) == len(completion.logprobs)
        assert completion.finish_reason == "length"


MALFORMED = {
    "no fields": {},
    "other fields": {"text": "hello"},
    "null": {"logprobs": None, "finish_reasons": None},
    "a list": [],
    "no such reason": vllm_reply([RIGHT, RIGHT], finish_reason="exploded"),
    "status 500": 500,
    "status 404": 404,
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_reply_that_cannot_be_used_is_a_failed_request(case):
    with pytest.raises(InferenceFailed):
        completions(lambda body: MALFORMED[case])


class Template:
    """A tokenizer whose template puts a BOS, as its encoding does."""

    bos_token_id = 1
    text = "<s>hi"

    def apply_chat_template(self, messages, tokenize, add_generation_prompt):
        assert not tokenize and add_generation_prompt
        return self.text

    def encode(self, text, add_special_tokens):
        return [1, 1, 7, 8]


def test_a_double_bos_counts_once():
    assert list(render_prompt(Template(), []).tokens) == [1, 7, 8]


def test_a_template_that_opens_the_thinking_is_noticed():
    assert not render_prompt(Template(), []).thinking_open
    opening = Template()
    opening.text = "hi<think>\n"
    assert render_prompt(opening, []).thinking_open


def test_an_endpoint_of_text_gives_tokens_of_our_own_and_no_logprobs():
    async def chat(request):
        body = await request.json()
        choices = [
            {
                "index": i,
                "message": {"role": "assistant", "content": RIGHT},
                "finish_reason": "stop",
            }
            for i in range(body["n"])
        ]
        reply = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
        return web.json_response({**reply, "choices": choices})

    async def run():
        app = web.Application()
        app.add_routes([web.post("/v1/chat/completions", chat)])
        async with serve_app(app) as url:
            env = build_env(url, "openai")
            try:
                prompt = render_prompt(env.tokenizer, env._requests.messages("?"))
                sampling = Sampling(50, 1.0, 1.0, "train")
                return prompt, await env._inference.generate(prompt, 2, sampling)
            finally:
                await env.close()

    prompt, made = asyncio.run(run())
    assert len(made) == 2
    for completion in made:
        assert completion.logprobs is None and completion.text == RIGHT
        assert completion.tokens[: len(prompt.tokens)] == list(prompt.tokens)
        assert len(completion.tokens) == len(completion.masks) > len(prompt.tokens)


# -- groups, rows, dumps ---------------------------------------------------------------


def test_completion_tokens_are_those_the_masks_leave_unmasked():
    assert group_forms.completion_tokens(rollout(RIGHT, prompt=7, length=5)) == 5


def test_an_entry_from_outside_names_its_task_by_its_metadata():
    entry = {"metadata": {"source_dataset": "sums"}}
    assert group_forms.task_of(entry, object()) == "sums"
    assert group_forms.task_of({}, object()) == "unknown"


def test_the_last_row_is_on_disk_before_the_file_is_closed(tmp_path):
    writer = RowWriter(tmp_path / "rows.jsonl")
    writer.write({"tokens": [[1]], "task": "gcd"})
    (row,) = read_groups(tmp_path / "rows.jsonl")
    assert list(row) == ["task", "tokens"]
    writer.close()
    writer.close()


def test_a_file_of_no_rows_is_not_left_behind(tmp_path):
    RowWriter(tmp_path / "rows.jsonl").close()
    assert list(tmp_path.iterdir()) == []
    assert process_rows.write_page_of(tmp_path / "rows.jsonl") is None


def record_of(*texts):
    async def run():
        env = build_env(ensure_scores_are_not_same=False)
        rollouts = [rollout(text) for text in texts]
        scores = await group_forms.score_rollouts(env._scorer(), rollouts)
        await env.close()
        return group_forms.build_record(rollouts, scores, [s.value for s in scores])

    return asyncio.run(run())


KEEPS_NOTHING = {"keep_good": False, "keep_failed": False, "threshold": 0.7}


def dumped(folder, *records, cancel=False, **changes):
    async def run():
        dumps = Dumps(folder, **{**KEEPS_NOTHING, **changes})
        for record in records:
            writing = asyncio.ensure_future(dumps.record(record, {}))
            await asyncio.sleep(0)
            if cancel:
                writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        await dumps.close()
        await dumps.close()

    asyncio.run(run())
    return {p.name.rsplit("_", 2)[0]: list(read_groups(p)) for p in folder.iterdir()}


SAVED = "reasoning_gym_environment_rollouts"
FAILED = "reasoning_gym_environment_FAILED_rollouts"


def test_good_and_failed_groups_go_to_their_own_files(tmp_path):
    found = dumped(
        tmp_path,
        record_of(RIGHT, WRONG),
        record_of(RIGHT, RIGHT),
        record_of(WRONG, WRONG),
        keep_good=True,
        keep_failed=True,
    )
    assert {name: len(groups) for name, groups in found.items()} == {
        SAVED: 2,
        FAILED: 1,
    }


def test_nothing_is_dumped_unless_asked_for(tmp_path):
    assert dumped(tmp_path, record_of(RIGHT, WRONG), record_of(WRONG, WRONG)) == {}


def test_a_threshold_of_1_means_perfect(tmp_path):
    found = dumped(
        tmp_path,
        record_of(RIGHT, WRONG),
        record_of(WRONG, WRONG),
        keep_good=True,
        threshold=1.0,
    )
    assert [len(groups) for groups in found.values()] == [1]


def test_a_group_whose_caller_is_cancelled_is_written_all_the_same(tmp_path):
    found = dumped(tmp_path, record_of(RIGHT, WRONG), cancel=True, keep_good=True)
    assert len(found[SAVED]) == 1


def test_what_a_killed_process_left_is_completed_by_the_next_start(tmp_path):
    line = json.dumps({"item_id": "gcd", "rollouts": []})
    left = tmp_path / f"{SAVED}_old_0000.jsonl.part"
    left.write_text(f'{line}\n{{"item_id": "to')

    async def run():
        env = build_env(data_dumps_dir=str(tmp_path))
        await env.setup()
        await env.close()

    asyncio.run(run())
    (complete,) = tmp_path.iterdir()
    assert complete.name == f"{SAVED}_old_0000.jsonl"
    assert [g["item_id"] for g in read_groups(complete)] == ["gcd"]


# -- W&B's rows and the log ------------------------------------------------------------


def test_more_rollouts_for_wandb_than_a_group_has_lose_nothing():
    async def run():
        env = build_env(num_rollouts_per_group_for_logging=9, num_rollouts_to_keep=2)
        env.config.use_wandb = True
        scored = await env.score([rollout(RIGHT), rollout(WRONG)])
        for _ in range(3):
            await env.add_rollouts_for_wandb(scored)
        await env.close()
        return env.rollouts_for_wandb

    kept = asyncio.run(run())
    assert [len(rollouts) for rollouts in kept] == [2, 2]


def test_nothing_is_decoded_for_wandb_when_it_is_off():
    async def run():
        env = build_env()
        await env.add_rollouts_for_wandb({"tokens": "not even a list"})
        await env.close()
        return env.rollouts_for_wandb

    assert asyncio.run(run()) == []


@pytest.mark.parametrize(("quiet", "level"), [(True, "WARNING"), (False, "DEBUG")])
def test_the_hosts_lines_are_hidden_where_the_setting_says_so(quiet, level):
    env = build_env(suppress_base_env_logs=quiet)
    host = logging.getLogger("atroposlib.envs.base")
    assert logging.getLevelName(host.getEffectiveLevel()) == level
    asyncio.run(env.close())
    build_and_close()


def build_and_close():
    asyncio.run(build_env().close())


def test_the_event_loop_turns_between_two_groups_that_are_started():
    turns = 0

    async def turn():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def work(env):
        seen = []

        def start(item, carry):
            seen.append(turns)
            env.workers.add(item)

        await env.get_status()
        env.backlog.extend(range(4))
        env._groups.start = start
        turning = asyncio.create_task(turn())
        await env.add_train_workers()
        turning.cancel()
        env.workers.clear()
        return seen

    seen = asyncio.run(after_registration(16, work, max_num_workers=4))
    assert len(seen) == len(set(seen)) == 4


def test_a_group_that_takes_too_long_is_cancelled_and_counted():
    def slowly(body):
        time.sleep(0)
        return vllm_reply([RIGHT] * body["n"])

    async def run():
        async with vllm_server(slowly) as url:
            env = build_env(url, worker_timeout=0.05)
            await env.setup()
            gone = asyncio.Event()
            env._inference.generate = lambda *_: gone.wait()
            env._groups.start(await env.get_next_item(), env.handle_env)
            await asyncio.sleep(0.2)
            env._groups.cancel_timed_out(env.config.worker_timeout)
            await asyncio.sleep(0.05)
            found = (len(env.workers), dict(env.ledger.fates), env.ledger.in_flight)
            await env.close()
            return found

    assert asyncio.run(run()) == (0, {"cancelled": 4}, 0)
