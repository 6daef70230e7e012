"""The stream of items that `Tasks` is: what it depends on, and what moves it."""

import contextlib
import itertools
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import reasoning_gym

from rg_env import Item, Tasks, score
from rg_env.errors import LibraryError, SettingError
from rg_env.executor import LOOP
from rg_env.stream import prefetch
from rg_env.stream.evaluation_items import SEED, SIZE, load_preset
from rg_env.stream.item import ItemMaker
from rg_env.stream.prefetch import NoItemsError
from rg_env.workers.call import (
    DeadlineExceededError,
    JobError,
    WorkerDiedError,
    WorkerLostError,
)
from tests.support.parts import REPO_ROOT

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("pool")]

CHOSEN = ("gcd", "*_sorting", "chain_sum")


def taken(tasks, count):
    return [item.to_json() for item in itertools.islice(tasks, count)]


def test_an_item_is_made_by_its_position_and_the_stream_stays_where_it_is():
    tasks = Tasks(*CHOSEN)
    expected = taken(Tasks(*CHOSEN), 20)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(tasks.at, reversed(range(20))))
    assert [item.to_json() for item in reversed(found)] == expected
    assert tasks.position == 0
    with pytest.raises(ValueError, match="position"):
        tasks.at(-1)


@pytest.mark.parametrize(("levels", "ahead"), [(0.5, 8), ("curriculum", 1)])
def test_items_are_made_ahead_each_once_unless_results_decide_them(
    monkeypatch, levels, ahead
):
    tasks = Tasks(*CHOSEN, levels=levels)
    made = []
    make = Item.with_entry

    def counted(item, *limits):
        made.append(item.index)
        return make(item, *limits)

    monkeypatch.setattr(Item, "with_entry", counted)
    items = tasks.ahead(8)
    found = [item.to_json() for item in itertools.islice(items, 4)]
    items.close()
    assert tasks.position == 4
    assert sorted(made) == list(range(len(made)))
    assert 3 + ahead >= len(made) >= 4
    assert found == taken(Tasks(*CHOSEN, levels=levels), 4)


def test_the_seed_of_an_item_chooses_its_prompt_however_it_is_made():
    tasks = Tasks(*CHOSEN, system_prompt=["Even.", "Odd."])
    with contextlib.closing(tasks.ahead()) as ahead:
        items = list(itertools.islice(ahead, 8))
    prompts = {item.seed % 2: item.messages[0]["content"] for item in items}
    assert prompts == {0: "Even.", 1: "Odd."}
    for item in [*items, *tasks.evaluation(3), next(tasks)]:
        again = Item.from_json(item.to_json())
        assert again.messages == item.messages
        assert item.messages[0]["content"] == prompts[item.seed % 2]


def test_items_ahead_wait_for_workers_that_were_lost(monkeypatch):
    tasks = Tasks(*CHOSEN)
    make = Item.with_entry
    errors = iter([WorkerLostError("killed")] * 2)

    def odd(item, *limits):
        if error := next(errors, None):
            raise error
        return make(item, *limits)

    monkeypatch.setattr(prefetch, "RETRY_PAUSES_S", (0.0, 0.0))
    monkeypatch.setattr(Item, "with_entry", odd)
    found = [item.to_json() for item in itertools.islice(tasks.ahead(), 2)]
    assert found == taken(Tasks(*CHOSEN), 2)


def test_items_ahead_follow_a_seek_and_end_with_their_iterator():
    tasks = Tasks(*CHOSEN)
    before = set(threading.enumerate())
    with contextlib.closing(tasks.ahead()) as items:
        assert next(items).index == 0
        tasks.seek(1000)
        assert (next(items).index, tasks.position) == (1000, 1001)
        new = set(threading.enumerate()) - before
        (thread,) = (thread for thread in new if thread.name == LOOP)
    thread.join(timeout=30)
    assert not thread.is_alive()


