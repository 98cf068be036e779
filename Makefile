# One command for each chore. Needs Python >= 3.11, make and the package registries; nothing else.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --quiet install --constraint constraints.txt
NPM := $(PY) hatch_build.py
PYTEST_ARGS ?=
FLICKERS ?= 0

CHECKS := lint types-python types-page types-extension wire-check
REAL := tests/real_agents tests/real_clients tests/real_servers
QUICK := $(addprefix tests/,gate house server store) $(wildcard tests/test_*.py)
SUITE = $(PY) -m scripts.suite --flickers $(FLICKERS) $(if $(PYTEST_ARGS),--extra="$(PYTEST_ARGS)")
CHORE := $(MAKE) --no-print-directory

# Each test starts processes of the project: let the first one store its compiled modules for the others.
unexport PYTHONDONTWRITEBYTECODE
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help run test test-quick test-agents test-agents-all test-editors-all agents-table test-page agents check lint types-python imports types-page types-extension wire wire-check types contracts docs bench ui vsix editors tools format lock dist clean

help: ## list the chores
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: $(VENV)/run ui ## start Handrail in the foreground; Ctrl-C stops all of it
	@$(PY) -m handrail up --foreground

test: tools $(VENV)/dev ui vsix ## everything: checks, page, unit, end-to-end and browser tests, real agents
	@$(PY) -m compileall -q src  # else each of the users that tests create would compile everything again
	@$(SUITE) --marked "not all_clients" $(foreach folder,$(REAL),--before "$(folder)=$(CHORE) agents") --before "tests/editors=$(CHORE) editors" $(foreach chore,$(CHECKS) test-page,--check "$(CHORE) $(chore)") tests

test-quick: $(VENV)/dev ## the checks and the unit tests: no daemon, no browser, no real agents
	@$(SUITE) $(foreach chore,$(CHECKS),--check "$(CHORE) $(chore)") --marked "not e2e and not browser" $(QUICK)

test-agents: agents ui ## real third-party agents, hosted and behind hooks, offline, against a scripted model
	scripts/offline $(PY) -m pytest -m "not all_clients" $(REAL)

test-agents-all: agents ui ## the same with every agent and client that is known to work
	$(PY) -m tests.real_agents.install others
	scripts/offline $(PY) -m pytest $(REAL)
	$(PY) scripts/client_table.py
	$(PY) -m tests.real_agents.scenario_table

test-editors-all: editors ui vsix ## the stories of the VS Code extension in code-server 4.139.1 and 4.100.3; those of VS Code's own chat (AHP, @handrail) in 4.139.1 only
	$(PY) -m pytest tests/editors
	$(PY) -m pytest tests/editors --editor-version 4.100.3

agents-table: $(VENV)/dev ## write the table of docs/agents.md from the last `make test-agents-all`
	$(PY) -m tests.real_agents.scenario_table

test-page: $(VENV)/dev
	$(NPM) test
	$(NPM) extension test

agents: $(VENV)/dev
	$(PY) -m tests.real_agents.install agents clients servers

check: imports $(CHECKS) ## everything that reads the code without running it

lint: $(VENV)/dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types-python: $(VENV)/dev  # a larger young generation: fewer garbage collections
	NODE_OPTIONS=--max-semi-space-size=64 $(PY) -m pyright --pythonpath $(PY)

imports: $(VENV)/dev
	$(PY) -m pytest -q tests/house

types-page: $(VENV)/dev
	$(NPM) run check

types-extension: $(VENV)/dev
	$(NPM) extension run check

types: wire ## generate the types of the page (ui/src/wire.ts) and the CLI (src/handrail/cli/wire.py) from the server's own description
	cp build/wire.ts ui/src/wire.ts
	cp build/wire.py src/handrail/cli/wire.py
	$(PY) -m handrail.hidden_text > ui/src/hidden_text.ts

wire-check: wire
	@diff -u ui/src/wire.ts build/wire.ts >&2 || { echo "ui/src/wire.ts is not what the server describes now. Run: make types" >&2; exit 1; }
	@diff -u src/handrail/cli/wire.py build/wire.py >&2 || { echo "src/handrail/cli/wire.py is not what the server describes now. Run: make types" >&2; exit 1; }

wire: $(VENV)/dev
	@mkdir -p build
	$(PY) -m handrail.server.openapi > build/openapi.json
	$(NPM) exec -- openapi-typescript ../build/openapi.json --output ../build/wire.ts
	$(PY) scripts/cli_types.py < build/openapi.json | $(PY) -m ruff format --quiet --stdin-filename wire.py - > build/wire.py

contracts: $(VENV)/dev ## store the public contracts as the code has them now; name each change in CHANGELOG.md
	$(PY) -m tests.contracts.write
	$(PY) scripts/language_model_tools.py

docs: $(VENV)/run ## write docs/configuration.md from src/handrail/config.py
	$(PY) scripts/config_reference.py

bench: tools $(VENV)/dev ui vsix ## measure beside peers; BENCH="read storm" selects, BASE=COMMIT compares with a commit
	$(PY) -m bench $(if $(BASE),--base $(BASE)) $(BENCH)

ui: $(VENV)/run ## build the page, if anything in ui/ changed
	@$(NPM)

vsix: $(VENV)/run ## build the VS Code extension into dist/handrail.vsix, if anything of it changed
	@$(NPM) vsix
	@mkdir -p dist && cp src/handrail/clients/handrail.vsix dist/handrail.vsix

editors: $(VENV)/dev  # a real VS Code workbench, for the tests of the extension
	@$(PY) -m tests.editors.install

format: $(VENV)/dev ## let ruff repair and format what it can
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

tools:
	@scripts/tools

lock: $(VENV)/dev ## write constraints.txt and ui/package-lock.json anew, within the bounds of pyproject and package.json
	$(PY) scripts/lock.py

dist: $(VENV)/dev ui vsix ## build the sdist and the wheel into dist/
	$(PY) -m build --no-isolation

clean: ## remove everything that was installed or built here
	rm -rf $(VENV) build dist ui/node_modules editors/vscode/node_modules editors/vscode/dist editors/vscode/page src/handrail/server/static src/handrail/clients/handrail.vsix*

# The environment, in three steps, each again only when what it reads has changed.

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Handrail needs Python 3.11 or newer; '$(PYTHON)' is older or missing. Try: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/run: $(VENV)/made pyproject.toml constraints.txt
	$(PIP) --upgrade pip
	$(PIP) --group build
	$(PIP) --no-build-isolation --editable .
	@touch $@

$(VENV)/dev: $(VENV)/run
	$(PIP) --group dev
	@touch $@
