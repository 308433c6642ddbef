# Every target works from a fresh clone: Python 3.11 or newer and make are all it takes.
# `make PYTHON=python3.12 test` takes another interpreter; `make clean` first if one was set up.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
PIP := $(RUN) -m pip --disable-pip-version-check --quiet
PYTEST := $(RUN) -m pytest
PARALLEL := -n auto --dist loadgroup
# The libraries to be measured beside bring so much that they have an environment of their own.
# `make bench BENCH="--only trec --queries 2000"` hands options on.
BENCH ?=
BENCH_VENV := .venv-bench
BENCH_READY := $(BENCH_VENV)/.ready
BENCH_PIP := $(BENCH_VENV)/bin/python -m pip --disable-pip-version-check --quiet
# So do the libraries that the adapters connect to.
ADAPTERS_VENV := .venv-adapters
ADAPTERS_READY := $(ADAPTERS_VENV)/.ready
ADAPTERS_PIP := $(ADAPTERS_VENV)/bin/python -m pip --disable-pip-version-check --quiet
# And so does what makes the documentation site: it needs another docutils.
SITE_VENV := .venv-site
SITE_READY := $(SITE_VENV)/.ready
SITE_PIP := $(SITE_VENV)/bin/python -m pip --disable-pip-version-check --quiet

.PHONY: help demo test browser lint types unit adapters golden bench docs site changelog clean \
  slow slow-fuzz slow-imports slow-docs slow-documents slow-live slow-scale slow-stats
.DEFAULT_GOAL := help

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(READY) ## score the bundled example, where one gate fails
	$(VENV)/bin/ragauge demo

test: lint types browser site ## check everything: style, types, all tests
	$(PYTEST) $(PARALLEL)
	$(MAKE) adapters

browser: ## get Chromium for the tests in a browser, where that needs no password
	@bash scripts/browser.sh

lint: $(READY) ## check style and formatting
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check

types: $(READY) ## check types
	$(RUN) -m mypy

unit: $(READY) ## the fast lane, under a minute: source, vectors, one module at a time, nothing slow
	RAGAUGE_TEST_EFFORT=0.2 $(PYTEST) $(PARALLEL) -m "not slow" tests/architecture tests/unit tests/vectors

adapters: $(ADAPTERS_READY) ## the tests of the adapters, each against its real library
	$(ADAPTERS_VENV)/bin/python -m pytest -q tests/unit/targets/test_adapters.py

golden: $(READY) ## rewrite the golden outputs; read the diff before you commit it
	$(PYTEST) tests/golden --update-golden

slow: slow-fuzz slow-imports slow-docs slow-documents slow-live slow-scale slow-stats ## all long campaigns: hours

slow-fuzz: $(READY) ## properties and oracles with 20 times the examples, from a new seed
	$(RUN) benchmarks/campaign.py fuzz --write docs/benchmarks.md

slow-imports: $(READY) ## exports of other tools, read as they are (no campaign yet)
	$(RUN) benchmarks/campaign.py imports

slow-docs: $(READY) browser site ## every command of every page, and the site in a browser
	$(RUN) benchmarks/campaign.py docs --write docs/benchmarks.md

slow-documents: $(READY) ## real PDFs of many producers, and changed ones of every kind (fetches 200 MB)
	$(RUN) benchmarks/campaign.py documents

slow-live: $(READY) ## a server under load (no campaign yet)
	$(RUN) benchmarks/campaign.py live

slow-scale: $(READY) ## a million traces, cut in many ways: the same report
	$(RUN) benchmarks/campaign.py scale --write docs/benchmarks.md

slow-stats: $(READY) ## how often intervals cover and equal runs differ, by simulation
	$(RUN) benchmarks/campaign.py stats --write docs/benchmarks.md

bench: $(BENCH_READY) ## measure speed and memory, and write docs/benchmarks.md (about 7 GB of disk)
	$(BENCH_VENV)/bin/python benchmarks/run.py --write docs/benchmarks.md $(BENCH)

docs: $(READY) ## write the generated reference pages
	$(RUN) scripts/reference.py

site: $(SITE_READY) ## make the documentation site in build/site; a warning is an error
	$(SITE_VENV)/bin/python scripts/website.py

changelog: $(READY) ## move the fragments into CHANGELOG.md: make changelog VERSION=0.1.0 DATE=2026-11-15
	$(RUN) scripts/changelog.py --version "$(VERSION)" --date "$(DATE)"

clean: ## remove the environment, caches and builds
	rm -rf $(VENV) $(BENCH_VENV) $(ADAPTERS_VENV) $(SITE_VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find src tests benchmarks scripts -type d -name __pycache__ -prune -exec rm -rf {} +

# Built anew, not updated, when a dependency changes: what left the list leaves the environment.
$(READY): pyproject.toml constraints.txt
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "error: there is no '$(PYTHON)' on the path; name a Python 3.11 or newer:" \
	    "make PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: ragauge needs Python 3.11 or newer, and '$(PYTHON)' is" \
	    "$$("$(PYTHON)" --version 2>&1); name another: make PYTHON=python3.12" >&2; exit 1; }
	"$(PYTHON)" -m venv --clear $(VENV)
	$(PIP) install --constraint constraints.txt hatchling
	$(PIP) install --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	@touch $@

$(ADAPTERS_READY): pyproject.toml constraints-adapters.txt
	"$(PYTHON)" -m venv --clear $(ADAPTERS_VENV)
	$(ADAPTERS_PIP) install --constraint constraints-adapters.txt hatchling
	$(ADAPTERS_PIP) install --constraint constraints-adapters.txt --no-build-isolation \
	  --editable '.[adapters,corpus]' pytest pytest-randomly pytest-xdist hypothesis
	@touch $@

$(SITE_READY): docs/requirements.txt
	"$(PYTHON)" -m venv --clear $(SITE_VENV)
	$(SITE_PIP) install --requirement docs/requirements.txt
	@touch $@

$(BENCH_READY): pyproject.toml benchmarks/constraints.txt
	"$(PYTHON)" -m venv --clear $(BENCH_VENV)
	$(BENCH_PIP) install --constraint benchmarks/constraints.txt hatchling
	$(BENCH_PIP) install --constraint benchmarks/constraints.txt --no-build-isolation --editable '.[bench]'
	@touch $@
