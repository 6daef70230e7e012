"""The documents say what the code does: names, defaults, tables, samples, links."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from enum import Enum
from pathlib import Path
from typing import get_args

import pytest
import yaml
from atroposlib.envs.server_handling.server_manager import APIServerConfig
from parts import GUARD_S, NOWHERE, TOKENIZER, free_port

from rg_env.answers.extraction import FormatFailure
from rg_env.atropos import defaults
from rg_env.atropos.config import DATA_DUMPS, ReasoningGymEnvConfig
from rg_env.atropos.group_forms import build_record
from rg_env.cli import options
from rg_env.cli.main import COMMANDS
from rg_env.items import mixture_file, worker_jobs
from rg_env.items.group_scorer import TaskHandle
from rg_env.items.item_source import EVENTS
from rg_env.pool.worker_pool import WorkerPool
from rg_env.reports.evaluation_summary import EvalResult, summarise
from rg_env.reports.metrics import Metrics
from rg_env.rollouts.group_record import GroupRecord, RolloutRecord
from rg_env.rollouts.ledger import Ending, Fate, Ledger
from rg_env.tasks.feedback import Feedback
from rg_env.tasks.level_settings import build_rules
from rg_env.tasks.scale_repairs import NO_SCALE
from rg_env.tasks.scales import load_shipped
from rg_env.tasks.selection import build_selection

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = sorted((ROOT / "examples").iterdir())
MIXTURE_EXAMPLE = ROOT / "examples" / "mixture.yaml"
YAML_EXAMPLES = [
    path for path in EXAMPLES if path.suffix == ".yaml" and path != MIXTURE_EXAMPLE
]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *EXAMPLES]
LAUNCHER = ROOT / "examples" / "launch.sh"

ALLOWED_LINKS = (
    "https://github.com/NousResearch/atropos",
    "https://github.com/open-thought/reasoning-gym",
    "https://arxiv.org/",
    "https://huggingface.co/",
    "http://localhost:",
)

ENTRY_CALL = re.compile(r"python reasoning_gym_environment\.py +([a-z][a-z-]*)")
OPTION = re.compile(r"--(env|openai)\.([a-z]\w*)")
ENTRY_SOURCE = (ROOT / "reasoning_gym_environment.py").read_text(encoding="utf-8")


def texts(paths=DOCUMENTS):
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def table(heading):
    """Return the cells of the README's table whose head begins with `heading`."""
    start = README.index(f"| {heading} |")
    block = README[start:].split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in block]


def codes(cell):
    return re.findall(r"`([^`]+)`", cell)


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


# -- commands --------------------------------------------------------------------------


def test_every_documented_command_exists():
    used = set(ENTRY_CALL.findall(texts()))
    assert used <= set(COMMANDS)


def test_every_command_is_documented():
    assert set(COMMANDS) <= set(ENTRY_CALL.findall(README))


def test_every_documented_option_is_a_field():
    fields = {
        "env": ReasoningGymEnvConfig.model_fields,
        "openai": APIServerConfig.model_fields,
    }
    used = OPTION.findall(texts())
    assert used
    assert [name for kind, name in used if name not in fields[kind]] == []


def test_every_documented_option_of_the_simulated_server_exists():
    from rg_env.cli.simulated_server_command import build_parser

    known = {o for a in build_parser()._actions for o in a.option_strings}
    calls = re.findall(r"simulated-server (--[^\n&]*)", README)
    assert calls
    assert {w for call in calls for w in call.split() if w[0] == "-"} <= known


def test_every_make_word_is_a_target():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.M))
    used = re.findall(r"^make (\w+)", "\n".join(blocks("bash")), re.M)
    used += re.findall(r"`make (\w+)", README)
    assert {"demo", "test"} <= set(used) <= targets


def test_the_documented_output_of_demo_is_what_it_prints():
    shown = blocks("text")[0]
    source = texts([*(ROOT / "rg_env" / "cli").glob("*.py")])
    said = [
        "Starting the Atropos API and the simulated inference server ...",
        "Setting up the environment over all tasks ...",
        "rollouts delivered; mean score",
        "Groups (n) and mean score by task, of the simulated policy:",
        "Dump files, one group a line:",
        "Open them as a page:",
    ]
    assert [line for line in said if line not in shown or line not in source] == []


