"""The tables of `docs/real_answers.md`, of samples that were scored again. Pure."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rg_env.evaluation.comparison import measured, paired
from rg_env.evaluation.sample_rows import sample_of
from rg_env.evaluation.samples import Sample, scored
from rg_env.evaluation.statistics import Estimate, grouped

FULL = 1.0 - 1e-9
LEAST_RIGHT, MOST_WRONG = 0.995, 0.001
SCORES = {"saved": "published", "library": "library now", "ours": "ours"}
VERDICTS = {True: "right", False: "wrong", None: "unknown"}
Lines = Iterable[str]


def slim(row: Mapping[str, Any]) -> Sample:
    """Return a line of the file of `rescore` with what the tables need."""
    source = sys.intern(row["source"])
    kept = {name: row.get(name) for name in ("answer", "gold_answer", "scores")}
    kept["model"] = re.sub(r"^[^_]*_|_\d{8}_\d{6}$", "", row["run"])
    kept["split"] = Path(source).parts[-4]
    kept["config"] = sys.intern(json.dumps(row["dataset"], sort_keys=True))
    kept["at"] = source, row["place"]
    sample = dataclasses.replace(sample_of(row), row=kept)
    return dataclasses.replace(sample, question=sys.intern(sample.question))


def _table(headings: str, rows: Iterable[Iterable[Any]]) -> Lines:
    yield f"\n| {headings.replace(', ', ' | ')} |"
    yield "|---|" + "--:|" * headings.count(",")
    yield from (f"| {' | '.join(map(str, row))} |" for row in rows)
    yield ""


def _by(samples: Iterable[Sample], key: Any) -> list[tuple[Any, list[Sample]]]:
    return sorted(grouped(samples, key).items(), key=lambda pair: str(pair[0]))


def _task(sample: Sample) -> str:
    return sample.task


def _model(sample: Sample) -> str:
    return str(sample.row["model"])


def _examples(title: str, samples: Sequence[Sample], most: int) -> Lines:
    texts = Counter((s.row["answer"], str(s.row["gold_answer"])) for s in samples)
    if texts and most:
        yield f"{title}: {len(samples)}"
    for (answer, gold), number in texts.most_common(most):
        yield f"    {number} x {answer[:60]!r} for {gold[:60]!r}"


def _cause(sample: Sample) -> tuple[str, str]:
    library, fixes, ours = (
        sample.row["scores"][n] for n in ("library", "fixes", "ours")
    )
    is_fix = abs(fixes - library) >= abs(ours - fixes)
    return sample.task, "fix" if is_fix else "normalization"


def differences(samples: Sequence[Sample], examples: int) -> Lines:
    """Yield where the library's score and ours are 0.5 or more apart."""
    answered = [s for s in samples if s.is_answered]
    for more, less in (("library", "ours"), ("ours", "library")):
        off = [(s.row["scores"][more] - s.row["scores"][less], s) for s in answered]
        groups = _by((s for by, s in off if by > 0.5 - 1e-9), _cause)
        total = sum(len(those) for _, those in groups)
        yield f"{more} scores 0.5 more: {total} of {len(answered)} answers"
        rows = []
        for key, those in groups:
            found = Counter(s.row["right"] for s in those)
            rows.append((*key, len(those), *(found[said] for said in VERDICTS)))
        yield from _table("task, by, answers, right, wrong, unknown", rows)
        for (task, cause), those in groups:
            yield from _examples(f"{task} by {cause}", those, examples)


