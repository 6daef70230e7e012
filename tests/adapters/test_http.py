"""The score server: equal scores, bounded clients, and no reward made of a failure."""

import asyncio
import contextlib
import http.client
import json
import runpy
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("uvicorn")

from rg_env import Item, Tasks, score
from rg_env.adapters import http as server
from rg_env.adapters.dataset_export import item_rows
from rg_env.adapters.http import ScoreServer
from rg_env.library import installed_library as pool_module
from rg_env.serving import ClientCheck
from tests.support.parts import run_main
from tests.support.processes import descendants, left_alive
from tests.support.served import GUARD_S, Served

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("own_pool")]

COMMAND = [sys.executable, "-m", "rg_env.cli.console", "score-server", "--port=0"]
SECRET = "0123456789abcdef"
HEAD = b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
CHUNKED = HEAD.replace(b"Content-Length: %d", b"Transfer-Encoding: chunked")
REASONING = {"type": "reasoning", "summary": []}


@pytest.fixture
def start():
    with contextlib.ExitStack() as running:

        def start(tasks=None, secret=None, **options):
            tasks = tasks or Tasks("gcd", "spell_backward", levels="random")
            served = ScoreServer(tasks, **options)
            found = Served(ClientCheck(served, secret))
            running.callback(found.stop)
            return found

        yield start


@pytest.fixture
def served(start):
    return start()


@pytest.fixture
def item():
    item = next(Tasks("gcd", levels=0.5))
    assert Item.from_json(item.to_json().encode()).entry  # kept if workers are lost
    return item


def positions(reply):
    return [item["position"] for item in reply["items"]]


def row(item, text, *before, **how):
    message = {"type": "message", "content": [{"type": "output_text", "text": text}]}
    return {
        "responses_create_params": {"input": item.messages, "metadata": None},
        "verifier_metadata": {"item": item.to_json(), **how},
        "response": {"output": [*before, message]},
    }


ALL = {"format": 1.0, "correct": 1.0, "partial": 1.0}


# -- scores ----------------------------------------------------------------------------


def test_scores_are_those_of_score(served, item):
    thought = "<think>so</think><answer>2</answer>"
    completions = ["no answer", thought, f"<answer>{item.gold}</answer>", "é\u2028\0"]
    body = {"item": json.loads(item.to_json()), "completions": completions}
    status, reply = served.post("/score", body)
    assert (status, reply["results"]) == (
        200,
        [vars(result) for result in score(item, completions)],
    )


def test_a_lost_score_is_null_beside_others_and_status_503_without(
    served, item, lost_workers
):
    body = {"item": item.to_json(), "completions": ["", "<answer>1</answer>"]}
    _, reply = served.post("/score", body)
    assert [result["value"] for result in reply["results"]] == [0.0, None]
    assert "closed" in reply["results"][1]["reason"]
    del body["completions"][0]
    status, reply, headers = served.request("POST", "/score", body)
    assert (status, headers["Retry-After"]) == (503, "1")
    assert "closed" in reply["error"]


@pytest.mark.parametrize(
    "changed", [{"digest": "0" * 16}, {"task": "none"}, {"seed": -1}, {"params": 1}]
)
def test_an_item_that_is_not_made_here_is_status_422(served, item, changed):
    unknown = json.loads(item.to_json()) | changed
    body = {"item": unknown, "completions": ["<answer>1</answer>"]}
    assert served.post("/score", body)[0] == 422


def test_half_a_character_in_a_request_costs_nobody_a_score(served, item):
    right = f"\ud83d<answer>{item.gold}</answer>"
    body = {"item": json.loads(item.to_json()), "completions": [right, "\ud83d"]}
    _, reply = served.post("/score", body)
    assert [result["value"] for result in reply["results"]] == [1.0, 0.0]
    assert served.post("/verify", row(item, right))[1]["reward"] == 1.0


# -- items -----------------------------------------------------------------------------


def test_items_are_those_of_the_stream_by_their_position(served):
    tasks = Tasks("gcd", "spell_backward", levels="random")
    expected = [json.loads(next(tasks).to_json()) for _ in range(6)]
    later, first = (served.get(f"/items?start={n}&count=3") for n in (3, 0))
    found = [*first["items"], *later["items"]]
    assert [row["item"] for row in found] == expected
    assert positions(first) + positions(later) == list(range(6))
    assert (first["next"], later["next"]) == (3, 6)
    assert all("gold" not in row for row in found)


def test_values_move_the_levels_that_follow_them(start):
    served = start(Tasks("gcd", levels="curriculum"))
    levels = []
    for _ in range(6):
        (shown,) = served.get("/items")["items"]
        body = {"item": shown["item"], "values": [1.0, None, 1.0]}
        levels.append(served.post("/feedback", body)[1]["level"])
    assert levels[-1] > levels[0]
    other = Item("sudoku", {}, 1).to_json()
    assert served.post("/feedback", {"item": other, "values": [1.0]})[0] == 422