# -- configuration ---------------------------------------------------------------------


def shown(value):
    """Return a default as the table writes it."""
    if isinstance(value, Enum):
        value = value.value
    if value == str(DATA_DUMPS):
        value = DATA_DUMPS.relative_to(ROOT)
    return str(value)


def test_the_configuration_table_has_exactly_our_fields():
    declared = set(inspect.get_annotations(ReasoningGymEnvConfig)) - {"model_config"}
    rows = [codes(row[0])[0] for row in table("Field")]
    assert sorted(rows) == sorted(declared)


def test_the_configuration_table_has_the_defaults_of_the_class():
    fields = ReasoningGymEnvConfig.model_fields
    wrong = {
        name: default
        for (name,), (default,) in ((codes(r[0]), codes(r[1])) for r in table("Field"))
        if default != shown(fields[name].get_default(call_default_factory=True))
    }
    assert wrong == {}


def test_the_configuration_table_has_what_config_init_changes():
    start, default = defaults.env_config(), ReasoningGymEnvConfig()
    for row in table("Field"):
        name = codes(row[0])[0]
        value = getattr(start, name)
        changed = [] if value == getattr(default, name) else [shown(value)]
        assert codes(row[2]) == changed, name


def test_what_config_init_sets_of_the_hosts_fields_is_named():
    start, default = defaults.env_config(), ReasoningGymEnvConfig()
    own = {codes(row[0])[0] for row in table("Field")}
    hosts = set(ReasoningGymEnvConfig.model_fields) - own
    changed = {n for n in hosts if getattr(start, n) != getattr(default, n)}
    text = README[README.index("`config_init()` is what") : README.index("| Field |")]
    assert changed <= set(codes(text))


def built(path_or_text):
    """Parse YAML through the option parser, and build all models of it."""
    env, servers = defaults.env_config(), defaults.servers()
    parser = options.build_parser("serve", "", env, servers[0])
    chosen = options.parse(parser, ["--config", str(path_or_text)], type(env))
    config = options.build_model(
        "env", ReasoningGymEnvConfig, env.model_dump(), chosen.env
    )
    return config, options.build_servers(servers[0], chosen.openai)


@pytest.mark.parametrize("path", YAML_EXAMPLES, ids=lambda path: path.name)
def test_every_yaml_example_is_accepted(path):
    config, servers = built(path)
    given = yaml.safe_load(path.read_text(encoding="utf-8"))["env"]
    assert servers
    assert all(getattr(config, name) is not None for name in given)


def test_the_yaml_of_the_readme_is_accepted(tmp_path):
    (text,) = blocks("yaml")
    (tmp_path / "readme.yaml").write_text(text, encoding="utf-8")
    config, _ = built(tmp_path / "readme.yaml")
    assert config.group_size == 16


@pytest.mark.processes
def test_the_example_of_choosing_tasks_is_accepted_by_the_library():
    config, _ = built(ROOT / "examples" / "choose_tasks.yaml")
    pool = WorkerPool(1, preload=worker_jobs.PRELOAD)
    try:
        library = pool.call(worker_jobs.describe_library, deadline_s=GUARD_S)
        fields = ("tasks", "categories", "exclude_tasks", "task_weights", "task_params")
        choices = build_selection(library, **{f: getattr(config, f) for f in fields})
        given = [(choice.task, dict(choice.params)) for choice in choices]
        assert pool.call(worker_jobs.check_params, given, deadline_s=GUARD_S) is None
    finally:
        pool.close()


@pytest.mark.processes
def test_the_example_of_a_mixture_is_accepted_by_the_library():
    pool = WorkerPool(1, preload=worker_jobs.PRELOAD)
    try:
        library = pool.call(worker_jobs.describe_library, deadline_s=GUARD_S)
        params = {"composite": mixture_file.read(str(MIXTURE_EXAMPLE), None)}
        choices = build_selection(library, tasks=["composite"], task_params=params)
        given = [(choice.task, dict(choice.params)) for choice in choices]
        assert pool.call(worker_jobs.check_params, given, deadline_s=GUARD_S) is None
    finally:
        pool.close()


