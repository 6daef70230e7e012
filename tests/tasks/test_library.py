"""The door to reasoning-gym: what is registered, entries by seed, which copy it is."""

import dataclasses
import decimal
import importlib.metadata
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rg_env.errors import LibraryError, SettingError
from rg_env.tasks import library, library_import, library_levels
from rg_env.tasks.datasets import CACHE, DatasetCache
from rg_env.tasks.library import UnusableEntryError
from rg_env.tasks.library_import import load_factory
from rg_env.workers.pool_errors import JobError

SAMPLE = ["chain_sum", "spell_backward", "survo", "acre", "gsm_symbolic", "word_ladder"]


@pytest.fixture(scope="module")
def description():
    return library.describe()


@pytest.fixture(scope="module")
def factory(description):
    import reasoning_gym.factory

    return reasoning_gym.factory


@pytest.mark.processes
def test_the_library_is_read_without_matplotlib_which_draws_for_others():
    program = (
        "import sys; from rg_env.tasks import library; library.describe();"
        "print([name for name in sys.modules if name.startswith('matplotlib')]);"
        "import matplotlib; print(matplotlib.__version__)"
    )
    python = [sys.executable, "-c", program]
    done = subprocess.run(python, capture_output=True, text=True, check=True)
    loaded, version = done.stdout.splitlines()
    assert loaded == "[]" and version[0].isdigit()


# -- the registry ----------------------------------------------------------------------


def test_every_registered_name_but_the_mixture_is_a_task(description, factory):
    assert list(description.tasks) == sorted(set(factory.DATASETS) - {"composite"})


def test_the_version_is_the_installed_one(description):
    if description.from_submodule:
        pytest.skip("the submodule is used instead of the installed package")
    assert description.version == importlib.metadata.version("reasoning-gym")


def test_a_task_has_its_category_and_its_parameters_without_seed_and_size(description):
    gcd = description.tasks["gcd"]
    assert gcd.category == "arithmetic"
    assert gcd.parameters["max_numbers"] == "2"
    assert not {"seed", "size"} & set(gcd.parameters)


def test_a_task_says_whether_the_library_can_vary_its_difficulty(description):
    without = {n for n, task in description.tasks.items() if not task.has_curriculum}
    assert without == {"acre", "gsm_symbolic", "list_functions"}


# -- entries ---------------------------------------------------------------------------


@pytest.mark.parametrize("task", SAMPLE)
@pytest.mark.parametrize("seed", [0, 2**31 + 7])
def test_an_entry_is_the_first_of_the_library_s_dataset_with_its_seed(
    factory, task, seed
):
    theirs = factory.create_dataset(task, seed=seed, size=1)[0]
    assert library.make_entry(task, {}, seed) == theirs


def test_parameters_reach_the_dataset(factory):
    params = {"min_terms": 6, "max_terms": 6}
    entry = library.make_entry("chain_sum", params, 3)
    assert entry == factory.create_dataset("chain_sum", seed=3, size=1, **params)[0]
    assert entry != library.make_entry("chain_sum", {}, 3)


@pytest.mark.parametrize("task", ["list_functions", "decimal_arithmetic"])
def test_an_entry_does_not_depend_on_global_state(task):
    entry = library.make_entry(task, {}, 5)
    random.seed(99)
    decimal.getcontext().prec = 3
    assert library.make_entry(task, {}, 5) == entry


@pytest.mark.parametrize("task", SAMPLE)
def test_a_dataset_has_the_entries_of_the_library(factory, task):
    config = {"size": 3, "seed": 45}
    made = factory.create_dataset(task, **config)
    found = library.dataset_entries(task, json.dumps(config))
    assert found == [made[index] for index in range(3)]


def test_an_entry_of_a_dataset_that_cannot_be_used_is_rejected():
    config = json.dumps({"size": 40, "seed": 45})
    refused = []
    for index in range(40):
        try:
            library.dataset_entry("propositional_logic", config, index)
        except UnusableEntryError as error:
            refused.append(str(error))
    assert 0 < len(refused) < 40


def test_a_dataset_of_endless_size_is_not_made():
    with pytest.raises(ValueError, match="more than 10000 entries"):
        library.dataset_entries("gcd", json.dumps({"size": 10**12, "seed": 1}))


