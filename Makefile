# A few words that each make what they need. Only Python (3.10 or newer, with venv
# and pip) and make are expected on the machine; all else is installed in .venv.

SHELL := bash
PYTHON ?= python3
VENV ?= .venv
ARGS ?=
# Tests start Python some hundred times: what it has compiled is kept, as it is by default.
unexport PYTHONDONTWRITEBYTECODE

PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
TORCH_VENV := .venv-torch
TORCH_STAMP := $(TORCH_VENV)/.installed
OLDEST := $(shell sed -n 's/^requires-python = ">=\(.*\)"/\1/p' pyproject.toml)
OLDEST_VENV := .venv-$(OLDEST)
OLDEST_STAMP := $(OLDEST_VENV)/.installed
REQUIREMENTS := requirements.txt requirements-dev.txt constraints.txt
# As `-m venv`, without Python's traceback after Ctrl-C.
MAKE_VENV := -c 'import signal, sys, venv; signal.signal(2, signal.SIG_DFL); venv.main(sys.argv[1:])'
# pip would compile 16,000 files, of which 2,000 are used: a minute for nothing.
COMPILE := -c 'import atroposlib.envs.base, reasoning_gym'
SHOW_VERSION := -c 'import sys; print("%d.%d" % sys.version_info[:2])'

.DEFAULT_GOAL := help
.PHONY: demo test quick check commands oldest bench pictures train-small lock clean help FORCE

demo: $(STAMP) ## run the whole system on this machine with a simulated policy
	@$(PY) reasoning_gym_environment.py demo $(ARGS)

# Tests wait for processes at times, and every process of pytest imports all of them.
test: $(STAMP) ## run all tests, a file more than cores at a time (ARGS="-k name" to choose)
	@echo "All tests: some ten minutes on two cores (make quick: half a minute)."
	@$(PY) -m pytest --numprocesses $$(($$(nproc) + 1)) --dist loadfile --no-loadscope-reorder $(ARGS)

quick: $(STAMP) ## run the quick tests, which start no process, in half a minute
	@echo "The tests that start no process and are not slow: half a minute on two cores (make test runs all)."
	@$(PY) -m pytest --numprocesses 2 --dist worksteal -m "not processes and not slow" $(ARGS)

check: $(STAMP) ## lint, formatting, types and spelling; changes nothing
	@echo "ruff check" && $(PY) -m ruff check .
	@echo "ruff format --check" && $(PY) -m ruff format --check .
	@echo "mypy" && $(PY) -m mypy
	@echo "codespell" && $(VENV)/bin/codespell

commands: $(STAMP) ## run every command of the README and of this list, in some minutes
	@echo "Every command in its shortest form, in a copy of this folder: some three minutes and 1.3 GB (PyTorch)."
	@$(PY) -m pytest --numprocesses 2 --dist worksteal -m commands tests/project/test_commands.py tests/project/test_wheel.py $(ARGS)

oldest: $(OLDEST_STAMP) ## import every module with the oldest Python that is supported
	@$(OLDEST_VENV)/bin/python -m tools.import_everything

bench: $(STAMP) ## measure the throughput of serve (ARGS="--against FILE")
	@$(PY) benchmarks/throughput.py $(ARGS)

pictures: $(STAMP) ## remake the pictures of the documents (needs chromium)
	@$(PY) -m tools.make_pictures

train-small: $(TORCH_STAMP) ## train a small model in two minutes, without a GPU (ARGS=60000 completions)
	@$(TORCH_VENV)/bin/python examples/train_small/train.py $(ARGS)

lock: ## remake constraints.txt (ARGS=--upgrade moves every pin)
	@echo "Resolving for Python 3.10 and newer (about half a minute)."
	@work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT \
	&& $(PYTHON) -m venv "$$work/venv" \
	&& "$$work/venv/bin/python" -m pip install --quiet uv 2>"$$work/pip.log" \
	&& { [ ! -f constraints.txt ] || cp constraints.txt "$$work/lock.txt"; } \
	&& "$$work/venv/bin/uv" pip compile --quiet --universal --python-version 3.10 \
	  --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
	  --output-file "$$work/lock.txt" requirements-dev.txt $(ARGS) >/dev/null \
	&& { echo "# Exact versions for every supported Python. Made by: make lock"; \
	     grep -v '^#' "$$work/lock.txt"; } >"$$work/new.txt" \
	&& cp "$$work/new.txt" constraints.txt \
	&& echo "constraints.txt: $$(grep -c == constraints.txt) lines"

