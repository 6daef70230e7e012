"""What the pages say of results is what the code writes: outcomes, counters, files."""

import asyncio
import json
import re

from rg_env.atropos.rewards import scored_rollout
from rg_env.inference.connection import refusal
from rg_env.results.samples import Sample
from rg_env.results.score_tables import EvalSummary
from rg_env.reward.score import OUTCOMES, Score
from rg_env.run.group import Rollout
from rg_env.run.ledger import Ending, Ledger
from rg_env.run.metrics import Metrics
from rg_env.stream.curriculum import Feedback
from rg_env.stream.prefetch import EVENTS
from tests.support.documents import ROOT, blocks, listed, text_of
from tests.support.groups import scored
from tests.support.parts import build_env

DOCS = ROOT / "docs"
METRICS = DOCS / "metrics_and_logs.md"
SOURCES = [ROOT / "reasoning_gym_environment.py", *(ROOT / "rg_env").rglob("*.py")]


def test_the_outcomes_table_has_every_outcome():
    rows = listed("Outcomes", DOCS / "answers_and_rewards.md")
    assert {name for names, _ in rows for name in names} == {*OUTCOMES}


def test_the_list_of_endings_has_every_ending():
    rows = listed("Rollout accounting", METRICS)
    assert [names[0] for names, _ in rows] == [ending.value for ending in Ending]


def keys_of_the_code():
    """Return the W&B keys that the code makes of one of everything."""
    metrics = Metrics(Ledger())
    asyncio.run(metrics.take(scored("gcd", [Rollout(outcome="right")])))
    metrics.ledger.settle(Ending.SENT, 1)
    metrics.events["errors"] = 1
    results = 2 * [Sample("gcd", "arithmetic", "4 and 6?", 1.0, "right")]
    written = set(re.findall(r'"((?:train|curriculum|eval)/\w+)"', text_of(*SOURCES)))
    return written | {
        *metrics.metrics(),
        *EvalSummary(results).metrics(),
        *(f"curriculum/{name}" for name in Feedback(0.7).stats()),
    }


def test_the_documented_metrics_are_those_of_the_code():
    documented = [name for names, _ in listed("Keys", METRICS) for name in names]
    patterns = [re.sub(r"<\w+>", r"[^/]+", code) for code in documented]
    made = keys_of_the_code()
    assert [p for p in patterns if not any(re.fullmatch(p, k) for k in made)] == []
    assert [k for k in made if not any(re.fullmatch(p, k) for p in patterns)] == []


def test_the_documented_events_are_those_of_the_code():
    env = build_env()
    env._servers.failures_by_kind[refusal(503, b"").kind] += 1
    counted = set(re.findall(r'events\["(\w+)"\]', text_of(*SOURCES)))
    names = " ".join(env._events())
    names = names.replace("_status_503", "_<kind>")
    counted |= set(names.split())
    asyncio.run(env.close())
    documented = {name for names, _ in listed("Events", METRICS) for name in names}
    assert documented == counted | set(EVENTS)


def test_the_sample_line_has_the_keys_of_a_dumped_group():
    texts = map(json.loads, blocks("json"))
    (sample,) = (found for found in texts if "rollouts" in found)
    rollout = {
        "messages": [{"role": "assistant", "content": ""}],
        "finish_reason": "stop",
        "tokens": [1, 2],
        "masks": [-100, 2],
    }
    rollouts = [scored_rollout(rollout, Score(1.0, "right", "70"))]
    line = scored("gcd", rollouts, "70", seed=1).line({}, "")
    assert list(sample) == [*line, "model", "step"]
    assert list(sample["rollouts"][0]) == list(line["rollouts"][0])
