"""What `process` leaves behind: rows that people use, and the host's page of them.

A row is the group as the host writes it (tokens, masks, scores, messages, ...) with
what makes it useful: task, gold answer, extracted answers, outcomes, provenance.

The host's page renders messages as raw markdown, in which `<think>` and `<answer>`
disappear and a model's HTML is live. It is made from a copy in which every message is
quoted, so that it shows what was written.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from atroposlib.frontend.jsonl2html import generate_html

from rg_env.host.config import ReasoningGymEnvConfig
from rg_env.rollouts.dumps import encode_line, read_groups


class RowWriter:
    """Appends rows to a JSONL file, each on disk when `write` returns.

    It stands in for the host's writer, which buffers, and fails on lone surrogates.

    Attributes:
        path: The file.
        rows: Rows written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        self._file = path.open("ab", buffering=0)

    def write(self, row: Mapping[str, Any]) -> None:
        """Write one row."""
        self._file.write(encode_line(dict(row)))
        self.rows += 1

    def close(self) -> None:
        """Close the file; may be called twice."""
        self._file.close()


def take_over(host_writer: Any, config: ReasoningGymEnvConfig) -> RowWriter | None:
    """Return our writer for the file that the host has opened, None if it has none."""
    if host_writer is None:
        return None
    host_writer.close()
    return RowWriter(Path(config.data_path_to_save_groups))


def _quoted(text: str) -> str:
    """Return text as a markdown block that shows it letter by letter."""
    longest = max((len(run) for run in re.findall(r"~+", text)), default=0)
    fence = "~" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _shown_messages(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the page shows of each rollout of a row."""
    for i, conversation in enumerate(row["messages"]):
        facts = [f"**task** {row['task']}"] if "task" in row else []
        if "answers" in row:
            gold, answer = str(row["gold_answer"]), str(row["answers"][i])
            facts += [
                f"**gold answer**\n\n{_quoted(gold)}",
                f"**answer** ({row['outcomes'][i]})\n\n{_quoted(answer)}",
            ]
        # The prompt is the same for all of a group, so the first one shows it.
        shown = conversation if i == 0 else conversation[-1:]
        parts = [f"**{m['role']}**\n\n{_quoted(str(m['content']))}" for m in shown]
        yield "\n\n".join([*facts, *parts])


def write_page(rows: Iterable[Mapping[str, Any]], page: Path) -> None:
    """Write the host's page for rows that carry messages.

    Raises:
        RuntimeError: The host could not make it.
    """
    with tempfile.TemporaryDirectory() as folder:
        shown = Path(folder) / page.with_suffix(".jsonl").name
        with shown.open("w", encoding="utf-8", errors="replace") as file:
            for row in rows:
                if row.get("messages"):
                    line = {
                        "messages": list(_shown_messages(row)),
                        "scores": row["scores"],
                    }
                    text = json.dumps(line, ensure_ascii=False)
                    file.write(text + "\n")
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                generate_html(str(shown), str(page))
        except SystemExit as error:
            raise RuntimeError(f"the page {page} could not be made") from error


def write_page_of(rows: Path) -> Path:
    """Write the page beside a file of rows and return where it is."""
    page = rows.with_suffix(".html")
    write_page(read_groups(rows), page)
    return page