clean: ## remove environments and caches; keeps data_dumps
	@rm -rf $(VENV) $(TORCH_VENV) $(OLDEST_VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -not -path './reasoning-gym/*' -prune -exec rm -rf {} +

help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile
	@echo "PYTHON=python3.12 chooses the Python that .venv is made with."

define CHECK_PYTHON
@command -v $(PYTHON) >/dev/null || { \
	  echo "No $(PYTHON) here: install Python 3.10 or newer, or name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || { \
	  echo "Python 3.10 or newer is needed and $(PYTHON) is not: name another one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make environments: install its venv package (Debian, Ubuntu: apt-get install python3-venv)" >&2; exit 1; }
endef

# An existing .venv keeps its Python unless another one is asked for by name.
ifneq ($(origin PYTHON),file)
ifneq ($(shell command -v $(PYTHON) >/dev/null && $(PYTHON) $(SHOW_VERSION)),$(shell cat $(STAMP) 2>/dev/null))
$(STAMP): FORCE
endif
endif

# pip's own lines go to a log: a new machine would see dozens of warnings about
# packages that are none of the reader's business. What is shown is that it works.
$(STAMP): $(REQUIREMENTS)
	$(CHECK_PYTHON)
	@echo "Installing about 155 packages in $(VENV) with Python $$($(PYTHON) $(SHOW_VERSION)), once: one to three minutes."
	@rm -rf $(VENV) && $(PYTHON) $(MAKE_VENV) $(VENV)
	@set -o pipefail; count=0; \
	trap 'echo "The installation was interrupted; the next time it begins anew." >&2; exit 130' INT; \
	PYTHONUNBUFFERED=1 $(PY) -m pip install --disable-pip-version-check --no-input \
	  --no-compile --progress-bar off -r requirements-dev.txt -c constraints.txt 2>&1 \
	| tee $(VENV)/install.log \
	| while read -r line; do case "$$line" in \
	    Collecting*|Processing*) count=$$((count + 1)); \
	      [ $$((count % 35)) -ne 0 ] || echo "  $$count packages fetched" ;; \
	    "Installing collected"*) echo "  unpacking" ;; \
	  esac; done \
	|| { grep -i '^ *error' $(VENV)/install.log | tail -5 >&2; \
	     ! grep -q 'Failed building wheel' $(VENV)/install.log || echo "Some packages are \
built from source: install a C compiler and Python's headers (Debian, Ubuntu: apt-get \
install build-essential python3-dev)" >&2; \
	     echo "The installation failed; all that pip said is in $(VENV)/install.log" >&2; exit 1; }
	@TRANSFORMERS_NO_ADVISORY_WARNINGS=1 $(PY) -W ignore $(COMPILE)
	@$(PYTHON) $(SHOW_VERSION) >$(STAMP)
	@echo "  done"

$(TORCH_STAMP): examples/train_small/requirements.txt
	$(CHECK_PYTHON)
	@echo "Installing PyTorch in $(TORCH_VENV), once: 0.9 GB where pip knows PyTorch's index of CPU builds."
	@$(PYTHON) $(MAKE_VENV) $(TORCH_VENV)
	@$(TORCH_VENV)/bin/pip install --quiet --disable-pip-version-check --no-compile -r $<
	@$(TORCH_VENV)/bin/python -W ignore -c 'import reasoning_gym, torch'
	@touch $@

# uv finds the oldest Python on PATH or downloads it; pyenv has it elsewhere.
$(OLDEST_STAMP): requirements.txt constraints.txt
	@echo "Installing requirements.txt in $(OLDEST_VENV), once: half a minute."
	@work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT; \
	python=$$(ls -d $(HOME)/.pyenv/versions/$(OLDEST).*/bin/python 2>/dev/null | tail -1); \
	{ $(PYTHON) -m venv "$$work" && "$$work/bin/pip" install --quiet uv \
	  && "$$work/bin/uv" venv --quiet --clear --python "$${python:-$(OLDEST)}" $(OLDEST_VENV) \
	  && "$$work/bin/uv" pip install --quiet --no-cache --python $(OLDEST_VENV)/bin/python \
	    -r requirements.txt -c constraints.txt; } >"$$work/log" 2>&1 \
	|| { tail -5 "$$work/log" >&2; exit 1; }
	@touch $@