def test_an_unknown_task_has_no_entry():
    with pytest.raises(SettingError, match="unknown task 'gcdd'; did you mean 'gcd'"):
        library.make_entry("gcdd", {}, 5)


def test_a_scorer_that_reads_its_dataset_gets_the_parameters_of_its_item():
    dataset = library.scoring_dataset("puzzle24", {"max_value": 9})
    assert dataset.config.max_value == 9


@pytest.mark.parametrize("task", ["gcd", "sudoku", "maze"])
def test_a_scorer_that_reads_no_dataset_scores_without_one_as_with_one(task):
    entry = library.make_entry(task, {}, 5)
    bare = library.scoring_dataset(task, {})
    whole = library.build_dataset(task, {}, 5)
    assert not hasattr(bare, "config")
    for answer in (entry["answer"], "", "0", entry["answer"][:-1]):
        assert bare.score_answer(answer, entry) == whole.score_answer(answer, entry)


def test_a_dataset_of_the_library_is_built_again_from_its_class_and_config(factory):
    theirs = factory.create_dataset("gcd", seed=5, size=1, max_numbers=7)
    task, ours = library.dataset_from_config(
        type(theirs).__module__, type(theirs).__qualname__, theirs.config
    )
    assert (task, type(ours)) == ("gcd", type(theirs))
    assert ours[0] == theirs[0]


def test_a_class_that_is_no_task_is_refused():
    with pytest.raises(SettingError, match=r"builtins\.dict is no registered task"):
        library.dataset_from_config("builtins", "dict", None)


# -- entries that cannot be used -------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "params", "seed", "reason"),
    [
        ("jugs", {"num_jugs": 4}, 31, "its answer is that"),
        # an address, of which each process has another
        ("codeio", {"difficulty": 7}, 2101905293, "its answer holds"),
    ],
)
def test_an_entry_whose_answer_is_not_right_is_rejected_with_the_reason(
    make_entry, task, params, seed, reason
):
    with pytest.raises(JobError, match=reason) as caught:
        make_entry(task, params, seed)
    assert caught.value.kind == "UnusableEntryError"


def test_an_entry_whose_answer_is_longer_than_an_answer_may_be_is_refused():
    hanoi = {"min_disks": 12, "max_disks": 12, "min_pegs": 3, "max_pegs": 3}
    with pytest.raises(library.UnusableEntryError, match="20000 characters"):
        library.make_entry("tower_of_hanoi", hanoi, 1)


# -- parameters ------------------------------------------------------------------------


def refusal(task, params):
    with pytest.raises(SettingError) as caught:
        library.check_params(task, params, "task_params")
    return str(caught.value)


@pytest.mark.parametrize(
    ("task", "params"),
    [("gcd", {}), ("gcd", {"max_numbers": 4}), ("power_function", {"max_base": 5.0})],
)
def test_parameters_that_the_library_accepts_pass(task, params):
    library.check_params(task, params, "task_params")


def test_an_unknown_parameter_meets_its_nearest():
    assert refusal("gcd", {"max_number": 4}) == (
        "task_params.gcd: unknown parameter 'max_number'; did you mean 'max_numbers'?"
    )


@pytest.mark.parametrize("name", ["seed", "size"])
def test_what_the_sampler_owns_is_no_parameter(name):
    assert f"unknown parameter {name!r}" in refusal("gcd", {name: 1})


@pytest.mark.parametrize(
    ("task", "params"),
    [
        ("gcd", {"min_numbers": 9}),
        ("gcd", {"min_numbers": "two"}),
        ("calendar_arithmetic", {"tasks": [None]}),
    ],
)
def test_values_that_the_library_refuses_are_named(task, params):
    said = refusal(task, params)
    assert said.startswith(f"task_params.{task}: reasoning-gym refuses {params!r}")


# -- which copy ------------------------------------------------------------------------

TOY_FACTORY = """
import dataclasses

@dataclasses.dataclass
class ToyConfig:
    seed: int = 0
    size: int = 1

class ToyDataset:
    pass

DATASETS = {"toy": (ToyDataset, ToyConfig)}
CURRICULA = {}
"""