def test_an_item_that_no_worker_has_made_comes_when_it_is_asked_again(
    monkeypatch, pool
):
    tasks = Tasks(*CHOSEN)
    first = taken(tasks, 1)

    def lost(*how, **limits):
        raise WorkerLostError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(pool, "call", lost)
        with pytest.raises(WorkerLostError):
            next(tasks)
    assert first + taken(tasks, 4) == taken(Tasks(*CHOSEN), 5)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (JobError("ValueError", "no luck\nwith this seed"), "no luck"),
        (JobError("KeyError", ""), "KeyError"),
        (JobError("MemoryError", ""), "its item takes more memory than a worker may"),
        (DeadlineExceededError("stopped after 20 s"), "its item was stopped after 20"),
        (WorkerDiedError("it ended two workers"), "it ended two workers"),
    ],
    ids=repr,
)
def test_items_that_are_not_made_are_counted_and_the_first_reason_is_logged(
    error, reason, monkeypatch, logged
):
    async def not_made(*_):
        raise error

    monkeypatch.setattr(Item, "with_entry", not_made)
    tasks = Tasks("gcd")
    assert [tasks.at(position) for position in range(2)] == [None, None]
    assert tasks.failures == {"gcd": 2}
    (line,) = logged.messages
    assert line.startswith(f"an item of task gcd is left out: {reason}")


def test_too_many_draws_without_an_item_are_an_error(monkeypatch):
    async def no_item(*_, **__):
        return None

    monkeypatch.setattr(ItemMaker, "make", no_item)
    for items in (Tasks("gcd"), Tasks("gcd").ahead()):
        with pytest.raises(NoItemsError, match="200 items in a row"):
            next(items)


@pytest.mark.parametrize(
    ("levels", "found"),
    [("curriculum", {0.3}), ((0.2, 0.2), {0.2}), ({"*": 0.1, "gcd": 1}, {0.1, 1})],
    ids=str,
)
def test_levels_mean_what_the_settings_mean(levels, found):
    items = itertools.islice(Tasks("gcd", "chain_sum", levels=levels), 20)
    assert {item.level for item in items} == found


@pytest.mark.parametrize(
    "wrong",
    [
        {"levels": {"gcd": 2.0}},
        *({"shard": shard} for shard in [(2, 2), (0,)]),
        *({"seed": seed} for seed in [-1, "1"]),
        {"choice": "best"},
        {"answer_format": "xml"},
        {"exclude": "gcd"},
        *({"system_prompt": prompts} for prompts in [[], ["Answer.", 1]]),
        {"params": {"gcd": 1}},
    ],
    ids=str,
)
def test_a_wrong_argument_is_refused_at_once_by_its_name(wrong):
    (name,) = wrong
    with pytest.raises(SettingError, match=f"^{name}: "):
        Tasks(**wrong)


def test_what_is_no_name_of_a_task_is_refused():
    sentence = r"^tasks: \['gcd'\] is not allowed; expected str"
    with pytest.raises(SettingError, match=sentence):
        Tasks(["gcd"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"params": {"gcd": {"none": 1}}},
        {"weights": {"gcd": -1.0}},
        {"exclude": ["none"]},
        {"levels": {"none": 0.5}},
    ],
    ids=str,
)
def test_what_the_library_does_not_know_is_named_by_its_argument(wrong):
    (name,) = wrong
    with pytest.raises(SettingError, match=f"^{name}[.:]"):
        next(Tasks("gcd", **wrong))


@pytest.mark.parametrize("results", [["1"], [2.0], 0.5, [float("nan")], [[1.0]]])
def test_what_is_no_result_is_refused_and_changes_nothing(results):
    tasks = Tasks("gcd", levels="curriculum")
    item = next(tasks)
    before = tasks.state_dict()
    with pytest.raises(ValueError, match=r"^feedback: "):
        tasks.feedback(item, results)
    assert tasks.state_dict() == before


def test_only_items_of_the_stream_give_feedback():
    tasks = Tasks("gcd", levels="curriculum")
    others = (next(Tasks("gcd", seed=1)), *tasks.evaluation(1), {"task": "gcd"})
    for item in others:
        with pytest.raises(ValueError, match=r"^feedback: "):
            tasks.feedback(item, [1.0])
    for item in (next(tasks), next(Tasks("gcd", levels="curriculum", shard=(1, 2)))):
        tasks.feedback(item, [1.0])
    assert tasks.state_dict()["progress"]["group_counts"] == {"gcd": 2}


def by_state(tasks):
    other = Tasks(*CHOSEN, levels="curriculum", choice="adaptive")
    other.load_state_dict(tasks.state_dict())
    return other


