"""Items and rewards as TRL takes them, with the package itself.

`test_their_packages.py` runs this file in an environment that holds TRL.
"""

from __future__ import annotations

import asyncio
import dataclasses
import pickle
from itertools import islice
from types import SimpleNamespace

import pytest

pytest.importorskip("trl")

from transformers import TrainerState
from trl import GRPOConfig

from rg_env import Item, Tasks
from rg_env.adapters.trl import STATE, GRPOTasks
from rg_env.errors import RunError, SettingError
from rg_env.workers.pool_errors import WorkerLostError

pytestmark = pytest.mark.processes


def rows_of(tasks, count):
    return list(islice(tasks.train_dataset, count))


def rewards(tasks, rows, completions, **others):
    columns = {name: [row[name] for row in rows] for name in ("item", "position")}
    reward = tasks.reward_funcs[0]
    return asyncio.run(reward(completions=completions, **columns, **others))


def gold_of(row):
    return f"<answer>{Item.from_json(row['item']).gold}</answer>"


def test_the_rows_are_the_items_of_the_stream_in_its_order():
    rows = rows_of(GRPOTasks(Tasks("gcd", "lcm", seed=5)), 6)
    assert [row["prompt"] for row in rows] == [
        item.messages for item in islice(Tasks("gcd", "lcm", seed=5), 6)
    ]


def test_a_trainer_without_the_callbacks_is_refused():
    tasks = GRPOTasks(Tasks("gcd"))
    rows = rows_of(tasks, 1)
    with pytest.raises(SettingError, match=r"callbacks=tasks\.callbacks"):
        rewards(tasks, rows, ["no answer"], trainer_state=TrainerState())


def test_rows_go_on_after_workers_were_lost(monkeypatch):
    tasks, lost = GRPOTasks(Tasks("gcd")), iter([WorkerLostError("killed")] * 2)
    draw = Tasks.__next__
    monkeypatch.setattr("rg_env.adapters.trl.PAUSE_S", 0)

    def odd(self):
        if error := next(lost, None):
            raise error
        return draw(self)

    monkeypatch.setattr(Tasks, "__next__", odd)
    assert len(rows_of(tasks, 2)) == 2


@pytest.mark.parametrize("as_messages", [False, True])
def test_a_completion_has_the_score_of_its_text(as_messages):
    tasks = GRPOTasks(Tasks("gcd"), is_conversational=as_messages)
    (row,) = rows_of(tasks, 1)
    texts = [gold_of(row), "no answer", "<answer>-1</answer>"]
    completions = (
        [[{"role": "assistant", "content": t}] for t in texts] if as_messages else texts
    )
    assert rewards(tasks, [row] * 3, completions) == [1.0, 0.0, 0.0]


def test_thinking_that_a_template_has_split_off_belongs_to_the_completion():
    tasks = GRPOTasks(Tasks("gcd"))
    (row,) = rows_of(tasks, 1)
    message = {"role": "assistant", "content": gold_of(row)}
    split = message | {"reasoning_content": "<answer>1</answer> or another one?"}
    assert rewards(tasks, [row], [[split]]) == [1.0]


def test_a_completion_without_a_score_has_the_reward_none():
    tasks = GRPOTasks(Tasks("gcd", levels="curriculum"))
    (row,) = rows_of(tasks, 1)
    lost = dataclasses.replace(Item.from_json(row["item"]), digest="0" * 16)
    row["item"] = lost.to_json()
    logged = {}
    log = {"log_metric": logged.__setitem__}
    assert rewards(tasks, [row], ["<answer>1</answer>"], **log) == [None]
    assert logged == {"reasoning_gym/unscored": 1.0}


def test_whole_groups_move_the_level_of_their_task():
    tasks = GRPOTasks(Tasks("gcd", levels="curriculum"))
    start = Item.from_json(rows_of(tasks, 1)[0]["item"]).level
    for _ in range(12):
        (row,) = rows_of(tasks, 1)
        rewards(tasks, [row] * 4, [gold_of(row)] * 4)
    assert tasks.tasks.levels()["gcd"] > start


def test_results_of_evaluation_items_move_nothing():
    tasks = GRPOTasks(Tasks("gcd", levels="curriculum"))
    for row in tasks.eval_dataset(12, level=0.5):
        rewards(tasks, [row] * 4, [gold_of(row)] * 4)
    assert tasks.tasks.levels() == {}


def test_a_reward_whose_results_would_move_the_levels_of_a_copy_is_not_copied():
    with pytest.raises(TypeError, match="fixed levels"):
        pickle.dumps(GRPOTasks(Tasks("gcd", levels="curriculum")).reward_funcs)


def test_a_reward_of_fixed_levels_scores_in_another_process_too():
    tasks = GRPOTasks(Tasks("gcd", levels=0.5))
    (row,) = rows_of(tasks, 1)
    (copy,) = pickle.loads(pickle.dumps(tasks.reward_funcs))
    columns = {"item": [row["item"]], "position": [row["position"]]}
    assert asyncio.run(copy(completions=[gold_of(row)], **columns)) == [1.0]


def begin(tasks, folder, state=None, **settings):
    arguments = GRPOConfig(output_dir=str(folder), use_cpu=True, bf16=False, **settings)
    state = TrainerState() if state is None else state
    tasks.callbacks[0].on_train_begin(arguments, state, None)
    return arguments, state


def test_settings_that_would_shuffle_the_stream_stop_the_start(tmp_path):
    tasks = GRPOTasks(Tasks("gcd"))
    with pytest.raises(SettingError, match=r"shuffle_dataset must be False"):
        begin(tasks, tmp_path)
    with pytest.raises(SettingError, match=r"shuffle_dataset must be False"):
        # AsyncGRPOConfig has no such field.
        tasks.callbacks[0].on_train_begin(SimpleNamespace(), None, None)


def test_a_resumed_run_goes_on_behind_the_last_item_that_was_trained_on(tmp_path):
    tasks = GRPOTasks(Tasks("gcd", levels="curriculum", seed=3))
    arguments, state = begin(tasks, tmp_path, **tasks.settings)
    rows = rows_of(tasks, 8)  # as a loader that is ahead of the trainer
    rewards(tasks, rows[:4], [gold_of(row) for row in rows[:4]])
    state.global_step = 4
    tasks.callbacks[0].on_step_end(arguments, state, None)
    state.save_to_json(str(tmp_path / "trainer_state.json"))
    again = GRPOTasks(Tasks("gcd", levels="curriculum", seed=3))
    saved = TrainerState.load_from_json(str(tmp_path / "trainer_state.json"))
    begin(again, tmp_path / "elsewhere", saved, **again.settings)
    assert again.tasks.levels() == tasks.tasks.levels()
    assert rows_of(again, 1)[0]["position"] == rows[4]["position"]


@pytest.mark.parametrize("saved", [{}, {STATE: {"position": -1}}])
def test_a_checkpoint_without_the_state_of_the_tasks_stops_the_start(tmp_path, saved):
    state = TrainerState(global_step=2, stateful_callbacks=saved)
    tasks = GRPOTasks(Tasks("gcd"))
    with pytest.raises(RunError, match=r"was it saved with callbacks=tasks.callbacks"):
        begin(tasks, tmp_path, state, **tasks.settings)
