"""The taskset as verifiers uses it, with the commands of the package itself.

`test_their_packages.py` runs this file in an environment that holds verifiers.
"""

import asyncio
import json
from itertools import islice
from types import SimpleNamespace

import pytest

pytest.importorskip("verifiers.v1")

import httpx
import verifiers.v1 as vf

from reasoning_gym_verifiers import ReasoningGymHarness, ReasoningGymTaskset
from rg_env import Item, Tasks
from rg_env.adapters.verifiers import ReasoningGymConfig
from rg_env.errors import NoScoreError, SettingError

pytestmark = pytest.mark.processes

ID = "owner/reasoning-gym-verifiers@0.1.0"  # as the hub names it


def taskset(**fields):
    return ReasoningGymTaskset(ReasoningGymConfig(id=ID, **fields))


def items_of(tasks):
    return [Item.from_json(task.data.item) for task in tasks]


@pytest.mark.parametrize("skipped", [0, 5])
def test_the_stream_is_that_of_the_tasks_however_often_it_is_loaded(skipped):
    found = islice(taskset(tasks=["gcd", "lcm"], seed=4).load(), skipped, skipped + 3)
    tasks = Tasks("gcd", "lcm", seed=4, levels="random")
    tasks.seek(skipped)
    assert items_of(found) == list(islice(tasks, 3))


def test_a_fixed_set_ends():
    fixed = taskset(tasks=["gcd", "lcm"], eval_samples_per_task=2)
    assert not fixed.INFINITE
    assert len(list(fixed.load())) == 4


@pytest.mark.parametrize("level", [[0.5, 0.5], "0.5", "[0.5, 0.5]"])
def test_a_level_may_be_the_text_that_a_command_line_has(level):
    (item,) = items_of(islice(taskset(tasks=["gcd"], levels=level).load(), 1))
    assert item.level == 0.5


def test_the_prompt_and_the_choice_of_tasks_can_be_set(tmp_path):
    (path := tmp_path / "prompt.txt").write_text("Answer.")
    how = {"choice": "in_turn", "system_prompt": path}
    found = list(islice(taskset(tasks=["gcd", "lcm"], **how).load(), 2))
    assert [item.task for item in items_of(found)] == ["gcd", "lcm"]
    assert {task.data.system_prompt for task in found} == {"Answer."}
    assert items_of(found)[0].messages[0]["content"] == "Answer."


def test_a_gold_answer_is_valid_in_each_format():
    for how in ("tags", "boxed"):
        (task,) = islice(taskset(tasks=["gcd"], answer_format=how).load(), 1)
        assert asyncio.run(task.validate(None))
        assert ("boxed" in task.data.system_prompt) is (how == "boxed")


@pytest.mark.parametrize(("apart", "reward"), [(None, 0.0), ("It is 5.", 1.0)])
def test_a_reply_may_go_on_with_the_thinking_of_the_prompt(apart, reward):
    (task,) = islice(taskset(tasks=["gcd"], task={"thinking_open": True}).load(), 1)
    (item,) = items_of([task])
    reply = SimpleNamespace(reasoning_content=apart)
    text = f"<answer>{item.gold}</answer>"
    trace = SimpleNamespace(last_reply=text, assistant_messages=[reply])
    assert asyncio.run(task.reasoning_gym(trace)) == reward


def test_levels_that_follow_results_are_refused():
    with pytest.raises(SettingError, match="hands to no taskset"):
        taskset(levels="curriculum")


@pytest.fixture(scope="module")
def evaluated(serve_chat, command, tmp_path_factory):
    """The folder in which `vf-eval` has written a run."""
    folder = tmp_path_factory.mktemp("evaluated")
    first, second = Tasks("gcd", levels="random").evaluation(2)
    right = {"content": f"<answer>{first.gold}</answer>"}
    wrong = {"content": "<answer>-1</answer>"}
    url = serve_chat({first.question: right, second.question: wrong})
    server = ("--client.base-url", url, "--client.api-key-var", "NO_KEY")
    items = ("--env.taskset.tasks", '["gcd"]', "--env.taskset.eval_samples_per_task=2")
    given = (ID, "-n", "2", "--no-push", "-m", "p")
    command(folder, "vf-eval", *given, *server, *items, NO_KEY="none")
    return folder


def rewards_in(folder):
    (path,) = folder.rglob("traces.jsonl")
    rows = map(json.loads, path.read_text().splitlines())
    traces = [trace for row in rows for trace in row["traces"]]
    return sorted(trace["rewards"]["reasoning_gym"]["score"] for trace in traces)


def test_vf_eval_rewards_each_reply_with_its_score(evaluated):
    assert rewards_in(evaluated) == [0.0, 1.0]


def test_a_saved_trace_that_is_scored_again_has_the_same_score(
    evaluated, command, tmp_path
):
    (path,) = evaluated.rglob("traces.jsonl")
    out = ("--output-dir", str(tmp_path / "again"), "--rich", "false")
    command(tmp_path, "vf-replay", str(path.parent), *out)
    assert rewards_in(tmp_path) == rewards_in(evaluated)


def test_vf_validate_passes_gold_answers_and_no_answer(command, tmp_path):
    items = ("--taskset.tasks", '["gcd"]', "--taskset.eval_samples_per_task", "2")
    here = ("--runtime.type", "subprocess", "--rich", "false")
    command(tmp_path, "vf-validate", ID, *items, *here)
    (path,) = tmp_path.rglob("summary.json")
    assert json.loads(path.read_text())["outcomes"]["valid"] == 2


def test_a_reply_without_a_score_raises_and_is_no_reward_of_0():
    (task,) = islice(taskset(tasks=["gcd"]).load(), 1)
    other = json.dumps(json.loads(task.data.item) | {"digest": "0" * 16})
    data = task.data.model_copy(update={"item": other})
    lost = type(task)(data, task.config)
    trace = SimpleNamespace(last_reply="<answer>1</answer>", assistant_messages=[])
    with pytest.raises(NoScoreError, match="gcd: unmatched"):
        asyncio.run(lost.reasoning_gym(trace))


def test_an_error_of_the_server_is_no_normal_end(serve_chat):
    (task,) = islice(taskset(tasks=["gcd"]).load(), 1)
    harness = ReasoningGymHarness(vf.HarnessConfig(id=ID))
    asked = (SimpleNamespace(model="p"), SimpleNamespace(stop_condition=None), None)
    launch = harness.launch(*asked, serve_chat({}), "secret", {}, task.data)
    with pytest.raises(httpx.HTTPStatusError, match="501"):
        asyncio.run(launch)
