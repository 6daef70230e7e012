"""The stream of items that `Tasks` is: what it depends on, and what moves it."""

from __future__ import annotations

import itertools
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from rg_env import Item, Tasks, score
from rg_env.errors import LibraryError, SettingError
from rg_env.workers.pool_errors import WorkerLostError
from tests.support.parts import REPO_ROOT

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("pool")]

CHOSEN = ("gcd", "*_sorting", "chain_sum")


def taken(tasks, count):
    return [item.to_json() for item in itertools.islice(tasks, count)]


def test_skipped_items_are_those_that_would_have_come():
    tasks, skipping = Tasks(*CHOSEN), Tasks(*CHOSEN)
    skipping.skip(15)
    assert taken(tasks, 20)[15:] == taken(skipping, 5)


def test_an_item_is_made_by_its_position_and_the_stream_stays_where_it_is():
    tasks, whole = Tasks(*CHOSEN), taken(Tasks(*CHOSEN), 20)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(tasks.at, reversed(range(20))))
    assert [item.to_json() for item in reversed(found)] == whole
    assert tasks.position == 0
    with pytest.raises(ValueError, match="position"):
        tasks.at(-1)


def test_shards_share_out_the_items_of_the_stream():
    whole = taken(Tasks(*CHOSEN), 12)
    parts = [taken(Tasks(*CHOSEN, shard=(i, 3)), 4) for i in range(3)]
    assert [item for row in zip(*parts, strict=True) for item in row] == whole


@pytest.mark.parametrize("drawn", [0, 4])
def test_a_pickled_stream_goes_on_where_it_stood(drawn):
    tasks = Tasks(*CHOSEN, levels="curriculum", choice="adaptive")
    for item in itertools.islice(tasks, drawn):
        tasks.feedback(item, [1.0, 1.0])
    other = pickle.loads(pickle.dumps(tasks))
    assert taken(other, 5) == taken(tasks, 5)


def test_threads_that_share_a_stream_share_out_its_items():
    tasks, found = Tasks(*CHOSEN), []
    threads = [
        threading.Thread(target=lambda: found.extend(taken(tasks, 5))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(taken(Tasks(*CHOSEN), 20))


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


def test_evaluation_items_are_no_items_of_the_stream():
    items = Tasks(*CHOSEN).evaluation(3)
    assert len(items) == 12
    assert min(item.seed for item in items) >= 2**31
    assert max(item.seed for item in itertools.islice(Tasks(*CHOSEN), 20)) < 2**31


@pytest.mark.parametrize(
    ("levels", "found"),
    [
        (None, {None}),
        (0.5, {0.5}),
        ("curriculum", {0.3}),
        ((0.2, 0.2), {0.2}),
        ({"*": 0.1, "gcd": 0.9}, {0.1, 0.9}),
    ],
    ids=str,
)
def test_levels_mean_what_the_settings_mean(levels, found):
    items = itertools.islice(Tasks("gcd", "chain_sum", levels=levels), 20)
    assert {item.level for item in items} == found


@pytest.mark.parametrize(
    "wrong",
    [
        {"levels": "curiculum"},
        {"levels": {"gcd": 2.0}},
        {"shard": (2, 2)},
        {"seed": -1},
        {"choice": "best"},
    ],
    ids=str,
)
def test_a_wrong_setting_is_refused_at_once(wrong):
    with pytest.raises(SettingError):
        Tasks(**wrong)


def test_groups_that_are_all_right_raise_the_level():
    tasks = Tasks("gcd", levels="curriculum")
    for item in itertools.islice(tasks, 3):
        tasks.feedback(item, [1.0, 1.0, 0.9])
    assert next(tasks).level > item.level


def test_a_state_brings_back_place_levels_and_weights():
    tasks = Tasks(*CHOSEN, levels="curriculum", choice="adaptive")
    for item in itertools.islice(tasks, 12):
        tasks.feedback(item, score(item, [f"<answer>{item.gold}</answer>"]))
    other = Tasks(*CHOSEN, levels="curriculum", choice="adaptive")
    other.load_state_dict(tasks.state_dict())
    assert other.state_dict() == tasks.state_dict()
    assert taken(other, 10) == taken(tasks, 10)


NO_WEIGHTS = {"position": 1, "progress": {}, "curriculum": {}, "adaptive": {"gcd": 1}}


@pytest.mark.parametrize(
    "wrong", [{}, {"position": -1}, None, {"position": "3"}, NO_WEIGHTS]
)
def test_what_is_no_state_is_refused_and_changes_nothing(wrong):
    tasks = Tasks(*CHOSEN)
    first = taken(tasks, 3)
    with pytest.raises(ValueError, match=r"position|object|signal"):
        tasks.load_state_dict(wrong)
    assert first + taken(tasks, 2) == taken(Tasks(*CHOSEN), 5)


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
    "text", ["", "[]", "{}", '{"task":"gcd","params":{},"seed":-1}']
)
def test_what_is_no_item_is_refused(text):
    with pytest.raises(ValueError, match="no item"):
        Item.from_json(text)


@pytest.mark.parametrize("wrong", [1.5, -0.1, float("nan")])
def test_results_outside_0_to_1_are_refused(wrong):
    tasks = Tasks("gcd", levels="curriculum")
    with pytest.raises(ValueError, match="None"):
        tasks.feedback(next(tasks), [1.0, wrong])


OWN_TASKS = str(REPO_ROOT / "tests" / "support" / "own_tasks.py")
BROKEN = ("raises", "makes_no_entry", "scorer_raises", "pays_none", "pays_percent")


@pytest.mark.slow
def test_own_tasks_that_are_broken_give_no_items(caplog):
    tasks = Tasks("double", *BROKEN, task_modules=OWN_TASKS)
    items = [tasks.at(position) for position in range(30)]
    assert {item.task for item in items if item is not None} == {"double"}
    left_out = [record.args[0] for record in caplog.records if len(record.args) == 2]
    assert left_out == sorted(BROKEN)
    with pytest.raises(LibraryError, match=r"task pays_none: .* returned None"):
        next(Tasks("pays_none", task_modules=[OWN_TASKS]))
