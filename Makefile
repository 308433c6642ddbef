# Every target works from a fresh clone: Python 3.11 or newer and make are all it takes.
# `make PYTHON=python3.12 test` takes another interpreter; `make clean` first if one was set up.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
PYTEST := $(RUN) -m pytest
PARALLEL := -n auto --dist loadgroup
# The fast lane makes thousands of small files: in memory where there is a place for that, and
# removed at once.
IN_MEMORY := $(shell test -w /dev/shm && echo TMPDIR=/dev/shm)
FORGETFUL := -o tmp_path_retention_policy=failed -o tmp_path_retention_count=1
# The demo needs the package alone, not the 1 GB that its tests need.
DEMO_VENV := .venv-demo
DEMO_READY := $(DEMO_VENV)/.ready
# The libraries to be measured beside bring so much that they have an environment of their own.
# `make bench BENCH="--only trec --queries 2000"` hands options on.
BENCH ?=
BENCH_VENV := .venv-bench
BENCH_READY := $(BENCH_VENV)/.ready
# So do the libraries that the adapters connect to.
ADAPTERS_VENV := .venv-adapters
ADAPTERS_READY := $(ADAPTERS_VENV)/.ready
# And so does what makes the documentation site: it needs another docutils.
SITE_VENV := .venv-site
SITE_READY := $(SITE_VENV)/.ready
# `make fuzz FUZZ_SECONDS=3600 FUZZ="--seed 7 --only read-"` hands options on.
FUZZ_SECONDS ?= 300
FUZZ ?=

PIP := -m pip --disable-pip-version-check --quiet install
# Each file is checked against its hash, and nothing may come that has none. The lists are complete,
# so nothing is resolved: a resolver would prefer a release of today, for `psycopg[binary]` say, and
# then refuse it because it has no hash.
HASHED := $(PIP) --no-deps --require-hashes --requirement
# What the package needs is there by then, also what builds it.
PACKAGE := $(PIP) --no-deps --no-build-isolation --editable .

.PHONY: help demo test browser javascript lint types unit adapters golden fuzz bench docs site requirements \
  changelog clean \
  slow slow-fuzz slow-imports slow-docs slow-documents slow-chunkings slow-live slow-scale slow-stats
.DEFAULT_GOAL := help

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(DEMO_READY) ## score the bundled example, where one gate fails
	$(DEMO_VENV)/bin/ragauge demo

# What keeps one core busy goes side by side: environments, style, types and the site.
test: ## check everything: style, types, all tests
	$(MAKE) -j2 $(READY) $(ADAPTERS_READY) lint types browser javascript site
	$(PYTEST) $(PARALLEL)
	$(MAKE) adapters

browser: ## get Chromium for the tests in a browser, where that needs no password
	@bash scripts/browser.sh

javascript: ## get the JavaScript packages for the tests of clients, where npm is installed
	@bash scripts/javascript.sh

lint: $(READY) ## check style and formatting
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check

types: $(READY) ## check types
	$(RUN) -m mypy

unit: $(READY) ## the fast lane, under a minute: source, vectors, one module at a time, nothing slow
	$(IN_MEMORY) RAGAUGE_TEST_EFFORT=0.2 $(PYTEST) $(PARALLEL) $(FORGETFUL) -m "not slow" \
	  tests/architecture tests/unit tests/vectors

adapters: $(ADAPTERS_READY) ## the tests of the adapters and clients, each against its real library
	$(ADAPTERS_VENV)/bin/python -m pytest -q $(PARALLEL) tests/unit/targets/test_adapters.py tests/unit/targets/test_quickstarts.py tests/unit/formats/test_rows_in_memory.py tests/unit/api tests/unit/recorder tests/unit/test_licences.py tests/e2e/test_live_clients.py::test_langchain_with_openinference tests/e2e/test_live_clients.py::test_llama_index_with_openinference

