"""OpenEnv's own client, probe and graders pass, and no reward is made of a failure."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("openenv.core.env_server")

from openenv import GenericEnvClient
from openenv.validation.graders import Subject
from openenv.validation.graders.runtime import basic
from openenv.validation.parsers.openenv_yaml import OpenEnvYamlParser
from openenv.validation.runtime.collector import collect_runtime_evidence
from openenv.validation.runtime.contracts import RuntimePlan

from rg_env import Item, Tasks, score
from rg_env.adapters.http import ScoreServer
from rg_env.adapters.openenv import application
from rg_env.serving import ClientCheck
from tests.support.served import GUARD_S, Served

pytestmark = [
    pytest.mark.processes,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

FOLDER = Path(__file__).parents[2] / "examples" / "openenv"
GRADERS = [
    basic.RewardWellFormedGrader(),
    basic.ObservationSchemaGrader(),
    basic.StateContractGrader(),
]
SECRET = "0123456789abcdef"
ANSWER = {"completion": "<answer>1</answer>"}


@pytest.fixture
def served(own_pool):
    tasks = Tasks("gcd", "spell_backward", levels="random")
    found = Served(ScoreServer(tasks, others=application(tasks)), ws="auto")
    yield found
    found.stop()


@pytest.fixture
def client(served):
    with GenericEnvClient(base_url=served.url).sync() as client:
        yield client


def test_the_manifest_passes():
    command = [sys.executable, "-m", "openenv.cli", "validate", FOLDER]
    subprocess.run([*command, "--level", "static", "--skip-build"], check=True)


@pytest.mark.parametrize("grader", GRADERS, ids=lambda grader: grader.check_id)
def test_the_grader_passes(served, grader, tmp_path):
    reset = {"episode_id": "one", "seed": 3}
    plan = RuntimePlan(plan_schema_version="1", reset=reset, actions=[ANSWER])
    evidence = collect_runtime_evidence(served.url, plan, episode_timeout_s=GUARD_S)
    manifest = OpenEnvYamlParser().parse(FOLDER)
    subject = Subject(FOLDER, manifest, None, None, tmp_path, evidence)
    assert grader.run(subject).status.value == "pass"


def test_an_episode_is_an_item_of_the_stream_and_its_score(client):
    tasks = Tasks("gcd", "spell_backward", levels="random")
    tasks.seek(3)
    item = next(tasks)
    begun = client.reset(seed=3)
    shown = begun.observation
    assert (begun.done, begun.reward) == (False, None)
    assert Item.from_json(shown["item"]) == dataclasses.replace(item, _entry=None)
    assert shown["messages"] == item.messages
    for text in ("", f"<answer>{item.gold}</answer>"):
        client.reset(seed=3)
        ended = client.step({"completion": text})
        (result,) = score(item, [text])
        assert (ended.done, ended.reward) == (True, result.value)
        assert ended.observation["outcome"] == result.outcome
        with pytest.raises(RuntimeError, match="409: no item: call reset"):
            client.step({"completion": text})


def test_a_completion_may_go_on_with_the_thinking_of_the_prompt(client):
    client.reset(seed=3)
    action = {**ANSWER, "thinking_open": True}
    outcome = client.step(action).observation["outcome"]
    assert outcome == "unfinished_thinking"


@pytest.mark.parametrize(("path", "status"), [("/ws", 401), (f"/{SECRET}/ws", 101)])
def test_a_websocket_needs_the_secret(served, path, status):
    hidden = Served(ClientCheck(served.application, SECRET), ws="auto")
    head = (
        f"GET {path} HTTP/1.1\r\nHost: [::]\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        "Sec-WebSocket-Version: 13"
    )
    with hidden.connect() as client:
        client.sendall(f"{head}\r\n\r\n".encode())
        assert client.recv(100).startswith(b"HTTP/1.1 %d" % status)
    hidden.stop()


def test_without_a_session_the_action_carries_the_item(served):
    _, begun = served.post("/reset", {"seed": 0})
    action = {**ANSWER, "item": begun["observation"]["item"]}
    assert served.post("/step", {"action": action})[1]["done"] is True
    assert served.post("/step", {"action": ANSWER})[0] == 409
    other = json.dumps(json.loads(action["item"]) | {"digest": "0" * 16})
    for item in ("{}", other):  # which no repetition helps
        assert served.post("/step", {"action": {**ANSWER, "item": item}})[0] == 422


def test_a_completion_without_a_score_is_an_error_and_no_reward(
    served, client, request
):
    _, begun = served.post("/reset", {"seed": 0})
    client.reset(seed=0)
    request.getfixturevalue("lost_workers")
    action = {**ANSWER, "item": begun["observation"]["item"]}
    status, said = served.post("/step", {"action": action})
    assert status == 503 and "closed" in json.dumps(said)
    with pytest.raises(RuntimeError, match="unscored"):
        client.step(ANSWER)