def judgement(samples: Sequence[Sample], examples: int) -> Lines:
    """Yield how answers that are right or wrong by the judge are scored."""
    answered = [s for s in samples if s.is_answered]
    for name in ("library", "ours"):
        full = sum(s.row["scores"][name] >= FULL for s in answered)
        yield f"in full with {name}: {full} of {len(answered)} answers"
    rows: list[Any] = []
    texts: list[str] = []
    for task, those in [("all", answered), *_by(answered, _task)]:
        by = grouped(those, lambda s: (s.row["right"], s.row["scores"]["ours"] >= FULL))
        n = {key: len(of) for key, of in by.items()}
        right, unpaid = n.get((True, True), 0), n.get((True, False), 0)
        wrong, paid = n.get((False, False), 0), n.get((False, True), 0)
        row = (right + unpaid, unpaid, wrong + paid, paid)
        is_low = unpaid > (1 - LEAST_RIGHT) * row[0] or paid > MOST_WRONG * row[2]
        if task == "all" or is_low or not row[0] + row[2]:
            rows.append((task, *row, len(those) - row[0] - row[2]))
        for key, title in (((True, False), "right, not"), ((False, True), "wrong,")):
            if task != "all":
                texts += _examples(f"{task} {title} in full", by.get(key, []), examples)
    yield f"Tasks below {LEAST_RIGHT} or above {MOST_WRONG}, or with nothing known:"
    yield from _table("task, right, not in full, wrong, in full, unknown", rows)
    yield from texts


def extraction(samples: Sequence[Sample], refused: Mapping[Any, Any]) -> Lines:
    """Yield what one answer costs, by model; `refused` is of `by_other_rules`."""
    rows = []
    there = scored(samples)
    for model, those in [*_by(there, _model), ("all", there)]:
        none = [s.row["at"] for s in those if s.row["answer"] is None]
        tags = [refused[at] for at in none if at in refused]
        last = [is_same for _, score, is_same in tags if score >= FULL]
        first = sum(score >= FULL for score, *_ in tags)
        share = f"{(len(none) - len(tags)) / len(those):.1%}"
        rows.append((model, len(those), share, len(tags), len(last), sum(last), first))
    head = "model, completions, no tags, refused, last right, the same twice"
    yield from _table(f"{head}, first right", rows)


def _spans(*values: Estimate | None) -> list[str]:
    return [f"{v.low:.3f}..{v.high:.3f}" if v else "-" for v in values]


def ranking(samples: Sequence[Sample]) -> Lines:
    """Yield the models' means on the items that all have, published and corrected."""
    known = [s for s in scored(samples) if s.row["scores"]["saved"] is not None]
    by_model = dict(_by(known, _model))
    common = set.intersection(*({s.item for s in those} for those in by_model.values()))
    used: dict[Any, list[Sample]] = {}
    for (model, those), name in itertools.product(by_model.items(), SCORES):
        kept = [s for s in those if s.item in common]
        new = [dataclasses.replace(s, score=s.row["scores"][name]) for s in kept]
        used[model, name] = new
    found = {key: measured(those) for key, those in used.items()}
    mean = {key: one.by_item.mean if one.by_item else 0.0 for key, one in found.items()}
    order = {n: sorted(by_model, key=lambda m, n=n: -mean[m, n]) for n in SCORES}  # type: ignore[misc]
    yield f"{len(common)} items of {len({task for task, _ in common})} tasks"
    rows = []
    for model in order["ours"]:
        of = found[model, "ours"]
        means = [f"{mean[model, n]:.3f} ({order[n].index(model) + 1})" for n in SCORES]
        number, share = len(used[model, "ours"]), f"{of.answered:.1%}"
        rows.append((model, number, *means, *_spans(of.by_item, of.by_task), share))
    head = (
        "model, completions, published, library now, ours, by item, by task, answered"
    )
    yield from _table(head, rows)
    places = order["ours"]
    rows = []
    for a, b in itertools.combinations(order["saved"], 2):
        for name in SCORES if places.index(a) > places.index(b) else ():
            pair = paired(used[b, name], used[a, name])
            off = f"{mean[a, name] - mean[b, name]:+.3f}"
            spans = _spans(pair.by_item, pair.by_task)
            rows.append((f"{a} - {b}", SCORES[name], off, *spans))
    yield "Models that change places, paired by item:"
    yield from _table("pair, score, difference, by item, by task", rows)


def without_score(samples: Sequence[Sample]) -> Lines:
    """Yield the completions without a score by task."""
    lost = [s for s in samples if s.score is None]
    kinds = sorted({s.outcome for s in lost})
    yield f"{len(samples)} completions, {len(lost)} of them have no score"
    rows = []
    for task, those in [*_by(lost, _task), ("all", lost)]:
        found = Counter(s.outcome for s in those)
        rows.append((task, *(found[kind] for kind in kinds)))
    yield from _table(", ".join(["task", *kinds]), rows)