def test_the_example_of_a_curriculum_names_tasks_that_have_a_scale():
    config, _ = built(ROOT / "examples" / "curriculum.yaml")
    tasks = [*load_shipped().scales, *NO_SCALE]
    rules = build_rules(
        tasks, tasks, NO_SCALE, config.complexity_mode, config.task_levels
    )
    assert rules["gcd"].mode == "fixed"
    assert rules["word_sorting"].bounds == (0.2, 0.7)


def test_the_readme_names_the_tasks_without_a_scale():
    text = README[README.index("Tasks without a scale") :].split(")", 1)[0]
    named = set(re.findall(r"\w+", text.split("(")[1]))
    assert named == set(NO_SCALE) - {"composite"}


@pytest.mark.processes
def test_the_readme_names_every_category_and_the_number_of_tasks():
    pool = WorkerPool(1, preload=worker_jobs.PRELOAD)
    try:
        library = pool.call(worker_jobs.describe_library, deadline_s=GUARD_S)
    finally:
        pool.close()
    named = README[README.index("Twelve categories:") :].split(".", 1)[0]
    categories = {info.category for info in library.tasks.values()}
    assert set(re.findall(r"\w+", named.split(":")[1])) == categories
    assert f"All {len(library.tasks)} tasks" in README


# -- outcomes, fates, metrics ----------------------------------------------------------


