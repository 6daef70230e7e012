#!/usr/bin/env bash
# Start the Atropos API and this environment, and end them together.
#
#   examples/launch.sh                              # examples/serve.yaml
#   examples/launch.sh --config my.yaml --env.use_wandb false
#   API_PORT=8010 LOG_DIR=logs examples/launch.sh --config my.yaml
#
# Arguments are those of `serve`. The inference server and the trainer are yours to
# start, before or after this. Ctrl-C, SIGTERM, a closed terminal, the end of the run or
# the death of one of the two ends both; the exit status is that of the environment.
set -euo pipefail
set -m # a process group each: Ctrl-C reaches this script alone, which ends them in order

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
host=${API_HOST:-127.0.0.1} # 0.0.0.0 if the trainer runs on another machine
secret=${API_SECRET_FILE:-} # of run-api; env.rollout_server_url is then in your settings
port=${API_PORT:-8000}
logs=${LOG_DIR:-.}
wait_s=${API_WAIT_S:-60}

fail() {
  echo "launch: $1" >&2
  exit 1
}

answers() {
  (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null
}

api="" environment=""
end_both() {
  status=$?
  trap - EXIT
  trap '' INT TERM HUP # or the second Ctrl-C would leave the API behind
  # The environment first, so that it can still tell the API that it leaves.
  for pid in $environment $api; do
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  exit "$status"
}
trap end_both EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# Should this script be killed, the kernel tells (1, PR_SET_PDEATHSIG) both to end (15).
ours() {
  exec "$python" -c 'import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 15)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])' \
    "$root/reasoning_gym_environment.py" "$@"
}

[ -x "$python" ] || fail "no Python at $python: run \`make test\` once, or set PYTHON"
! answers || fail "port $port is in use: set API_PORT"
mkdir -p "$logs"

ours run-api --host "$host" --port "$port" ${secret:+--secret_file "$secret"} \
  >"$logs/api.log" 2>&1 &
api=$!
echo "launch: Atropos API on port $port, log $logs/api.log"
for ((i = 0; i < wait_s * 5; i++)); do
  answers && break
  kill -0 "$api" 2>/dev/null || fail "the API ended; see $logs/api.log"
  sleep 0.2
done
answers || fail "the API does not answer after $wait_s s; see $logs/api.log"

[ $# -gt 0 ] || set -- --config "$root/examples/serve.yaml"
# On a command line every user of the machine would read the secret.
[ -n "$secret" ] || set -- --env.rollout_server_url "http://localhost:$port" "$@"
ours serve "$@" &
environment=$!

wait -n "$environment" "$api" || true
! kill -0 "$environment" 2>/dev/null || fail "the API ended; see $logs/api.log"
wait "$environment"
