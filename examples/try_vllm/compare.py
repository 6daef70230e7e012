"""Compare groups that reached a trainer with a forward pass of the same weights.

    python compare.py MODEL GROUPS

Groups is a file of JSON lines with `tokens`, `masks` and `inference_logprobs`. Ends
with status 1 where a log-probability is further off than `FURTHEST`, or a row is of
another form.
"""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

MASKED = -100
PROMPT_LOGPROB = 1.0
FURTHEST = 1e-3

folder, groups = sys.argv[1:3]
model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
rows = count = 0
furthest = 0.0
for line in Path(groups).read_text(encoding="utf-8").splitlines():
    group = json.loads(line)
    columns = (group["tokens"], group["masks"], group["inference_logprobs"])
    for tokens, masks, logprobs in zip(*columns, strict=True):
        start = masks.index(next(value for value in masks if value != MASKED))
        if masks != [MASKED] * start + tokens[start:]:
            sys.exit(f"row {rows}: its masks are not those of its tokens")
        if logprobs[:start] != [PROMPT_LOGPROB] * start:
            sys.exit(f"row {rows}: its prompt has log-probabilities")
        with torch.no_grad():
            scores = model(torch.tensor([tokens])).logits[0, start - 1 : -1]
        made = torch.tensor(tokens[start:])[:, None]
        own = torch.log_softmax(scores, -1).gather(1, made)[:, 0]
        off = (own - torch.tensor(logprobs[start:])).abs().max().item()
        furthest = max(furthest, off)
        rows, count = rows + 1, count + len(tokens) - start
print(f"{count:,} tokens of {rows} rows: furthest off {furthest:.2g}")
if not rows or furthest > FURTHEST:
    sys.exit(f"more than {FURTHEST:g}, or no row")
