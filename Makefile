# thoughtgate: `make demo` and `make check` set everything up by themselves.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
SOURCES := gateway client servers proto tests examples benchmarks

.PHONY: help setup demo check fmt format-check lint layers types test house-docs docs clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP) ## make .venv with everything that check and demo need

$(STAMP): pyproject.toml .ci/setup
	@PYTHON="$(PYTHON)" VENV="$(VENV)" bash .ci/setup
	@touch $(STAMP)

demo: setup ## find, classify, count, report and send: the main job on this machine
	@$(BIN)/python examples/demo/demo.py

check: setup ## everything that must hold before a change lands
	@$(MAKE) --no-print-directory format-check lint layers types test

fmt: setup ## format the code
	@$(BIN)/ruff format -q . && $(BIN)/ruff check -q --fix .

format-check: setup
	@echo "== format"; $(BIN)/ruff format -q --check .

lint: setup
	@echo "== lint"; $(BIN)/ruff check -q .

layers: setup
	@echo "== layers"; $(BIN)/lint-imports --no-cache

types: setup
	@echo "== types"; $(BIN)/mypy --no-error-summary

test: setup peers
	@echo "== test"; $(BIN)/pytest -q -n 2 --dist loadfile

docs: setup ## write the generated pages under docs/ again
	@$(BIN)/python -m docs.generate

clean: ## remove what setup and the tests made
	@rm -rf $(VENV) node_modules tests/peers/node_modules dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
