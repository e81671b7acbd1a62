# Everything runs in .venv, which is made on first use and again whenever pyproject.toml changes.
# Needed on the machine: python3 (3.11 or newer), make and, for setting up, a network.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
FRESH := .venv/.kernels
ARGS ?=
# Tests run in as many processes as there are cores; tests/conftest.py says which stay together.
PYTEST := $(BIN)/python -m pytest -q --numprocesses=auto --maxprocesses=4 --no-loadscope-reorder

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup run test test-slow bench lint format pictures clean

help: ## show this list
	@echo "make …"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' Makefile | awk -F'|' '{ printf "%-12s %s\n", $$1, $$2 }'

setup: $(READY) ## make the environment in .venv (the others do it when needed)

run: $(READY) ## watch a ranking over a stream of trades in the terminal
	@echo "Running the demonstration"
	@$(BIN)/python -m skyband.cli demo $(ARGS)

test: lint $(FRESH) ## lint, then every test that is not slow; ARGS="-k name" picks some
	@echo "Testing (the first run compiles the kernels)"
	@$(PYTEST) $(ARGS)

test-slow: $(READY) $(FRESH) ## the slow tests only
	@echo "Running the slow tests"
	@$(PYTEST) -m slow $(ARGS)

bench: $(READY) $(FRESH) ## every benchmark, one after the other
	@for script in $(sort $(wildcard benchmarks/[!_]*.py)); do \
		echo "Measuring: $$script"; \
		$(BIN)/python "$$script" $(ARGS) || exit 1; \
	done

lint: $(READY) ## style, types and architecture
	@echo "Checking style, format, types and layers"
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { \
		echo "Some files are not formatted: run 'make format'"; $(BIN)/ruff format --check; exit 1; }
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo > .venv/layers.log || { cat .venv/layers.log; exit 1; }

format: $(READY) ## put the source into the project's format
	@echo "Formatting"
	@$(BIN)/ruff check --fix --quiet
	@$(BIN)/ruff format

pictures: $(READY) ## draw the pictures of docs/ anew
	@echo "Drawing docs/window.svg"
	@$(BIN)/python docs/picture.py

clean: ## remove the environment, the caches and what was built
	@echo "Removing .venv, caches and builds"
	@rm -rf .venv build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@rm -rf spark-warehouse metastore_db derby.log artifacts
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@command -v $(PYTHON) > /dev/null || { \
		echo "skyband needs Python 3.11 or newer, and there is no $(PYTHON) here: install it, or name another" \
		     "with 'make PYTHON=/path/to/python …'"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "skyband needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) --version 2>&1): name a newer one" \
		     "with 'make PYTHON=python3.12 …'"; exit 1; }
	@echo "Setting up .venv (once; takes a minute or two)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --editable '.[spark,dev]'
	@touch $@

# numba looks only at a kernel's own file when it decides whether a compiled kernel is still good, not at the helpers
# that were compiled into it from other files. So when any of them changes, all are compiled anew.
$(FRESH): $(READY) $(wildcard src/skyband/kernels/*.py src/skyband/kernels/*/*.py) src/skyband/order.py
	@find src -name '*.nbi' -delete -o -name '*.nbc' -delete
	@touch $@
