# thoughtgate: `make demo` and `make check` set everything up by themselves.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PEERS := tests/peers/node_modules/.ready
BENCH_PEERS := benchmarks/peers/.venv/.ready
SUITE := tests/conformance/node_modules/.ready
ARGS ?=
# Compiled once and kept: the tests start some hundred processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup peers demo check fmt format-check lint layers types test conformance docs proto bench chaos lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY) ## make .venv with everything that check and demo need

$(READY): pyproject.toml requirements/dev.txt .ci/setup
	@PYTHON="$(PYTHON)" VENV="$(VENV)" bash .ci/setup
	@touch $@

peers: $(PEERS) ## install the npm and PyPI peers that tests hold the gateway against

$(PEERS): tests/peers/package.json tests/peers/package-lock.json \
  $(wildcard tests/peers/pypi/*.txt) | $(READY)
	@echo "== peers"; $(BIN)/python tests/support/peers.py install

demo: setup ## find, classify, count, report and send: the main job on this machine
	@$(BIN)/python examples/demo/demo.py $(ARGS)

check: setup ## everything that must hold before a change lands
	@$(MAKE) --no-print-directory format-check lint layers types test

fmt: setup ## format the code
	@$(BIN)/ruff format -q . && $(BIN)/ruff check -q --fix .

format-check: setup
	@echo "== format"; $(BIN)/ruff format -q --check .

lint: setup
	@echo "== lint"; $(BIN)/ruff check -q .

layers: setup
	@echo "== layers"; $(BIN)/lint-imports --no-cache --no-logo

types: setup
	@echo "== types"; $(BIN)/mypy --no-error-summary

test: setup peers ## run the tests; ARGS="-k word" picks some
	@echo "== test"; $(BIN)/pytest -q -n 2 --dist loadfile $(ARGS)

conformance: setup $(SUITE) ## the official MCP suite, straight and through the gateway
	@echo "== conformance"; $(BIN)/python -m tests.conformance $(ARGS)

$(SUITE): tests/conformance/package.json tests/conformance/package-lock.json | $(READY)
	@echo "== conformance suite"; $(BIN)/python -m tests.conformance.suite install

docs: setup ## write the generated pages under docs/ again
	@$(BIN)/python -m docs.generate

proto: setup ## make the protocols' stubs again; ARGS=baseline with each release
	@$(BIN)/python -m tests.support.stubs $(ARGS)

bench: setup $(BENCH_PEERS) ## measure beside peers; ARGS="memory --quick" runs another benchmark
	@$(BIN)/python -m benchmarks $(ARGS)

$(BENCH_PEERS): $(wildcard benchmarks/peers/*.txt) benchmarks/peers.py | $(READY)
	@echo "== peers to measure beside"; $(BIN)/python -m benchmarks.peers install

chaos: setup ## ten minutes of random faults, checked; ARGS="--seconds 60 --seed 7 --workers 2"
	@$(BIN)/python -m tests.chaos $(ARGS)

lock: setup ## pin the newest allowed packages again (ARGS=--upgrade for newer ones)
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --group dev --all-extras \
	  --no-header --no-annotate $(ARGS) pyproject.toml -o requirements/dev.txt

clean: ## remove what setup and the tests made
	@rm -rf $(VENV) tests/*/node_modules tests/peers/.venv benchmarks/peers/.venv benchmarks/out tests/conformance/out dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
