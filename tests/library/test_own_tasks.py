"""A user's own tasks: their modules, the errors in them, and their scores."""

import contextlib
import json
from pathlib import Path

import pytest

from rg_env.library import worker_jobs
from rg_env.library.own_tasks import resolve_module
from rg_env.workers.call import JobError
from rg_env.workers.worker_pool import WorkerPool
from tests.support.worker_attacks import run_script

FILE = Path(__file__).parents[1] / "support" / "own_tasks.py"
GUARD_S = 120.0


# -- in the process that has the workers -----------------------------------------------


@pytest.mark.parametrize("module", ["gone.py", "no name", "a..b", "tasks/double", "9"])
def test_a_name_that_is_no_module_and_no_file_is_refused(module):
    with pytest.raises(ValueError, match="is not"):
        resolve_module(module)


HEAD = """\
import dataclasses
from reasoning_gym.factory import ProceduralDataset, register_dataset
from rg_env.task_rules.rules import TaskRules

@dataclasses.dataclass
class Config:
    seed: int | None = None
    size: int = 1

class Dataset(ProceduralDataset):
    def __init__(self, config):
        super().__init__(config=config, seed=config.seed, size=config.size)

"""
MINE = "register_dataset('mine', Dataset, Config)"
IN_A_FUNCTION = f"""\
def begin():
    class Dataset(ProceduralDataset):
        pass
    {MINE}
begin()
"""
REPORT = """
import json
from rg_env.errors import SettingError
from rg_env.library.own_tasks import registered_here
try:
    print(json.dumps(registered_here()))
except SettingError as error:
    print(error)
"""


@pytest.mark.processes
@pytest.mark.parametrize("body", [MINE, IN_A_FUNCTION])
def test_a_class_has_the_location_where_a_worker_can_import_it(tmp_path, body):
    output = run_script(tmp_path, f"{HEAD}{body}{REPORT}")
    if body is IN_A_FUNCTION:
        assert output.startswith("task 'mine': workers cannot import ")
    else:
        script = str(tmp_path / "script.py")
        locations = [[script, "Dataset"], [script, "Config"], None]
        assert json.loads(output) == {"mine": locations}


# -- in the process that they are forked from ------------------------------------------

REFUSED = {
    "raises": ("1 / 0", "ZeroDivisionError: division by zero, at t.py:14"),
    "exits": ("raise SystemExit(3)", "SystemExit: 3, at t.py:14"),
    "no syntax": ("def f(:", "SyntaxError: invalid syntax (t.py, line 14)"),
    "taken": ("register_dataset('gcd', Dataset, Config)", "'gcd' is already"),
    "nothing": ("", "t: no task is registered with reasoning_gym.factory.register"),
    "rules of others": (f"{MINE}\nRULES = TaskRules('gcd')", "found TaskRules(task='g"),
    "rules twice": (
        f"{MINE}\nRULES = [TaskRules('mine', kept_signs='-'), TaskRules('mine')]",
        "RULES of t: expected one TaskRules for each of your tasks, found TaskRules(",
    ),
}

LOADING = """\
import json, os, sys
from rg_env.library import registry, own_tasks
registry.load_factory()
for arguments in {calls}:
    sys.stdout.flush()
    if os.fork() == 0:
        try:
            own_tasks.load(arguments)
            print(json.dumps([sorted(registry.OWN_TASKS), registry.OWN_MODULES]))
        except own_tasks.SettingError as error:
            print(json.dumps(str(error)))
        sys.stdout.flush()
        os._exit(0)
    os.wait()
"""


def loaded(folder, *calls):
    """Return the result or the error of each call of `load`, in a fork for each."""
    source = LOADING.format(calls=[json.dumps(call) for call in calls])
    return [json.loads(line) for line in run_script(folder, source).splitlines()]


