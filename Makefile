# `make tpch` and `make test` set up what they need. The rest is for those who work on tqp.
PYTHON ?= python3
ARGS ?=
BIN := .venv/bin

.PHONY: tpch test slow random edges lint format types contracts wheel clean help

tpch: .venv/installed ## run TPC-H through tqp, checked against DuckDB; options in ARGS="--sf 0.1 --queries 1,6"
	$(BIN)/tqp tpch --compare duckdb $(ARGS)

test: .venv/installed ## run the tests; options in ARGS="-k joins"
	$(BIN)/pytest --numprocesses auto $(ARGS)

slow: .venv/installed ## run the tests that take long for what they find, which make test leaves out
	$(BIN)/pytest --numprocesses auto -m slow $(ARGS)

random: .venv/installed ## compare many random queries with DuckDB; options in ARGS="--minutes 60 --processes 2 --seed 7"
	$(BIN)/python -m tests.random.run $(ARGS)

edges: .venv/installed ## compare every function, operator and cast at the edges of types with DuckDB; options in ARGS="--only date_trunc"
	$(BIN)/python -m tests.function_matrix $(ARGS)
	$(BIN)/python -m tests.aggregate_matrix $(ARGS)

lint: .venv/installed ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: .venv/installed ## rewrite to style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: .venv/installed ## static types
	$(BIN)/mypy

contracts: .venv/installed ## which layer may import which
	$(BIN)/lint-imports --no-cache

wheel: .venv/installed ## build a wheel, install it into a clean environment and run a query from another directory
	rm -rf build dist
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(PYTHON) -m venv build/clean
	build/clean/bin/pip install --quiet --constraint constraints.txt dist/*.whl
	cd build/clean && bin/tqp sql "SELECT 42 AS answer"

# The environment is made anew only when what it is made from has changed.
.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("tqp needs Python 3.11 or newer: make PYTHON=python3.11 ..." if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[tpch,test,dev]'
	touch $@

clean: ## remove what was built; the benchmark's data stays in the cache directory
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12
