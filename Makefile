# make run      the system on this machine, and the address of its review desk
# make test     the tests; ARGS="-k gate" passes arguments on; .ci/prepare installs Java and npm for some of them
# make bench    the benchmarks, into docs/benchmarks.md; some minutes, needs Java 17
# make simulate 20,000 stories of the run protocol on SQLite, 2,000 of them on moto's DynamoDB too; half an hour
# make mutate   takes away each condition that a guarantee rests on, and sees a test fail; half an hour
# make lint     what a machine can say about the code
# make sam      validate and build the deployment, in an environment of its own; needs Python 3.13
# make check    the template's schedules and the drafters' files
# make help     this list, as make alone prints it
# make setup    the virtual environment alone; the others call it, and it does nothing when it is up to date

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help setup run test bench simulate mutate lint sam check

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
export PIP_ROOT_USER_ACTION := ignore

PYTHON := .venv/bin/python
PIP_INSTALL := $(PYTHON) -m pip install --quiet --quiet --constraint constraints.txt
REQUIREMENTS := constraints.txt pyproject.toml cli/requirements.txt $(wildcard layers/*/requirements.txt functions/*/requirements.txt)

# An environment that was copied, moved or lost its interpreter is made again.
MADE_IN := $(shell $(PYTHON) -c 'print(open(".venv/made-in").read())' 2>/dev/null)
ifneq "$(MADE_IN)" "$(CURDIR)"
.PHONY: .venv/for-running
endif

help:
	@sed -n '/^#/!q; s/^# //p' Makefile

setup: .venv/for-running

run: .venv/for-running
	@$(PYTHON) -m galley_cli run $(ARGS)

test: .venv/for-testing
	@$(PYTHON) -m pytest -n 2 $(ARGS)

bench: .venv/for-benchmarks
	@PYTHONPATH=$(subst $() ,:,$(strip $(wildcard functions/*)):tests) \
	  POWERTOOLS_SERVICE_NAME=galley POWERTOOLS_METRICS_NAMESPACE=Galley $(PYTHON) -m bench $(ARGS)

STORIES ?= 20000
STORIES_ON_DYNAMODB ?= 2000
simulate: .venv/for-testing
	@STORIES=$(STORIES) STORIES_ON_DYNAMODB=$(STORIES_ON_DYNAMODB) $(PYTHON) -m pytest -n 2 tests/simulation $(ARGS)

mutate: .venv/for-testing
	@PYTHONPATH=tests $(PYTHON) -m mutation.mutate $(ARGS)

lint: .venv/for-testing
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check --quiet .
	@$(PYTHON) -m mypy

sam: .venv-sam/made
	@PATH="$$(.venv-sam/bin/python -c 'import sys; print(sys.base_prefix)')/bin:$$PATH" SAM_CLI_TELEMETRY=0; \
	  export PATH SAM_CLI_TELEMETRY; \
	  .venv-sam/bin/sam validate --lint && .venv-sam/bin/sam build

check: .venv/for-running
	@$(PYTHON) -m galley_cli check $(ARGS)

.venv/for-running: $(REQUIREMENTS)
	@$(PYTHON) -c '' 2>/dev/null || { \
	  for python in python3.13 python3.12 python3.11 python3; do \
	    $$python -c 'import ensurepip, sqlite3, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	      && break; \
	    python=; \
	  done; \
	  test -n "$$python" || { \
	    echo "Galley needs Python 3.11 or newer, with venv and sqlite3; install one and run make again." >&2; exit 1; }; \
	  echo "Making the virtual environment .venv with $$($$python --version)."; \
	  $$python -m venv --clear .venv; }
	@echo "Installing what running needs into .venv."
	@$(PIP_INSTALL) --requirement cli/requirements.txt
	@$(PYTHON) -m pip install --quiet --quiet --no-deps --editable .
	@printf '%s' "$(CURDIR)" > .venv/made-in
	@touch $@

.venv/for-testing: .venv/for-running tests/requirements.txt
	@echo "Installing what testing needs into .venv."
	@$(PIP_INSTALL) --requirement tests/requirements.txt
	@touch $@

.venv/for-benchmarks: .venv/for-testing tests/bench/requirements.txt
	@echo "Installing what the benchmarks need into .venv."
	@$(PIP_INSTALL) --requirement tests/bench/requirements.txt
	@touch $@

# SAM's builder takes the interpreter of the functions' runtime from the PATH.
.venv-sam/made: Makefile
	@for python in python3.13 $$(ls -d $$HOME/.pyenv/versions/3.13*/bin/python3.13 2>/dev/null); do \
	  $$python -c 'import venv' 2>/dev/null && break; \
	  python=; \
	done; \
	test -n "$$python" || { echo "sam build needs Python 3.13, the functions' runtime; install it." >&2; exit 1; }; \
	echo "Making the environment of the SAM CLI."; \
	$$python -m venv --clear .venv-sam
	@.venv-sam/bin/python -m pip install --quiet aws-sam-cli==1.170.0
	@touch $@
