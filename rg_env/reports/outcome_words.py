"""What the words of outcomes mean, in half a sentence each."""

from __future__ import annotations

from collections.abc import Mapping

OUTCOMES: Mapping[str, str] = {
    "right": "full score",
    "partial": "part of the score",
    "wrong": "nothing, or up to 0.05 if it can be read",
    "empty_answer": "nothing between the answer tags",
    "no_answer": "no <answer> outside the thinking",
    "several_answers": "more than one <answer>",
    "nested_answer": "a tag inside the answer",
    "unclosed_answer": "<answer> without </answer>",
    "stray_tag": "</answer> that closes nothing",
    "unfinished_thinking": "cut off while thinking",
    "scorer_error": "the library's scorer failed on the answer",
    "rejected": "not what a correct answer holds",
    "timeout": "scoring the answer took too long",
    "request_failed": "no reply of the inference server; no score, which is not 0",
    "unscored": "the file or the workers give no score, which is not 0",
    "unmatched": "the library makes another item there; no score, which is not 0",
    "not_used": "its reference answer is wrong, or the item has none; no score",
}
"""Outcome of a rollout to its meaning, the best first."""
