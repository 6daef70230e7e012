#!/bin/bash
# The GPU minutes of the studies: bash examples/smollm2/gpu.sh [options of GRPOConfig]
#
# Each cell is kept as it ends, and the same command continues. What came of it is in the
# folder OUT, or `data`. MINUTES is for the cells; MODEL is the model of the second part.
set -u
out=${OUT:-data}
mkdir -p "$out"
export PYTHONPATH=.:${PYTHONPATH:-}
study="python3 -u examples/smollm2/rewards.py smollm2"
timeout "${MINUTES:-12}m" $study 100 101 102 2>&1 | tee "$out/cells.log"
$study --print >"$out/smollm2.md"
tar -czf "$out/smollm2.tgz" -C "${STUDIES:-data/studies}" smollm2
timeout 150 python3 examples/trl/grpo.py "$@" 2>&1 | tee "$out/trl.log"