def test_a_server_with_fixed_levels_refuses_values(served, item):
    body = {"item": item.to_json(), "values": [1.0, 0.0]}
    assert served.post("/feedback", body)[0] == 409


# -- NeMo Gym --------------------------------------------------------------------------


def test_a_row_comes_back_with_its_reward(served, item):
    given = row(item, f"<answer>{item.gold}</answer>", REASONING)
    assert served.post("/seed_session", given) == (200, {})
    for path in ("/verify", "/ng-rollout/r-1/verify"):  # the second if it is observed
        status, found = served.post(path, given)
        scored = {"reward": 1.0, "outcome": "right", "reward_components": ALL}
        assert (status, found) == (200, given | scored)


def test_an_exported_row_is_one_of_nemo_gym(served, item):
    (exported,) = item_rows(Tasks("gcd"), [item])
    answered = {"response": row(item, f"<answer>{item.gold}</answer>")["response"]}
    assert served.post("/verify", exported | answered)[1]["reward"] == 1.0


@pytest.mark.parametrize(
    ("text", "before", "outcome"),
    [
        ("so</think><answer>{}</answer>", (), "right"),
        ("<answer>{}</answer>", (), "unfinished_thinking"),
        ("<answer>{}</answer>", (REASONING,), "right"),  # which has been put apart
    ],
)
def test_a_row_may_go_on_with_the_thinking_of_the_prompt(
    served, item, text, before, outcome
):
    given = row(item, text.format(item.gold), *before, thinking_open=True)
    assert served.post("/verify", given)[1]["outcome"] == outcome


def test_a_row_without_a_score_is_masked_where_that_is_wanted(
    start, item, lost_workers
):
    _, found = start(masks=True).post("/verify", row(item, "<answer>1</answer>"))
    assert (found["reward"], found["mask_sample"]) == (0.0, True)
    assert found["failure_kind"] == "verifier_error"
    assert "closed" in found["failure_reason"]


def test_a_response_that_the_model_server_failed_to_make_has_no_score(start, item):
    failed = row(item, "")
    failed["response"]["status"] = "failed"
    assert start().post("/verify", failed)[0] == 503
    _, found = start(masks=True).post("/verify", failed)
    assert (found["reward"], found["mask_sample"]) == (0.0, True)


def test_the_mean_of_rewards_leaves_masked_rows_out(served):
    rows = [{"reward": 1.0, "task": "gcd"}, {"reward": 0.0, "mask_sample": True}]
    _, found = served.post("/aggregate_metrics", {"verify_responses": rows})
    assert found["agent_metrics"] == found["key_metrics"] == {"mean/reward": 1.0}


# -- slime and verl --------------------------------------------------------------------


def remote_reward(served, item, text, query=""):
    """Call the example for verl, which sends what slime sends."""
    path = Path(__file__).parents[2] / "examples/verl_remote_reward.py"
    example = runpy.run_path(str(path))
    example["compute_score"].__globals__["PAUSES_S"] = (0, 0)
    info = {"item": item.to_json()}
    where = f"{served.url}/reward{query}"
    return example["compute_score"]("gcd", text, None, info, where, num_turns=2)


@pytest.mark.parametrize(("query", "value"), [("", 1.0), ("?thinking_open=true", 0.0)])
def test_the_remote_reward_of_a_completion_is_its_score(served, item, query, value):
    found = remote_reward(served, item, f"<answer>{item.gold}</answer>", query)
    outcome = "right" if value else "unfinished_thinking"
    assert found == {"score": value, "outcome": outcome, **dict.fromkeys(ALL, value)}


def test_a_completion_without_a_score_has_no_remote_reward(start, item, lost_workers):
    for masks in (False, True):  # which is for NeMo Gym alone
        with pytest.raises(RuntimeError, match=r"no score: .*closed"):
            remote_reward(start(masks=masks), item, "<answer>1</answer>")


# -- who may ask -----------------------------------------------------------------------


def test_the_secret_is_wanted_for_all_but_the_health(start):
    served = start(secret=SECRET)
    for given in (
        {},
        {"Authorization": f"Bearer {SECRET}x"},
        {"Authorization": SECRET},
    ):
        for method, path in (
            ("GET", "/items"),
            ("POST", "/score"),
            ("GET", "/x/items"),
        ):
            assert served.request(method, path, **given)[0] == 401
    assert served.get("/health") == {"status": "healthy"}
    for scheme in ("Bearer", "bearer"):
        authorized = {"Authorization": f"{scheme} {SECRET}"}
        assert served.request("GET", "/items?start=0", **authorized)[0] == 200
    assert positions(served.get(f"/{SECRET}/items?start=4")) == [4]
    # NeMo Gym appends its paths to a host and a port, which may end in the secret.
    assert served.post(f"/{SECRET}/ng-rollout/r-1/seed_session", {}) == (200, {})


# -- wrong and hostile requests --------------------------------------------------------

DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/score", b"", 400),
        ("/score", b'{"item": {}, "completions": [1]}', 400),
        ("/score", b'{"item": {}, "completions": [%s""]}' % (b'"",' * 1024), 400),
        ("/score", b'{"item": {}, "completions": []}', 422),
        ("/score", b'{"item": %s, "completions": []}' % DEEP, 400),
        ("/score", b'{"item": "%s", "completions": []}' % (b"a" * 2**17), 422),
        ("/verify", b'{"response": {"output": []}}', 400),
        ("/verify", b'{"verifier_metadata": {"item": 1}}', 422),
        ("/verify", b'{"verifier_metadata": {"item": {}, "thinking_open": 1}}', 422),
        ("/reward?thinking=true", b'{"label": {}, "response": ""}', 400),
        ("/feedback", b'{"item": {}, "values": [1.5]}', 400),
        ("/none", b"{}", 404),
    ],
)
def test_a_wrong_request_is_answered_with_its_status_and_a_sentence(
    served, path, body, status
):
    found, reply = served.post(path, body)
    assert (found, list(reply)) == (status, ["error"])
    assert reply["error"].count("\n") == 0 and len(reply["error"]) < 500
    assert served.get("/health") == {"status": "healthy"}


TOO_LONG = server.MAX_BODY_BYTES + 1


@pytest.mark.parametrize(
    "sent", [HEAD % TOO_LONG + b"1", HEAD % TOO_LONG + bytes(TOO_LONG), CHUNKED + b"1"]
)
def test_a_body_that_may_be_too_long_is_refused_even_while_it_is_sent(served, sent):
    with served.connect() as client:
        client.sendall(sent)
        assert client.recv(100).startswith(b"HTTP/1.1 413")


def test_health_does_not_wait_for_busy_workers(served, item, other_pool, monkeypatch):
    monkeypatch.setattr(pool_module, "_pools", {(): other_pool})
    sleep = other_pool.run(time.sleep, GUARD_S, deadline_s=GUARD_S)
    busy = asyncio.run_coroutine_threadsafe(sleep, served.loop)
    body = {"item": item.to_json(), "completions": ["<answer>1</answer>"]}
    count = 2 * server.MAX_IN_FLIGHT
    with ThreadPoolExecutor(count) as clients:
        scores = [clients.submit(served.post, "/score", body) for _ in range(count)]
        for _ in range(20):
            assert served.get("/health") == {"status": "healthy"}
            time.sleep(0.01)
        assert not any(score.done() for score in scores)
        busy.cancel()
    assert {score.result()[0] for score in scores} == {200}


# -- the command -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def life(tmp_path_factory):
    """What the command did with few files, and when a signal ended it."""
    folder = tmp_path_factory.mktemp("command")
    secret, log = folder / "secret", folder / "log"
    secret.write_text(SECRET)
    few = ["prlimit", "--nofile=256:256", *COMMAND, "--tasks=gcd,spell_backward"]
    few += ["--secret_file", str(secret)]
    health = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with (
        log.open("w") as stderr,
        subprocess.Popen(few, stdout=subprocess.PIPE, stderr=stderr) as process,
        contextlib.ExitStack() as ending,
    ):
        ending.callback(process.kill)
        address = ("127.0.0.1", int(process.stdout.readline().split(b":")[-1]))
        client = http.client.HTTPConnection(*address, timeout=GUARD_S)
        ending.callback(client.close)
        with contextlib.ExitStack() as held:
            heads = [b"", b"GET", health, health + b"GET", HEAD % 1]
            heads.append(CHUNKED + b"-\r\n")  # which is no chunk
            for head in heads * 80:
                connection = held.enter_context(socket.create_connection(address))
                connection.sendall(head)
            client.request("GET", f"/{SECRET}/items?start=0")
            beside = json.load(client.getresponse())
        workers = descendants(process.pid)
        client.request("GET", f"/{SECRET}/items?count=200")
        time.sleep(0.5)  # a busy machine accepts it late
        process.send_signal(signal.SIGTERM)
        begun = json.load(client.getresponse())
        status = process.wait(GUARD_S)
    said = log.read_text()
    return SimpleNamespace(
        beside=beside, begun=begun, status=status, workers=workers, said=said
    )


def test_a_signal_ends_it_once_what_has_begun_is_answered(life):
    assert len(life.begun["items"]) == 200
    assert life.status == 128 + signal.SIGTERM
    assert life.workers and left_alive(life.workers) == []


def test_held_connections_without_the_secret_keep_nobody_out(life):
    assert positions(life.beside) == [0]
    assert "idle connections: over 128 newer" in life.said
    assert "Traceback" not in life.said


def test_a_head_without_an_end_is_refused(start):
    with start(secret=SECRET).connect() as client:
        client.sendall(b"GET /".ljust(2**16 + 1, b"x"))
        assert client.recv(12) == b"HTTP/1.1 400"


def test_nothing_is_served_to_other_machines_without_a_secret(capsys):
    assert run_main(["score-server", "--port=0", "--host=0.0.0.0"]) == 2
    assert "--host 0.0.0.0: other machines would reach" in capsys.readouterr().err
