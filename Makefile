# Two commands matter: `make demo` and `make test`. Each sets up everything it needs.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO_OUT ?= $(shell mktemp -d "$${TMPDIR:-/tmp}/skill-effectiveness-demo.XXXXXX")
JOBS ?= $(shell nproc 2>/dev/null || echo 2)

.PHONY: help setup demo test test-slow lint format bench statements schemas contract wheel clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## create the virtual environment with every dependency

$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than 3.11; set PYTHON=/path/to/python" >&2; exit 1; }
	@echo "setting up $(VENV) (once)"
	@umask 022 && "$(PYTHON)" -m venv $(VENV)
	@umask 022 && $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

# Code and frozen inputs that others could write are refused when they are hashed; some umasks make clones so.
.PHONY: modes
modes: ## take group and world write permission off code and frozen inputs
	@chmod go-w . && chmod -R go-w eval arms fixtures schemas conformance run.py bridge.py

demo: $(STAMP) modes ## a whole study with a planted effect, from examined reviewers to a verified bundle and its report
	@out="$(DEMO_OUT)"; $(BIN)/python run.py reviewers demo --out "$$out/reviewers" && \
		$(BIN)/python run.py study demo --out "$$out/study"

test: $(STAMP) modes ## the tests, but for those marked slow and those that need a real agent command line
	@$(BIN)/python -m pytest -q -n $(JOBS) -m "not realcli and not slow"

test-slow: $(STAMP) modes ## the tests that start many processes or write thousands of files
	@$(BIN)/python -m pytest -q -n $(JOBS) -m "slow and not realcli"

lint: $(STAMP) ## format, lint, types, floors, generated schemas, protected lines
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python tools/schemas.py --check
	@$(BIN)/python tools/freeze_banks.py --check >/dev/null
	@$(BIN)/python tools/protected_lines.py

format: $(STAMP) ## rewrite the tree in the house's format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

schemas: $(STAMP) ## generate schemas/ from the models
	@$(BIN)/python tools/schemas.py

bench: $(STAMP) modes ## every figure, each against a rival measured in the same run
	@$(BIN)/python -m benchmarks

statements: $(STAMP) ## which numbered statements have a test and which have none
	@$(BIN)/python tools/statements.py

contract: $(STAMP) modes ## drive the real command lines against the loopback model server
	@tools/install_clis
	@tools/contract

wheel: $(STAMP) ## build the wheel, install it without extras in an empty environment and run the demonstration there
	@rm -rf build/wheel && mkdir -p build/wheel
	@umask 022 && $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/wheel .
	@umask 022 && "$(PYTHON)" -m venv build/wheel/venv
	@umask 022 && build/wheel/venv/bin/python -m pip install --quiet --disable-pip-version-check build/wheel/*.whl
	@cd build/wheel && out="$(DEMO_OUT)"; venv/bin/skill-effectiveness reviewers demo --out "$$out/reviewers" && \
		venv/bin/skill-effectiveness study demo --out "$$out/study"

clean: ## remove what the targets above made here
	rm -rf $(VENV) .clis .mypy_cache .ruff_cache .pytest_cache .hypothesis
