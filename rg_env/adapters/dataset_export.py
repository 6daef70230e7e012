"""Writes items and saved completions as files that trainers can load.

The files are JSONL or Parquet, in a folder as on the datasets hub, with a card that
says how they were made. The same items and completions give the same bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from rg_env.errors import RunError, SettingError
from rg_env.installation import VERSION
from rg_env.places import new_folder
from rg_env.results.samples import Sample, batched, grouped, pick
from rg_env.reward.prompt import built_in_prompt
from rg_env.stream.item import Item
from rg_env.stream.seeds import EVALUATION_BIT
from rg_env.stream.tasks import Tasks

# An export ends after this number of draws of known questions.
MAX_REPEATS_IN_A_ROW = 1000

Form = Literal["jsonl", "parquet"]
Kind = Literal["items", "verl", "sft"]
Row = dict[str, Any]

MESSAGES = [{"role": "string", "content": "string"}]
ITEM_COLUMNS: Row = {"task": "string", "level": "float64", "item": "string"}
COLUMNS: Mapping[Kind, Row] = {
    "items": {
        "number": "int64",
        "category": "string",
        "seed": "int64",
        **ITEM_COLUMNS,
        "question": "string",
        "gold": "string",
        "prompt": MESSAGES,
        "responses_create_params": {"input": MESSAGES},
        "verifier_metadata": {"item": "string"},
    },
    "verl": {
        "data_source": "string",
        "prompt": MESSAGES,
        "ability": "string",
        "reward_model": {"style": "string", "ground_truth": "string"},
        "extra_info": {
            "index": "int64",
            "split": "string",
            "seed": "int64",
            **ITEM_COLUMNS,
        },
    },
    "sft": {"messages": MESSAGES, "score": "float64", **ITEM_COLUMNS},
}
"""Column to its type: the name of an Arrow type, a struct, or a list of one struct."""

ROWS_AT_ONCE = 1000
VERL_REWARD = '''\
"""The reward of these items, for reward.custom_reward_function.path of verl."""

from rg_env.adapters.verl import compute_score

__all__ = ["compute_score"]
'''


class Export:
    """A folder with a file for each split.

    Attributes:
        tasks: Split to the number of rows of each task.
        left_out: Reason to the number of rows that were not written.
    """

    def __init__(self, folder: Path, kind: Kind, form: Form) -> None:
        self.tasks: dict[str, Counter[str]] = {}
        self.left_out: Counter[str] = Counter()
        self._folder = folder
        self._form = form
        self._columns = COLUMNS[kind]

    def __str__(self) -> str:
        """Return the numbers of written and left out rows."""
        rows = [f"{tasks.total()} {split}" for split, tasks in self.tasks.items()]
        others = [f"{why}: {count}" for why, count in (+self.left_out).items()]
        return f"rows: {', '.join(rows) or 0}; left out: {', '.join(others) or 'none'}"

    def write(self, split: str, rows: Iterable[Row]) -> None:
        """Write the file of a split, if there are rows."""
        batches = batched(iter(rows), ROWS_AT_ONCE)
        first = next(batches, None)
        if first is None:
            return
        tasks = self.tasks.setdefault(split, Counter())
        with self._writer(self._folder / f"{split}.{self._form}") as write:
            for batch in itertools.chain([first], batches):
                write(batch)
                tasks.update(row.get("extra_info", row)["task"] for row in batch)

    @contextlib.contextmanager
    def _writer(self, path: Path) -> Iterator[Callable[[list[Row]], object]]:
        if self._form == "jsonl":
            encoder = msgspec.json.Encoder()
            with path.open("wb") as file:
                yield lambda rows: file.write(encoder.encode_lines(rows))
            return
        import pyarrow
        from pyarrow.parquet import ParquetWriter

        def arrow_type(column: Any) -> Any:
            if isinstance(column, str):
                return getattr(pyarrow, column)()
            if isinstance(column, list):
                return pyarrow.list_(arrow_type(column[0]))
            fields = [(name, arrow_type(field)) for name, field in column.items()]
            return pyarrow.struct(fields)

        schema = pyarrow.schema(list(arrow_type(self._columns)))
        with ParquetWriter(path, schema) as tables:
            yield lambda rows: tables.write_table(
                pyarrow.Table.from_pylist(rows, schema)
            )

    def card(self, title: str, how: Mapping[str, Any]) -> str:
        """Return README.md: how to load the files, their columns and their origin."""
        digest = hashlib.sha256()
        files = []
        for split in self.tasks:
            name = f"{split}.{self._form}"
            files.append({"split": split, "path": name})
            digest.update((self._folder / name).read_bytes())
        head = {
            "pretty_name": title,
            "tags": ["reasoning-gym"],
            "configs": [{"config_name": "default", "data_files": files}],
            "dataset_info": {
                # The cache key of `datasets` depends on this head, not on the files.
                "description": f"SHA-256 of the files: {digest.hexdigest()}",
                # Without the types, a column that is empty in a split has none there.
                "features": _features(self._columns),
            },
        }
        library = metadata.version("reasoning-gym")
        origin = {
            **how,
            "rows": {
                split: dict(sorted(tasks.items()))
                for split, tasks in self.tasks.items()
            },
            "left_out": dict(+self.left_out),
            "versions": {"rg_env": VERSION, "reasoning_gym": library},
        }
        text = textwrap.indent(_yaml(origin), "    ")
        return f"---\n{_yaml(head)}---\n\n# {title}\n\nHow it was made:\n\n{text}"


def _yaml(value: object) -> str:
    return str(yaml.safe_dump(value, sort_keys=False, width=10**6))


def _features(columns: Row) -> list[Row]:
    """Return the types of columns as in the head of a card."""

    def feature(column: Any) -> Row:
        if isinstance(column, str):
            return {"dtype": column}
        if isinstance(column, list):
            return {"list": _features(column[0])}
        return {"struct": _features(column)}

    return [{"name": name, **feature(column)} for name, column in columns.items()]


@contextlib.contextmanager
def new_export(
    out: Path,
    kind: Kind,
    form: Form = "jsonl",
    how: Mapping[str, Any] | None = None,
) -> Iterator[Export]:
    """Yield an export; its folder appears when everything is written.

    Args:
        out: The new folder.
        kind: The columns.
        form: The file format.
        how: The origin of the rows for the card, as plain values. It may be changed
            until the end of the `with` statement.

    Raises:
        SettingError: The folder exists.
        RunError: No row of the split `train` was written.
    """
    with new_folder(out) as folder:
        export = Export(folder, kind, form)
        yield export
        if "train" not in export.tasks:
            raise RunError(f"{out}: there is nothing to train on ({export})")
        if kind == "verl":
            (folder / "compute_score.py").write_text(VERL_REWARD, encoding="utf-8")
        card = export.card(f"reasoning-gym: {kind}", how or {})
        (folder / "README.md").write_text(card, encoding="utf-8")


# -- items -----------------------------------------------------------------------------


def new_items(
    tasks: Tasks, held_out: Iterable[Item], left_out: Counter[str]
) -> Iterator[Item]:
    """Yield the items of a stream that have new questions.

    The questions of `held_out` are known. The items end after `MAX_REPEATS_IN_A_ROW`
    draws without a new question. `left_out` counts the unused draws.

    Raises:
        SettingError: The stream follows results, which a file does not have.
        NoItemsError: Too many draws in a row gave no item.
    """
    if tasks.follows_results:
        raise SettingError(
            "levels 'curriculum' and choice 'adaptive' need the results of training,"
            " which a file has none of; take random levels, a level or a range"
        )
    reasons = {hash(item.question): "questions of evaluation" for item in held_out}
    repeats = 0
    position = tasks.position
    with contextlib.closing(tasks.ahead()) as items:
        for item in items:
            left_out["draws without an item"] += tasks.position - position - 1
            position = tasks.position
            question = hash(item.question)
            if question not in reasons:
                reasons[question] = "questions that came again"
                repeats = 0
                yield item
                continue
            left_out[reasons[question]] += 1
            repeats += 1
            if repeats == MAX_REPEATS_IN_A_ROW:
                return


def item_rows(tasks: Tasks, items: Iterable[Item]) -> Iterator[Row]:
    """Yield the rows of items, which are numbered from 0."""
    categories = tasks.categories()
    for number, item in enumerate(items):
        prompt = item.messages
        columns = _item_columns(item)
        yield {
            "number": number,
            "category": categories[item.task],
            "seed": item.seed,
            "question": item.question,
            "gold": item.gold,
            "prompt": prompt,
            **columns,
            # The columns of NeMo Gym for this project's `/verify`.
            "responses_create_params": {"input": prompt},
            "verifier_metadata": {"item": columns["item"]},
        }


def verl_rows(split: str, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows of items in the form of verl."""
    for row in rows:
        yield {
            "data_source": f"reasoning_gym/{row['task']}",
            "prompt": row["prompt"],
            "ability": row["category"],
            "reward_model": {"style": "rule", "ground_truth": row["gold"]},
            "extra_info": {
                "index": row["number"],
                "split": split,
                **{name: row[name] for name in ("seed", *ITEM_COLUMNS)},
            },
        }


