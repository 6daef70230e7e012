"""The registered tasks, their parameters, and the copy of reasoning-gym in use."""

import json
import shutil

import pytest

from rg_env.library import registry
from tests.support.worker_attacks import run_script


def test_a_changed_scorer_is_named(monkeypatch):
    assert registry.changed_scorers(registry.TASKS) == []
    dataset_cls = registry.load_factory().DATASETS["gcd"][0]
    monkeypatch.setattr(dataset_cls, "score_answer", lambda *_: 1.0)
    assert registry.changed_scorers(registry.TASKS) == ["gcd"]


@pytest.fixture(scope="module")
def description():
    return registry.describe()


def test_every_registered_name_but_the_mixture_is_a_task(description):
    registered = set(registry.load_factory().DATASETS)
    assert list(description.tasks) == sorted(registered - {"composite"})
    gcd = description.tasks["gcd"]
    assert gcd.category == "arithmetic"
    assert gcd.parameters["max_numbers"] == "2"
    assert not {"seed", "size"} & set(gcd.parameters)
    without = {n for n, task in description.tasks.items() if not task.has_curriculum}
    assert without == {"acre", "gsm_symbolic", "list_functions"}


# -- parameters ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "params", "reason"),
    [
        ("gcd", {"max_numbers": 4}, None),
        ("power_function", {"max_base": 5.0}, None),
        ("gcd", {"max_number": 4}, "unknown parameter 'max_number'; did you mean 'max"),
        ("gcd", {"seed": 1}, "unknown parameter 'seed'"),
        ("gcd", {"min_numbers": 9}, "its config refuses {'min_numbers': 9}: Assertion"),
        ("gcd", {"min_numbers": "two"}, "its config refuses {'min_numbers': 'two'}: T"),
    ],
)
def test_parameters_are_accepted_or_rejected_with_the_reason(task, params, reason):
    rejected = registry.rejected_params([("lcm", {}), (task, params)])
    if reason is None:
        assert rejected is None
    else:
        assert rejected[0] == task and rejected[1].startswith(reason)


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
    """A copy of the packages that use the library, without the submodule's folder."""
    for name in ("library", "task_rules", "reward"):
        shutil.copytree(repo_root / "rg_env" / name, tmp_path / "rg_env" / name)
    for name in ("__init__.py", "errors.py", "installation.py"):
        shutil.copy2(repo_root / "rg_env" / name, tmp_path / "rg_env" / name)
    return tmp_path


def populate(folder, init="", factory=TOY_FACTORY):
    """Make a checkout of a small library under the name of the real one."""
    package = folder / "reasoning_gym"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(init)
    (package / "factory.py").write_text(factory)
    text = '[project]\nname = "reasoning-gym"\nversion = "9.9.9"\n'
    (folder / "pyproject.toml").write_text(text)


DESCRIBE = """
import dataclasses, json
from rg_env.errors import LibraryError
from rg_env.library import registry
try:
    print(json.dumps(dataclasses.asdict(registry.describe())))
except LibraryError as error:
    print(json.dumps(str(error)))
"""


def described(project):
    """Return the description or the error's text in a process of its own."""
    return json.loads(run_script(project, DESCRIBE, PYTHONPATH=""))


@pytest.mark.processes
def test_a_populated_submodule_is_used_instead_of_the_installed_package(
    project, tmp_path_factory
):
    checkout = tmp_path_factory.mktemp("checkout")
    populate(checkout)
    (project / "reasoning-gym").symlink_to(checkout)
    found = described(project)
    assert (found["version"], list(found["tasks"])) == ("9.9.9", ["toy"])
    assert found["location"] == str(checkout / "reasoning_gym")


MULTILINGUAL = """
import sys

class MultilingualProceduralDataset:
    pass

class TranslationManager:
    def get_available_languages(self, task):
        return ["de", "en"]

sys.modules["reasoning_gym.multilingual"] = sys.modules[__name__]
"""
TRANSLATED = """
class Translated(ToyDataset, MultilingualProceduralDataset):
    pass

ToyConfig = dataclasses.make_dataclass("ToyConfig", [("languages", list, None)])
DATASETS = {"plain": (ToyDataset, ToyConfig), "toy": (Translated, ToyConfig)}
"""
REJECTED = """
from rg_env.library.registry import rejected_params
for task, value in (("toy", "de"), ("toy", ["xx"]), ("plain", "en"), ("plain", "de")):
    print(rejected_params([(task, {"languages": value})]))
"""


@pytest.mark.processes
def test_a_language_that_a_task_does_not_have_is_refused(project):
    # A stand-in for the multilingual version, which no index has.
    populate(project / "reasoning-gym", factory=MULTILINGUAL + TOY_FACTORY + TRANSLATED)
    lines = run_script(project, REJECTED, PYTHONPATH="").splitlines()
    assert lines[0] == lines[2] == "None"
    assert lines[1] == """('toy', "its questions are in de, en, not in 'xx'")"""
    assert lines[3] == """('plain', "its questions are in en, not in 'de'")"""


REPAIR = "git submodule update --init --force reasoning-gym"


@pytest.mark.processes
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"init": "import no_such.part"}, ["'no_such'", "install -r requirements.txt"]),
        ({"init": "syntax error"}, ["(__init__.py, line 1)", REPAIR]),
        ({"factory": ""}, ["no attribute 'DATASETS'", REPAIR]),
    ],
    ids=str,
)
def test_a_broken_checkout_is_one_sentence_with_its_cause_and_repair(
    project, files, expected
):
    populate(project / "reasoning-gym", **files)
    sentence = described(project)
    assert sentence.startswith("reasoning-gym cannot be used (")
    assert [part for part in expected if part not in sentence] == []
    assert "\n" not in sentence
