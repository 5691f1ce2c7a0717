# Every target sets up what it needs; `make check` and `make test` work on a bare machine with Python 3.11.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
REPORTS := $(basename $(notdir $(filter-out reports/__init__.py,$(wildcard reports/*.py))))

.PHONY: setup check test test-heavy lint bench mutation reports clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "frontier-verify needs Python 3.11 or newer; run make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

check: setup
	$(BIN)/frontier-verify check

test: setup
	$(BIN)/python -m pytest -n 2

test-heavy: setup
	$(BIN)/python -m pytest -m heavy

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup
	$(BIN)/frontier-verify bench --report reports

mutation: setup
	$(BIN)/python -m reports.mutation

reports: setup
	set -e; for page in $(REPORTS); do $(BIN)/python -m reports.$$page; done

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