def _item_columns(item: Item) -> Row:
    return {"task": item.task, "level": item.level, "item": item.to_json()}


# -- saved completions -----------------------------------------------------------------


def select_usable(
    samples: Iterable[Sample], left_out: Counter[str], *, with_evaluation: bool = False
) -> Iterator[Sample]:
    """Yield the samples that can be trained on, without duplicates.

    Raises:
        SettingError: A sample is of an evaluation item, and `with_evaluation` is false.
    """
    seen: set[int] = set()
    for sample in samples:
        row = sample.row
        text = row.get("completion")
        seed = row.get("seed")
        is_ours = isinstance(seed, int) and seed & EVALUATION_BIT
        is_published = row.get("preset") or row.get("run")
        if (is_ours or is_published) and not with_evaluation:
            raise SettingError(
                f"{row['source']}, {row['place']}: the completion is of an evaluation"
                " item; name files of training, or pass --with_evaluation"
            )
        identity = hash((*_prompt_of(sample), text))
        if sample.score is None:
            left_out["completions without a score"] += 1
        elif not (text and sample.question):
            left_out["completions without a text or question"] += 1
        elif sample.is_truncated:
            left_out["completions that were cut off"] += 1
        elif identity in seen:
            left_out["completions that came again"] += 1
        else:
            seen.add(identity)
            yield sample


