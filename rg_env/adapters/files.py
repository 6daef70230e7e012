"""Writes items and saved completions as files that trainers can load.

The files are JSONL or Parquet, in a folder in the form of the datasets hub, with a card
that says how they were made. The same items and completions give the same bytes.
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
from types import MappingProxyType
from typing import Any, Literal

import msgspec
import yaml

from rg_env.errors import RunError, SettingError
from rg_env.installation import VERSION
from rg_env.places import new_folder
from rg_env.results.samples import Sample, grouped
from rg_env.reward.prompt import built_in_prompt
from rg_env.stream.item import Item
from rg_env.stream.seeds import EVALUATION_BIT
from rg_env.stream.tasks import Tasks

# `export` writes fewer items after so many draws with known questions.
REPEATS_IN_A_ROW = 1000

Form = Literal["jsonl", "parquet"]
Kind = Literal["items", "verl", "sft"]
Row = dict[str, Any]

TALK = [{"role": "string", "content": "string"}]
ITEM: Row = {"task": "string", "level": "float64", "item": "string"}
ANSWER = {"style": "string", "ground_truth": "string"}
PLACE = {"index": "int64", "split": "string", "seed": "int64", **ITEM}
COLUMNS: Mapping[Kind, Row] = {
    "items": {
        "number": "int64",
        "category": "string",
        "seed": "int64",
        **ITEM,
        "question": "string",
        "gold": "string",
        "prompt": TALK,
        "responses_create_params": {"input": TALK},
        "verifier_metadata": {"item": "string"},
    },
    "verl": {
        "data_source": "string",
        "prompt": TALK,
        "ability": "string",
        "reward_model": ANSWER,
        "extra_info": PLACE,
    },
    "sft": {"messages": TALK, "score": "float64", **ITEM},
}
"""Column to its type: the name of an Arrow type, a struct, or a list of one struct."""

ROWS_AT_ONCE = 1000
REWARD = '''\
"""The reward of these items, for reward.custom_reward_function.path of verl."""

from rg_env.adapters.verl import compute_score

__all__ = ["compute_score"]
'''


class Export:
    """A folder with a file for each split.

    Attributes:
        tasks: Split to the number of rows of each task.
        left_out: Reason to the number of rows that are not written.
    """

    def __init__(self, folder: Path, kind: Kind, form: Form) -> None:
        self.tasks: dict[str, Counter[str]] = {}
        self.left_out: Counter[str] = Counter()
        self._folder = folder
        self._form = form
        self._columns = COLUMNS[kind]

    def __str__(self) -> str:
        """Return the numbers of rows, and of those that are left out."""
        rows = [f"{tasks.total()} {split}" for split, tasks in self.tasks.items()]
        lost = [f"{why}: {number}" for why, number in (+self.left_out).items()]
        return f"rows: {', '.join(rows) or 0}; left out: {', '.join(lost) or 'none'}"

    def write(self, split: str, rows: Iterable[Row]) -> None:
        """Write the file of a split, if there are rows."""
        rows = iter(rows)
        if not (some := list(itertools.islice(rows, ROWS_AT_ONCE))):
            return
        tasks = self.tasks.setdefault(split, Counter())
        with self._writer(self._folder / f"{split}.{self._form}") as write:
            while some:
                write(some)
                tasks.update(row.get("extra_info", row)["task"] for row in some)
                some = list(itertools.islice(rows, ROWS_AT_ONCE))

    @contextlib.contextmanager
    def _writer(self, path: Path) -> Iterator[Callable[[list[Row]], object]]:
        if self._form == "jsonl":
            encoder = msgspec.json.Encoder()
            with path.open("wb") as file:
                yield lambda rows: file.write(encoder.encode_lines(rows))
            return
        import pyarrow
        from pyarrow.parquet import ParquetWriter

        def arrow(kind: Any) -> Any:
            if isinstance(kind, str):
                return getattr(pyarrow, kind)()
            if isinstance(kind, list):
                return pyarrow.list_(arrow(kind[0]))
            return pyarrow.struct([(name, arrow(of)) for name, of in kind.items()])

        schema = pyarrow.schema(list(arrow(self._columns)))
        with ParquetWriter(path, schema) as tables:
            yield lambda rows: tables.write_table(
                pyarrow.Table.from_pylist(rows, schema)
            )

    def card(self, title: str, how: Mapping[str, Any]) -> str:
        """Return README.md: how to load the files, their rows and their origin."""
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
                # Without it, a column without values has no type in one split.
                "features": _features(self._columns),
            },
        }
        library = metadata.version("reasoning-gym")
        origin = {
            **how,
            "rows": {split: dict(sorted(n.items())) for split, n in self.tasks.items()},
            "left_out": dict(+self.left_out),
            "versions": {"rg_env": VERSION, "reasoning_gym": library},
        }
        text = textwrap.indent(_yaml(origin), "    ")
        return f"---\n{_yaml(head)}---\n\n# {title}\n\nHow it was made:\n\n{text}"


def _yaml(value: object) -> str:
    return str(yaml.safe_dump(value, sort_keys=False, width=10**6))


def _features(columns: Row) -> list[Row]:
    """Return columns in the form of a card's head."""

    def kind(of: Any) -> Row:
        if isinstance(of, str):
            return {"dtype": of}
        is_list = isinstance(of, list)
        return {"list": _features(of[0])} if is_list else {"struct": _features(of)}

    return [{"name": name, **kind(of)} for name, of in columns.items()]


