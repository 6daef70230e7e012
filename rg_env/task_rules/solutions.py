"""Where the examples of correct answers stand in the entries of a task."""

from __future__ import annotations

IN_METADATA = {
    "graph_color": lambda entry: entry["metadata"].get("possible_answer"),
}
"""Task to its example."""