def sft_rows(
    samples: Iterable[Sample],
    min_score: float,
    max_per_prompt: int,
    left_out: Counter[str],
) -> Iterator[Row]:
    """Yield usable samples as conversations, the best ones of each prompt."""
    for group in grouped(samples, _prompt_of).values():
        good = [s for s in group if s.score is not None and s.score >= min_score]
        best = sorted(good, key=lambda s: -(s.score or 0.0))[:max_per_prompt]
        left_out["completions that were not chosen"] += len(group) - len(best)
        for sample in best:
            texts = {
                "system": sample.row.get("system"),
                "user": sample.question,
                "assistant": sample.row["completion"],
            }
            # A lone surrogate, which no file can contain, becomes a question mark.
            messages = [
                {"role": role, "content": text.encode(errors="replace").decode()}
                for role, text in texts.items()
                if text
            ]
            columns = _saved_item_columns(sample)
            yield {"messages": messages, "score": sample.score, **columns}


def _prompt_of(sample: Sample) -> tuple[str, str | None, str]:
    return sample.task, sample.row.get("system"), sample.question


def _saved_item_columns(sample: Sample) -> Row:
    """Return the columns of the item; its JSON is null if it cannot be made again."""
    names = ("seed", "params", "level", "answer_format", "partial_credit")
    fields = pick(sample.row, names) | {"task": sample.task}
    system = sample.row.get("system")
    if system != built_in_prompt(sample.row.get("answer_format", "tags")):
        fields["system_prompt"] = system
    try:
        return _item_columns(Item.from_json(msgspec.json.encode(fields)))
    except ValueError:
        return {"task": sample.task, "level": None, "item": None}