@contextlib.contextmanager
def new_export(
    out: Path,
    kind: Kind,
    form: Form = "jsonl",
    how: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[Export]:
    """Yield an export; its folder appears when everything is written.

    Args:
        out: The new folder.
        kind: The columns.
        form: The file format.
        how: The origin of the rows for the card, as plain values.

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
            (folder / "compute_score.py").write_text(REWARD, encoding="utf-8")
        card = export.card(f"reasoning-gym: {kind}", how)
        (folder / "README.md").write_text(card, encoding="utf-8")


# -- items -----------------------------------------------------------------------------


def new_items(
    tasks: Tasks, held_out: Iterable[Item], left_out: Counter[str]
) -> Iterator[Item]:
    """Yield the items of a stream with new questions, which are not in `held_out`.

    It ends after `REPEATS_IN_A_ROW` draws without a new question. `left_out` counts the
    draws that are not used.

    Raises:
        SettingError: The stream follows results, and a file has none.
        NoItemsError: Too many draws in a row gave no item.
    """
    if tasks.follows_results:
        raise SettingError(
            "levels 'curriculum' and choice 'adaptive' need the results of training,"
            " which a file has none of; take random levels, a level or a range"
        )
    known = {hash(item.question): "questions of evaluation" for item in held_out}
    repeats = 0
    position = tasks.position
    with contextlib.closing(tasks.ahead()) as drawn:
        for item in drawn:
            left_out["draws without an item"] += tasks.position - position - 1
            position = tasks.position
            question = hash(item.question)
            if question not in known:
                known[question] = "questions that came again"
                repeats = 0
                yield item
                continue
            left_out[known[question]] += 1
            repeats += 1
            if repeats == REPEATS_IN_A_ROW:
                return


def item_rows(tasks: Tasks, items: Iterable[Item]) -> Iterator[Row]:
    """Yield the rows of items, which are numbered from 0."""
    categories = tasks.categories()
    for number, item in enumerate(items):
        prompt = item.messages
        whole = _whole(item)
        yield {
            "number": number,
            "category": categories[item.task],
            "seed": item.seed,
            "question": item.question,
            "gold": item.gold,
            "prompt": prompt,
            **whole,
            # The columns of NeMo Gym for this project's `/verify`.
            "responses_create_params": {"input": prompt},
            "verifier_metadata": {"item": whole["item"]},
        }


def verl_rows(split: str, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows of items in the form of verl."""
    for row in rows:
        whole = {name: row[name] for name in ("seed", *ITEM)}
        yield {
            "data_source": f"reasoning_gym/{row['task']}",
            "prompt": row["prompt"],
            "ability": row["category"],
            "reward_model": {"style": "rule", "ground_truth": row["gold"]},
            "extra_info": {"index": row["number"], "split": split, **whole},
        }


def _whole(item: Item) -> Row:
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
        key = hash((*_prompt_of(sample), text))
        if sample.score is None:
            left_out["completions without a score"] += 1
        elif not (text and sample.question):
            left_out["completions without a text or question"] += 1
        elif sample.is_truncated:
            left_out["completions that were cut off"] += 1
        elif key in seen:
            left_out["completions that came again"] += 1
        else:
            seen.add(key)
            yield sample


def sft_rows(
    samples: Iterable[Sample], least_score: float, most: int, left_out: Counter[str]
) -> Iterator[Row]:
    """Yield usable samples as conversations, the best `most` of each prompt."""
    for some in grouped(samples, _prompt_of).values():
        good = [s for s in some if s.score is not None and s.score >= least_score]
        best = sorted(good, key=lambda sample: -(sample.score or 0.0))[:most]
        left_out["completions that were not chosen"] += len(some) - len(best)
        for sample in best:
            texts = {
                "system": sample.row.get("system"),
                "user": sample.question,
                "assistant": sample.row["completion"],
            }
            # A lone surrogate, which no file can contain, becomes a question mark.
            talk = [
                {"role": role, "content": text.encode(errors="replace").decode()}
                for role, text in texts.items()
                if text
            ]
            yield {"messages": talk, "score": sample.score, **_item(sample)}


def _prompt_of(sample: Sample) -> tuple[str, str | None, str]:
    return sample.task, sample.row.get("system"), sample.question


def _item(sample: Sample) -> Row:
    """Return the columns of the item; its JSON is null if it cannot be made again."""
    names = ("seed", "params", "level", "answer_format", "partial_credit")
    saved = {name: sample.row[name] for name in names if name in sample.row}
    system = sample.row.get("system")
    built_in = built_in_prompt(sample.row.get("answer_format", "tags"))
    own = {} if system == built_in else {"system_prompt": system}
    try:
        whole = {"task": sample.task, **saved, **own}
        return _whole(Item.from_json(msgspec.json.encode(whole)))
    except ValueError:
        return {"task": sample.task, "level": None, "item": None}