@pytest.fixture
def project(tmp_path, repo_root):
    """A copy of the rooms that know the library, without the submodule's folder."""
    for name in ("tasks", "task_rules"):
        shutil.copytree(repo_root / "rg_env" / name, tmp_path / "rg_env" / name)
    for name in ("__init__.py", "errors.py"):
        shutil.copy2(repo_root / "rg_env" / name, tmp_path / "rg_env" / name)
    return tmp_path


def populate(folder, version=None, init="", factory=TOY_FACTORY):
    """Make a checkout of a small library under the name of the real one."""
    package = folder / "reasoning_gym"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(init)
    (package / "factory.py").write_text(factory)
    if version is not None:
        write_version(folder, version)


def write_version(folder, version, name="reasoning-gym"):
    text = f'[project]\nname = "{name}"\nversion = "{version}"\n'
    (folder / "pyproject.toml").write_text(text)


def described(project, **environment):
    """What a process of its own finds: the description, or the error's text."""
    program = (
        "import dataclasses, json\n"
        "from rg_env.errors import LibraryError\n"
        "from rg_env.tasks import library\n"
        "try:\n"
        "    print(json.dumps(dataclasses.asdict(library.describe())))\n"
        "except LibraryError as error:\n"
        "    print(json.dumps(str(error)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.processes
def test_a_populated_submodule_is_used_instead_of_the_installed_package(
    project, factory
):
    submodule = project / "reasoning-gym"
    installed = Path(factory.__file__).parent
    shutil.copytree(installed, submodule / "reasoning_gym")
    write_version(submodule, "9.9.9")
    found = described(project)
    assert (found["version"], found["from_submodule"]) == ("9.9.9", True)
    assert found["location"] == str(submodule / "reasoning_gym")
    assert set(found["tasks"]) == set(library_import.TASKS)


@pytest.mark.processes
def test_an_empty_submodule_folder_changes_nothing(project, description):
    if description.from_submodule:
        pytest.skip("there may be no installed package beside the submodule")
    (project / "reasoning-gym").mkdir()
    assert described(project) == dataclasses.asdict(description)


@pytest.mark.processes
def test_a_submodule_may_be_a_link_to_a_checkout(project, tmp_path_factory):
    checkout = tmp_path_factory.mktemp("checkout")
    populate(checkout, "9.9.9")
    (project / "reasoning-gym").symlink_to(checkout)
    found = described(project)
    assert (found["version"], found["from_submodule"]) == ("9.9.9", True)


@pytest.mark.processes
def test_a_project_file_of_something_else_says_no_version(project, tmp_path_factory):
    beside = tmp_path_factory.mktemp("site-packages")
    populate(beside)
    write_version(beside, "7.7.7", name="something-else")
    found = described(project, PYTHONPATH=str(beside))
    assert list(found["tasks"]) == ["toy"]
    assert found["version"] == importlib.metadata.version("reasoning-gym")
    assert not found["from_submodule"]


EMPTY_CHECKOUT = "git submodule update --init --force reasoning-gym"

BROKEN_CHECKOUTS = {
    "a missing dependency": (
        {"init": "import no_such_module.part"},
        ["cannot be imported", "'no_such_module'", "pip install -r requirements.txt"],
    ),
    "a syntax error": (
        {"init": "syntax error"},
        ["cannot be imported from", "(__init__.py, line 1)", EMPTY_CHECKOUT],
    ),
    "an error while it is imported": (
        {"init": "\nraise AttributeError('numpy')"},
        ["AttributeError: numpy, at reasoning_gym/__init__.py:2", EMPTY_CHECKOUT],
    ),
    "an exit": (
        {"init": "raise SystemExit('not today')"},
        ["SystemExit: not today", EMPTY_CHECKOUT],
    ),
    "a module that it has not": (
        {"init": "import reasoning_gym.coaching"},
        ["No module named 'reasoning_gym.coaching'", EMPTY_CHECKOUT],
    ),
    "an empty registry": (
        {"factory": "DATASETS = {}\nCURRICULA = {}\n"},
        ["registers no task", EMPTY_CHECKOUT],
    ),
    "no registry": (
        {"factory": ""},
        ["tasks of reasoning-gym at", "no attribute 'DATASETS'", EMPTY_CHECKOUT],
    ),
    "a registry of another form": (
        {"factory": "DATASETS = ['gcd']\nCURRICULA = {}"},
        ["tasks of reasoning-gym at", "AttributeError", EMPTY_CHECKOUT],
    ),
    "a task without its config": (
        {"factory": "DATASETS = {'gcd': (int, int)}\nCURRICULA = {}"},
        ["tasks of reasoning-gym at", "dataclass", EMPTY_CHECKOUT],
    ),
}


@pytest.mark.processes
@pytest.mark.parametrize("case", BROKEN_CHECKOUTS)
def test_a_broken_checkout_is_one_sentence_with_its_cause_and_repair(project, case):
    files, expected = BROKEN_CHECKOUTS[case]
    populate(project / "reasoning-gym", "9.9.9", **files)
    said = described(project)
    assert [part for part in expected if part not in said] == []
    assert "\n" not in said


@pytest.mark.processes
@pytest.mark.parametrize(
    ("name", "repair"),
    [
        ("site-packages", "pip install --force-reinstall --no-deps reasoning-gym=="),
        ("checkout", "checkout off PYTHONPATH"),
    ],
)
def test_a_broken_package_is_repaired_where_it_is(
    project, tmp_path_factory, name, repair
):
    place = tmp_path_factory.mktemp("place") / name
    (place / "reasoning_gym").mkdir(parents=True)
    (place / "reasoning_gym" / "__init__.py").touch()
    said = described(project, PYTHONPATH=str(place))
    assert "No module named 'reasoning_gym.factory'" in said
    assert repair in said


def test_a_library_that_is_not_there_is_told_from_one_that_is_broken(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(library_import, "SUBMODULE", tmp_path)
    (tmp_path / "README.md").touch()
    nothing = ModuleNotFoundError("No module named 'x'", name="reasoning_gym")
    said = str(library_import._not_importable(nothing))
    assert "because it is not installed" in said
    assert f"{tmp_path} does not hold its package" in said


@pytest.mark.processes
def test_importing_the_door_does_not_import_the_library(repo_root):
    program = (
        "import sys; from rg_env.tasks import library, selection\n"
        "assert not {'reasoning_gym', 'numpy', 'sympy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], cwd=repo_root, check=True)


def test_a_library_error_is_no_setting_error():
    assert not issubclass(LibraryError, SettingError)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "levels"),
    [
        ("arc_agi", [{}, {"use_color_permutation": False}, {"use_eval": False}]),
        ("group_anagrams", [{}, {"max_anagram_groups": 50}]),
        ("n_queens", [{"n": 10, "max_remove": 10}, {"n": 6, "max_remove": 3}]),
        ("spell_backward", [{"max_word_len": 5}, {"max_word_len": 11}]),
        ("figlet_font", [{"max_word_len": 5}, {"max_word_len": 30}]),
    ],
)
def test_kept_and_shared_data_make_the_entries_of_a_dataset_built_afresh(task, levels):
    for params in levels * 2:
        for seed in (3, 2**31 + 5):
            afresh = library.build_dataset(task, params, seed)[0]
            assert library.make_entry(task, params, seed) == afresh


def test_data_is_shared_by_datasets_of_equal_setup_alone():
    plain, mirrored = {}, {"use_color_permutation": False}
    one, other = (CACHE.dataset("arc_agi", p) for p in (plain, mirrored))
    assert one._tasks is other._tasks
    whole = CACHE.dataset("arc_agi", {"use_eval": False})
    assert len(whole._tasks) < len(one._tasks)


def test_equal_rows_of_all_solutions_are_one_row():
    boards = CACHE.dataset("n_queens", {"n": 9})._solutions
    assert len({id(row) for board in boards for row in board}) == 9


def test_only_datasets_that_take_long_to_build_are_kept():
    cache = DatasetCache(5)
    quick, slow = "leg_counting", "spell_backward"
    assert cache.dataset(quick, {}) is not cache.dataset(quick, {})
    assert cache.dataset(slow, {}) is cache.dataset(slow, {})


def test_the_digest_of_a_task_changes_with_its_curriculum(monkeypatch):
    before = library_levels.curriculum_digest("ab")
    curriculum = load_factory().CURRICULA["ab"]

    class Longer(curriculum):
        def __init__(self):
            super().__init__()
            self.attributes["length"].levels = [10, 20, 30, 40]

    Longer.__module__ = curriculum.__module__
    monkeypatch.setitem(load_factory().CURRICULA, "ab", Longer)
    assert library_levels.curriculum_digest("ab") != before
