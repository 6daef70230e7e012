"""Items and rewards as TRL takes them, with the package itself.

`test_their_packages.py` runs this file in an environment that holds TRL.
"""

import asyncio
import dataclasses
import pickle
from collections import Counter
from itertools import islice
from types import SimpleNamespace

import pytest

pytest.importorskip("trl")

from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, TrainerState
from trl import GRPOConfig, GRPOTrainer

from rg_env import Item, Tasks
from rg_env.adapters.trl import STATE, GRPOTasks
from rg_env.errors import RunError, SettingError
from rg_env.installation import TOKENIZER_FOLDER

pytestmark = pytest.mark.processes

TOKENIZER = AutoTokenizer.from_pretrained(TOKENIZER_FOLDER)
NO_TEMPLATE = SimpleNamespace(chat_template=None)
TWO_GROUPS = {"per_device_train_batch_size": 4, "num_generations": 2}


def grpo_tasks(*names, processing_class=TOKENIZER, **how):
    return GRPOTasks(Tasks(*names, **how), processing_class)


def settings_in(folder, **settings):
    brief = {"max_completion_length": 4, "report_to": [], "save_strategy": "no"}
    cpu = {"use_cpu": True, "bf16": False}
    given = brief | cpu | TWO_GROUPS | settings
    return GRPOConfig(output_dir=str(folder), **given)


def rows_of(tasks, count):
    return list(islice(tasks.train_dataset, count))


def rewards(tasks, rows, completions, **others):
    columns = {name: [row[name] for row in rows] for name in ("item", "position")}
    reward = tasks.reward_funcs[0]
    return asyncio.run(reward(completions=completions, **columns, **others))


def gold_of(row):
    return f"<answer>{Item.from_json(row['item']).gold}</answer>"


def test_the_rows_are_the_items_of_the_stream_in_its_order():
    rows = rows_of(grpo_tasks("gcd", "lcm", seed=5), 6)
    assert [row["prompt"] for row in rows] == [
        item.messages for item in islice(Tasks("gcd", "lcm", seed=5), 6)
    ]


@pytest.mark.parametrize("as_messages", [False, True])
def test_a_completion_has_the_score_of_its_text(as_messages):
    tasks = grpo_tasks(
        "gcd", processing_class=TOKENIZER if as_messages else NO_TEMPLATE
    )
    (row,) = rows_of(tasks, 1)
    assert isinstance(row["prompt"], list if as_messages else str)
    texts = [gold_of(row), "no answer", "<answer>-1</answer>"]
    completions = (
        [[{"role": "assistant", "content": t}] for t in texts] if as_messages else texts
    )
    assert rewards(tasks, [row] * 3, completions) == [1.0, 0.0, 0.0]


def test_thinking_that_a_template_has_split_off_belongs_to_the_completion():
    tasks = grpo_tasks("gcd")
    (row,) = rows_of(tasks, 1)
    message = {"role": "assistant", "content": gold_of(row)}
    split = message | {"reasoning_content": "<answer>1</answer> or another one?"}
    assert rewards(tasks, [row], [[split]]) == [1.0]


def test_a_completion_without_a_score_has_the_reward_none():
    tasks = grpo_tasks("gcd", levels="curriculum")
    (row,) = rows_of(tasks, 1)
    lost = dataclasses.replace(Item.from_json(row["item"]), digest="0" * 16)
    row["item"] = lost.to_json()
    logged = {}
    log = {"log_metric": logged.__setitem__}
    assert rewards(tasks, [row], ["<answer>1</answer>"], **log) == [None]
    assert {name: value for name, value in logged.items() if value} == {
        "reasoning_gym/unscored": 1.0,
        "reasoning_gym/outcomes/unmatched": 1.0,
    }


def test_whole_groups_move_the_level_of_their_task():
    tasks = grpo_tasks("gcd", levels="curriculum")
    start = Item.from_json(rows_of(tasks, 1)[0]["item"]).level
    for _ in range(12):
        (row,) = rows_of(tasks, 1)
        rewards(tasks, [row] * 4, [gold_of(row)] * 4)
    assert tasks.tasks.levels()["gcd"] > start


def test_results_of_evaluation_items_move_nothing():
    tasks = grpo_tasks("gcd", levels="curriculum")
    for row in tasks.eval_dataset(12, level=0.5):
        rewards(tasks, [row] * 4, [gold_of(row)] * 4)
    assert tasks.tasks.levels() == {}


def test_a_reward_whose_results_would_move_the_levels_of_a_copy_is_not_copied():
    with pytest.raises(TypeError, match="fixed levels"):
        pickle.dumps(grpo_tasks("gcd", levels="curriculum").reward_funcs)


