"""What `process` leaves behind: rows that people use, and the framework's page of them.

A row is the group as the framework writes it (tokens, masks, scores, messages, ...)
with what makes it useful: task, gold answer, extracted answers, outcomes, provenance.

Mends B24 of docs/host_defects.md: the framework's page renders messages as raw
markdown, in which `<think>` and `<answer>` disappear and a model's HTML is live. It is
made from a copy in which every message is
quoted, so that it shows what was written.
"""

from __future__ import annotations

import contextlib
import html
import io
import json
import logging
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from atroposlib.frontend.jsonl2html import generate_html

from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.rollouts.dump_writer import read_groups
from rg_env.rollouts.row_writer import RowWriter

logger = logging.getLogger(__name__)


def take_over(framework_writer: Any, config: ReasoningGymEnvConfig) -> RowWriter | None:
    """Return our writer for the file that the framework has opened, if it has one."""
    if framework_writer is None:
        return None
    framework_writer.close()
    return RowWriter(Path(config.data_path_to_save_groups))


def _quoted(text: str) -> str:
    """Return text as a markdown block that shows it letter by letter."""
    longest = max((len(run) for run in re.findall(r"~+", text)), default=0)
    fence = "~" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _shown(title: str, text: object) -> str:
    return f"**{title}**\n\n{_quoted(str(text))}"


def _shown_messages(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the page shows of each rollout of a row.

    The prompt is the same for all of a group: the first one shows the question above
    the completion and the system prompt below everything.
    """
    for i, conversation in enumerate(row["messages"]):
        *prompt, completion = conversation
        is_first = i == 0
        parts = [f"**task** {row['task']}"] if "task" in row else []
        if is_first:
            parts += [_shown(m["role"], m["content"]) for m in prompt[-1:]]
        parts.append(_shown(completion["role"], completion["content"]))
        if "answers" in row:
            parts.append(_shown(f"answer ({row['outcomes'][i]})", row["answers"][i]))
            parts.append(_shown("gold answer", row["gold_answer"]))
        if is_first:
            parts += [_shown(m["role"], m["content"]) for m in prompt[:-1]]
        yield "\n\n".join(parts)


def _heading(row: Mapping[str, Any]) -> str:
    """Return what a closed group shows: its task and its scores."""
    scores = ", ".join(f"{score:.2f}" for score in row["scores"])
    return html.escape(f"{row.get('task', 'group')} ({scores})")


def write_page(rows: Iterable[Mapping[str, Any]], page: Path) -> None:
    """Write the framework's page for rows that carry messages.

    Raises:
        RuntimeError: The framework could not make it.
    """
    headings = []
    with tempfile.TemporaryDirectory() as folder:
        shown = Path(folder) / page.with_suffix(".jsonl").name
        with shown.open("w", encoding="utf-8", errors="replace") as file:
            for row in rows:
                if row.get("messages"):
                    headings.append(_heading(row))
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
    text = page.read_text(encoding="utf-8")
    for i, heading in enumerate(headings):
        plain = f"<summary>Group {i}</summary>"
        text = text.replace(plain, f"<summary>Group {i}: {heading}</summary>", 1)
    page.write_text(text, encoding="utf-8")


def write_page_of(rows: Path) -> Path | None:
    """Write the page beside a file of rows.

    Returns:
        Where it is; None without rows, and where the disk does not take it.
    """
    if not rows.exists():
        return None
    page = rows.with_suffix(".html")
    try:
        write_page(read_groups(rows), page)
    except OSError as error:
        logger.error("the page %s cannot be written: %s", page, error)
        return None
    return page