def words_of_scores(path):
    """Return the outcomes that a module gives to `Score`, or assigns as `outcome`."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Score":
            found.append(node.args[1])
        elif isinstance(node, ast.Assign):
            names = [getattr(target, "id", "") for target in node.targets]
            found += [node.value] if "outcome" in names else []
        elif isinstance(node, ast.FunctionDef) and node.name == "outcome_of":
            found += [r.value for r in ast.walk(node) if isinstance(r, ast.Return)]
    constants = (n for value in found for n in ast.walk(value))
    strings = {n.value for n in constants if isinstance(n, ast.Constant)}
    return {word for word in strings if isinstance(word, str) and word}


def test_the_outcomes_table_has_every_outcome_of_the_code():
    in_code = set(get_args(FormatFailure))
    for path in (
        "rg_env/answers/scoring.py",
        "rg_env/items/worker_jobs.py",
        "rg_env/items/group_scorer.py",
        "rg_env/atropos/evaluation_run.py",
    ):
        in_code |= words_of_scores(path)
    assert {codes(row[0])[0] for row in table("Outcome")} == in_code


def test_the_fates_table_has_every_fate():
    assert [codes(row[0])[0] for row in table("Fate")] == list(get_args(Fate))


def record():
    rollout = RolloutRecord([], 1.0, 1.0, "right", "4", "stop", 1, 1)
    return GroupRecord("gcd", [rollout], "4", {})


def keys_of_the_code():
    """Return the W&B keys that the code makes of one of everything."""
    metrics = Metrics(Ledger())
    metrics.record_group(record())
    metrics.ledger.settle(Ending("sent", 1))
    metrics.events["scoring_retries"] = 1
    results = [EvalResult("gcd", "arithmetic", 1.0, "right", {})]
    numbers = (ROOT / "rg_env/reports/run_numbers.py").read_text(encoding="utf-8")
    in_entry = set(re.findall(r'"((?:train|curriculum)/\w+)"', ENTRY_SOURCE + numbers))
    # The table of rollouts is the host's.
    return (
        in_entry
        | {"train/rollouts"}
        | {
            *metrics.wandb_scalars(),
            *summarise(results).metrics(),
            *(f"curriculum/{name}" for name in Feedback(0.7).stats()),
        }
    )


def test_the_documented_metrics_are_those_of_the_code():
    documented = [code for row in table("W&B key") for code in codes(row[0])]
    patterns = [re.sub(r"<\w+>", r"[^/]+", code) for code in documented]
    made = keys_of_the_code()
    assert [p for p in patterns if not any(re.fullmatch(p, k) for k in made)] == []
    assert [k for k in made if not any(re.fullmatch(p, k) for p in patterns)] == []


def test_the_documented_events_are_those_of_the_code():
    (row,) = (row for row in table("W&B key") if "events/" in row[0])
    collection = (ROOT / "rg_env/atropos/collection.py").read_text(encoding="utf-8")
    counted = set(re.findall(r'events\["(\w+)"\]', ENTRY_SOURCE + collection))
    gathered = ENTRY_SOURCE[ENTRY_SOURCE.index("def _events") :]
    counted |= set(re.findall(r'"(\w+)": self\.', gathered.partition("}\n")[0]))
    counted |= {"failed_requests_<kind>"}
    assert set(codes(row[1])) == counted | set(EVENTS)


# -- files -----------------------------------------------------------------------------


def test_the_sample_line_has_the_keys_of_a_dumped_group():
    (sample,) = (json.loads(text) for text in blocks("json"))
    rollout = {
        "messages": [{"role": "assistant", "content": ""}],
        "rg_item": {"answer": "70"},
        "dataset_obj": TaskHandle("gcd"),
        "finish_reason": "stop",
        "tokens": [1, 2],
        "masks": [-100, 2],
    }
    score = type("", (), {"value": 1.0, "outcome": "right", "answer": "70"})
    line = build_record([rollout], [score], [1.0]).line({}, "")
    assert list(sample) == list(line)
    assert list(sample["rollouts"][0]) == list(line["rollouts"][0])


def test_everything_in_the_layout_exists_and_every_room_is_in_it():
    named = {codes(row[0])[0] for row in table("Where")}
    rooms = {f"rg_env/{p.parent.name}/" for p in ROOT.glob("rg_env/*/__init__.py")}
    # The submodule's folder is empty or absent until it is asked for.
    assert [n for n in named - {"reasoning-gym/"} if not (ROOT / n).exists()] == []
    assert rooms <= named


# -- links and paths -------------------------------------------------------------------


def test_every_relative_link_resolves():
    links = re.findall(r"\]\(([^)]+)\)", texts([ROOT / "README.md"]))
    files = [link for link in links if not link.startswith(("#", "http"))]
    assert files
    assert [link for link in files if not (ROOT / link).is_file()] == []


def test_every_link_inside_the_readme_has_its_heading():
    headings = re.findall(r"^#+ (.+)$", README, re.M)
    anchors = {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", README)) <= anchors


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_no_document_links_anywhere_else(path):
    links = re.findall(r"https?://[^\s)\"'`$]*", texts([path]))
    links = [link for link in links if link not in ("http://", "https://")]
    named = [link for link in links if not link.startswith(ALLOWED_LINKS)]
    assert named == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_no_document_names_a_path_of_a_machine(path):
    roots = r"(?<![\w.$}/])/(?:home|root|tmp|work|mnt|opt|srv|Users|var)\b"
    assert re.findall(roots, texts([path])) == []


# -- the launcher ----------------------------------------------------------------------


def launch(tmp_path, *argv):
    port = free_port()
    settings = {"API_PORT": str(port), "LOG_DIR": str(tmp_path)}
    process = subprocess.Popen(
        [LAUNCHER, *argv],
        env=os.environ | settings | {"PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return process, f"http://127.0.0.1:{port}"


def is_up(url):
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


@pytest.mark.processes
def test_the_launcher_ends_the_api_and_the_environment(tmp_path):
    process, url = launch(
        tmp_path,
        "--env.use_wandb=false",
        f"--env.tokenizer_name={TOKENIZER}",
        "--env.tasks=gcd",
        f"--openai.base_url={NOWHERE}",
    )
    said = iter(process.stdout.readline, "")
    assert any("waiting for the trainer" in line for line in said)
    assert is_up(url)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=GUARD_S)
    assert process.returncode == 128 + signal.SIGTERM
    assert not is_up(url)


@pytest.mark.processes
def test_the_launcher_ends_with_the_status_of_the_environment(tmp_path):
    process, url = launch(tmp_path, "--env.group_size=0")
    said, _ = process.communicate(timeout=GUARD_S)
    assert "env.group_size" in said
    assert process.returncode == 2
    assert not is_up(url)


def test_the_page_on_scoring_is_that_of_the_tables() -> None:
    from rg_env.answers.make_docs import PAGE, page

    assert PAGE.read_text(encoding="utf-8") == page(), "run rg_env.answers.make_docs"