def by_pickle(tasks):
    return pickle.loads(pickle.dumps(tasks))


@pytest.mark.parametrize("carried", [by_state, by_pickle])
@pytest.mark.parametrize("drawn", [0, 12])
def test_a_stream_goes_on_with_its_place_levels_and_weights(carried, drawn):
    tasks = Tasks(*CHOSEN, levels="curriculum", choice="adaptive")
    for item in itertools.islice(tasks, drawn):
        tasks.feedback(item, score(item, [f"<answer>{item.gold}</answer>"]))
    other = carried(tasks)
    assert other.state_dict() == tasks.state_dict()
    assert taken(other, 10) == taken(tasks, 10)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        {"position": -1},
        {"progress": {}},
        {"curriculum": {}},
        {"curriculum": {"tasks": {"gcd": {"level": 1.5}}}},
        {"adaptive": {"gcd": 1}},
    ],
    ids=str,
)
def test_what_is_no_state_is_refused_and_changes_nothing(wrong):
    tasks = Tasks(*CHOSEN, choice="adaptive")
    tasks.feedback(next(tasks), [1.0])
    before = tasks.state_dict()
    with pytest.raises(ValueError, match=r"Expected|missing"):
        tasks.load_state_dict(wrong and Tasks().state_dict() | wrong)
    assert tasks.state_dict() == before


def test_modules_of_own_tasks_may_be_named_by_a_path_from_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").touch()
    tasks = Tasks("gcd", task_modules="own.py")
    item = Item.from_json('{"task": "gcd", "params": {}, "seed": 1}', "own.py")
    assert item.task_modules == tasks.task_modules == (str(tmp_path / "own.py"),)
    with pytest.raises(SettingError, match=r"task_modules: .* is not a file"):
        Item.from_json('{"task": "gcd", "params": {}, "seed": 1}', ["none.py"])


def test_an_item_from_json_is_the_same_one():
    for item in itertools.islice(Tasks(*CHOSEN, levels="random"), 10):
        other = Item.from_json(item.to_json())
        assert other == item
        assert other.messages == item.messages
        assert other.gold == item.gold


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"task":"gcd","params":{},"seed":-1}', {"task": "gcd"}]
)
def test_what_is_no_item_is_refused(text):
    with pytest.raises(ValueError, match="not an item"):
        Item.from_json(text)


OWN_TASKS = str(REPO_ROOT / "tests" / "support" / "own_tasks.py")
BROKEN = ("raises", "makes_no_entry", "scorer_raises", "pays_none", "pays_percent")


@pytest.mark.slow
def test_own_tasks_that_are_broken_give_no_items(caplog):
    tasks = Tasks("double", *BROKEN, task_modules=OWN_TASKS)
    items = [tasks.at(position) for position in range(30)]
    assert {item.task for item in items if item is not None} == {"double"}
    left_out = [record.args[0] for record in caplog.records if len(record.args) == 2]
    assert left_out == sorted(BROKEN)
    with pytest.raises(LibraryError, match=r"pays_none.* returned None"):
        next(Tasks("pays_none", task_modules=[OWN_TASKS]))


# acre, gsm_symbolic: an entry depends on more than the sum of its seed and index.
@pytest.mark.parametrize("task", ["acre", "gcd", "gsm_symbolic", "word_sorting"])
def test_the_items_of_a_preset_are_the_published_ones_also_from_their_json(task):
    config = {"seed": SEED, "size": SIZE, **load_preset("rg-hard").params[task]}
    dataset = reasoning_gym.create_dataset(task, **config)
    items = Tasks(task).evaluation(preset="rg-hard")
    assert [item.index for item in items] == [*range(SIZE)]
    for item in items:
        for same in (item, Item.from_json(item.to_json())):
            assert same.question == dataset[item.index]["question"]
            assert same.split == "evaluation"


@pytest.mark.parametrize(
    ("preset", "why"),
    [("rg-medium", "preset: one of rg-easy, rg-hard, found"), ("rg-hard", "none of")],
)
def test_a_preset_that_is_none_or_has_no_chosen_task_is_refused(preset, why):
    with pytest.raises(SettingError, match=why):
        Tasks("survo").evaluation(preset=preset)