def test_a_reward_of_fixed_levels_scores_in_another_process_too():
    tasks = grpo_tasks("gcd", levels=0.5)
    (row,) = rows_of(tasks, 1)
    copy = SimpleNamespace(reward_funcs=pickle.loads(pickle.dumps(tasks.reward_funcs)))
    assert rewards(copy, [row], [gold_of(row)]) == [1.0]


def trained(tasks, folder, **settings):
    """Return a trainer after two steps of a model that knows nothing."""
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = LlamaConfig(vocab_size=len(TOKENIZER), intermediate_size=16, **size)
    trainer = GRPOTrainer(
        LlamaForCausalLM(config),
        args=settings_in(folder, max_steps=2, logging_steps=1, **settings),
        train_dataset=tasks.train_dataset,
        eval_dataset=tasks.eval_dataset(1),
        reward_funcs=tasks.reward_funcs,
        processing_class=TOKENIZER,
    )
    trainer.train()
    return trainer


def test_a_trainer_without_callbacks_makes_each_item_once_and_logs_the_groups(
    tmp_path, monkeypatch
):
    made, make = Counter(), Item.with_entry

    def counted(item, *limits):
        made[item.task, item.seed] += 1
        return make(item, *limits)

    monkeypatch.setattr(Item, "with_entry", counted)
    tasks = grpo_tasks("gcd", levels=0.5)
    trainer = trained(tasks, tmp_path, eval_on_start=True, **tasks.settings)
    assert set(made.values()) == {1}
    assert trainer.state.stateful_callbacks[STATE]["position"] == 4
    evaluation, first = trainer.state.log_history[:2]
    assert (
        first.items()
        >= {
            "reasoning_gym/outcomes/no_answer": 1.0,
            "reasoning_gym/outcomes/right": 0.0,
            "reasoning_gym/unscored": 0.0,
            "reasoning_gym/score/gcd": 0.0,
            "reasoning_gym/level/gcd": 0.5,
        }.items()
    )
    assert evaluation["eval_reasoning_gym/score/gcd"] == 0.0


@pytest.mark.parametrize(
    ("enable_thinking", "score"), [({}, 0.0), ({"enable_thinking": False}, 1.0)]
)
def test_the_template_says_whether_a_completion_begins_in_the_thinking(
    tmp_path, enable_thinking, score
):
    opens = "<think>{% if enable_thinking is false %}</think>{% endif %}\n"
    template = AutoTokenizer.from_pretrained(TOKENIZER_FOLDER)
    template.chat_template = "{{ messages[-1]['content'] }}" + opens
    tasks = grpo_tasks("gcd", processing_class=template)
    begin(tasks, tmp_path, chat_template_kwargs=enable_thinking, **tasks.settings)
    (row,) = rows_of(tasks, 1)
    assert rewards(tasks, [row], [gold_of(row)]) == [score]


def begin(tasks, folder, state=None, **settings):
    arguments = settings_in(folder, **settings)
    state = TrainerState() if state is None else state
    tasks.callbacks[0].on_train_begin(arguments, state, None)
    return arguments, state


def test_settings_that_would_shuffle_the_stream_stop_any_trainer(tmp_path):
    tasks = grpo_tasks("gcd")
    with pytest.raises(SettingError, match=r"shuffle_dataset must be False"):
        trained(tasks, tmp_path)  # without callbacks
    with pytest.raises(SettingError, match=r"shuffle_dataset must be False"):
        # AsyncGRPOConfig has no such field.
        tasks.callbacks[0].on_train_begin(SimpleNamespace(), None, None)


def test_a_resumed_run_goes_on_behind_the_last_item_that_was_trained_on(tmp_path):
    tasks = grpo_tasks("gcd", levels="curriculum", seed=3)
    arguments, state = begin(tasks, tmp_path, **tasks.settings)
    rows = rows_of(tasks, 8)  # as a loader that is ahead of the trainer
    rewards(tasks, rows[:4], [gold_of(row) for row in rows[:4]])
    state.global_step = 4
    tasks.callbacks[0].on_step_end(arguments, state, None)
    state.save_to_json(str(tmp_path / "trainer_state.json"))
    again = grpo_tasks("gcd", levels="curriculum", seed=3)
    saved = TrainerState.load_from_json(str(tmp_path / "trainer_state.json"))
    begin(again, tmp_path / "elsewhere", saved, **again.settings)
    assert again.tasks.levels() == tasks.tasks.levels()
    assert rows_of(again, 1)[0]["position"] == rows[4]["position"]


@pytest.mark.parametrize("saved", [{}, {STATE: {"position": -1}}])
def test_a_checkpoint_without_the_state_of_the_tasks_stops_the_start(tmp_path, saved):
    state = TrainerState(global_step=2, stateful_callbacks=saved)
    tasks = grpo_tasks("gcd")
    with pytest.raises(RunError, match="was it saved with these tasks"):
        begin(tasks, tmp_path, state, **tasks.settings)