golden: $(READY) ## rewrite the golden outputs; read the diff before you commit it
	$(PYTEST) tests/golden --update-golden

fuzz: $(READY) ## broken files into every reader, parser and command, for FUZZ_SECONDS=300
	$(RUN) -m tests.fuzz --seconds $(FUZZ_SECONDS) $(FUZZ)

slow: slow-fuzz slow-imports slow-docs slow-documents slow-chunkings slow-live slow-scale slow-stats ## all long campaigns: hours

slow-fuzz: $(READY) ## properties and oracles with 20 times the examples, from a new seed
	$(RUN) benchmarks/campaign.py fuzz --write docs/benchmarks.md

slow-imports: $(READY) ## exports of other tools, made again with their newest versions (fetches 1 GB)
	$(RUN) benchmarks/campaign.py imports

slow-docs: $(READY) browser site ## every command of every page, and the site in a browser
	$(RUN) benchmarks/campaign.py docs --write docs/benchmarks.md

slow-documents: $(READY) ## real PDFs of many producers, and changed ones of every kind (fetches 200 MB)
	$(RUN) benchmarks/campaign.py documents --write docs/benchmarks.md

slow-chunkings: $(READY) ## comparisons across chunkings, held against the truth by bytes
	$(RUN) benchmarks/campaign.py chunkings --write docs/benchmarks.md

slow-live: $(READY) javascript ## a server that is killed 200 times, and one under load for 10 minutes
	$(RUN) benchmarks/campaign.py live --write docs/benchmarks.md

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

requirements: $(READY) ## write requirements/*.txt with hashes, from pyproject.toml and the pinned versions
	$(RUN) scripts/requirements.py

changelog: $(READY) ## move the fragments into CHANGELOG.md: make changelog VERSION=0.1.0 DATE=2026-11-15
	$(RUN) scripts/changelog.py --version "$(VERSION)" --date "$(DATE)"

clean: ## remove the environment, caches and builds
	rm -rf $(VENV) $(DEMO_VENV) $(BENCH_VENV) $(ADAPTERS_VENV) $(SITE_VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find src tests benchmarks scripts -type d -name __pycache__ -prune -exec rm -rf {} +

# Built anew, not updated, when a dependency changes: what left the list leaves the environment.
define environment
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "error: there is no '$(PYTHON)' on the path; name a Python 3.11 or newer:" \
	    "make PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: ragauge needs Python 3.11 or newer, and '$(PYTHON)' is" \
	    "$$("$(PYTHON)" --version 2>&1); name another: make PYTHON=python3.12" >&2; exit 1; }
	"$(PYTHON)" -m venv --clear $(@D)
endef

$(READY): pyproject.toml requirements/dev.txt
	$(environment)
	$(@D)/bin/python $(HASHED) requirements/dev.txt
	$(@D)/bin/python $(PACKAGE)
	@touch $@

# Uncompiled: a demo imports a part of numpy only, and Python compiles that part as it goes.
$(DEMO_READY): pyproject.toml requirements/demo.txt
	$(environment)
	$(@D)/bin/python $(HASHED) requirements/demo.txt --no-compile
	$(@D)/bin/python $(PACKAGE) --no-compile
	@touch $@

$(ADAPTERS_READY): pyproject.toml requirements/adapters.txt
	$(environment)
	$(@D)/bin/python $(HASHED) requirements/adapters.txt
	$(@D)/bin/python $(PACKAGE)
	@touch $@

$(SITE_READY): requirements/site.txt
	$(environment)
	$(@D)/bin/python $(HASHED) requirements/site.txt
	@touch $@

# Not a part of CI: its versions are pinned, without hashes.
$(BENCH_READY): pyproject.toml benchmarks/constraints.txt
	$(environment)
	$(@D)/bin/python $(PIP) --constraint benchmarks/constraints.txt hatchling
	$(@D)/bin/python $(PIP) --constraint benchmarks/constraints.txt --no-build-isolation --editable '.[bench]'
	@touch $@