def written(folder, body, name="t.py"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(HEAD + body)
    return str(folder / name)


@pytest.mark.processes
def test_a_module_that_cannot_be_used_is_one_sentence(tmp_path):
    files = [written(tmp_path / case, body) for case, (body, _) in REFUSED.items()]
    refusals = loaded(tmp_path, *([[file], {}] for file in files))
    for case, refusal in zip(REFUSED, refusals, strict=True):
        assert refusal.startswith("tasks of your own cannot be loaded: "), case
        assert "\n" not in refusal and REFUSED[case][1] in refusal, case


@pytest.mark.processes
def test_tasks_are_found_by_file_and_where_classes_are_registered(tmp_path):
    registered, same = (written(tmp_path / name, MINE) for name in ("one", "same"))
    changed = written(tmp_path / "changed", f"{MINE}\n# another line")
    only_defined = written(tmp_path / "two", "")
    by_type = MINE.replace("Dataset,", "type('Made', (Dataset,), {}),")
    by_type = written(tmp_path / "four", by_type)
    beside = written(tmp_path / "three", "from name import NAME\n", "b.py")
    Path(beside).write_text(Path(beside).read_text() + MINE.replace("'mine'", "NAME"))
    (tmp_path / "three" / "name.py").write_text("NAME = 'ours'")
    named_as_in_python = [
        written(tmp_path / folder, MINE.replace("mine", folder), "json.py")
        for folder in ("a", "b")
    ]
    locations = [(only_defined, "Dataset"), (only_defined, "Config"), None]
    same_locations = [(registered, "Dataset"), (registered, "Config"), None]
    *results, refusal = loaded(
        tmp_path,
        [[registered], {}],
        [[same], {}],
        [[changed], {}],
        [[], {"yours": locations}],
        [[registered], {"mine": same_locations}],
        [[registered, only_defined], {"yours": locations}],
        [[beside], {}],
        [named_as_in_python, {}],
        [[by_type], {}],
        [[], {"mine": [(only_defined, "Gone"), (only_defined, "Config"), None]}],
    )
    names = " ".join("+".join(names) for names, _ in results)
    assert names == "mine mine mine yours mine mine+yours ours a+b mine"
    assert "has no attribute 'Gone'" in refusal
    # A digest depends only on the source.
    one, two, three = (digests["t"] for _, digests in results[:3])
    assert one == two != three
    assert [*results[-1][1]] == ["t"]


# -- in workers ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own():
    """Call jobs in workers that know the tasks of `tests/support/own_tasks.py`."""
    pool = WorkerPool(2, preload=worker_jobs.preload_calls([str(FILE)]))
    with contextlib.closing(pool):
        yield lambda job, *args: pool.call(job, *args, deadline_s=GUARD_S)


@pytest.mark.processes
def test_an_entry_depends_only_on_its_seed_even_if_it_reads_the_global_generator(own):
    entry = own(worker_jobs.make_entry, "double", {}, 4, False)
    own(worker_jobs.make_entry, "gcd", {}, 5)
    for _ in range(2):
        assert own(worker_jobs.make_entry, "double", {}, 4, False) == entry
    other = own(worker_jobs.make_entry, "double", {}, 5, False)
    assert other["question"] != entry["question"]


@pytest.mark.processes
@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("raises", "ZeroDivisionError: division by zero, at own_tasks.py:"),
        ("makes_no_entry", "KeyError: 'question'"),
        ("reads_a_file", "PermissionError: [Errno 13] Permission denied: '/etc/passw"),
    ],
)
def test_an_exception_of_a_dataset_has_its_line(own, task, expected):
    with pytest.raises(JobError) as caught:
        own(worker_jobs.make_entry, task, {}, 1)
    assert caught.value.class_name == "OwnTaskError"
    assert caught.value.message.startswith(expected)


@pytest.mark.processes
def test_the_scale_is_every_level_that_the_config_accepts(own):
    scale = own(worker_jobs.own_scale, "double")
    highest = [step.params.get("highest", 999) for step in scale.steps]
    assert highest == [9, 99, 999] and scale.default_level == 1.0
    (skip,) = scale.skipped
    refusal = "its config refuses it: AssertionError: highest must be below 10000"
    assert skip.level == 3 and skip.reason.startswith(refusal)
    no_scale = own(worker_jobs.own_scale, "raises")
    assert no_scale == "no curriculum is registered with it"


@pytest.mark.processes
def test_rules_of_the_module_apply_and_an_exception_fails_only_its_answer(own):
    def outcomes(task, answers, seed):
        entry = own(worker_jobs.make_entry, task, {}, seed)
        gold = entry["answer"]
        answers = [answer.format(gold) for answer in answers]
        return [
            row[1] for row in own(worker_jobs.score_answers, task, {}, entry, answers)
        ]

    def is_usable(seed):
        with contextlib.suppress(JobError):
            return bool(own(worker_jobs.make_entry, "double", {}, seed))

    even = next(filter(is_usable, range(50)))  # others the item check rejects
    answers = ["{}", "00{}", "{}7", "reject", "break the notation"]
    expected = ["right", "right", "wrong", "rejected", "scorer_error"]
    assert outcomes("double", answers, even) == expected
    found = outcomes("scorer_hangs", ["{}", "raise", "no"], 1)
    assert found == ["right", "scorer_error", "wrong"]
    assert outcomes("overpays", ["please"], 1) == ["wrong"]
