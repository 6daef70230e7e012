"""What the words of outcomes mean, in half a sentence each."""

from __future__ import annotations

from collections.abc import Mapping

OUTCOMES: Mapping[str, str] = {
    "right": "full score",
    "partial": "partial score",
    "wrong": "score 0, or up to 0.05 if the answer is readable",
    "empty_answer": "nothing between the answer tags",
    "no_answer": "no <answer> outside the thinking",
    "several_answers": "more than one <answer>",
    "nested_answer": "a tag inside the answer",
    "unclosed_answer": "<answer> without </answer>",
    "stray_tag": "</answer> without <answer>",
    "unfinished_thinking": "cut off while thinking",
    "scorer_error": "the library's scorer failed on the answer",
    "rejected": "too long, or contains what no correct answer contains",
    "timeout": "scoring the answer took too long",
    "request_failed": "no score: the inference server did not reply",
    "unscored": "no score: the workers gave none, or the file has none",
    "unmatched": "no score: the library makes a different item",
    "not_used": "no score: the item has no correct reference answer",
}
"""Outcome of a rollout to its meaning, the best first."""
