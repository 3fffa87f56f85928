# make run    set up on first use, then open the workbench
# make test   everything a change has to pass
# The rest: setup, lint, notebooks, lessons, jupyter, slow, bench, clean.

VENV := .venv
PY := $(VENV)/bin/python
INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

BENCHMARKS := $(filter-out benchmarks/make_%,$(wildcard benchmarks/*.py))

.DEFAULT_GOAL := run
.PHONY: run setup setup-dev model browser lint test notebooks lessons jupyter slow bench clean

run: setup
	@$(PY) -m workbench app

setup: $(VENV)/.run-stamp

setup-dev: $(VENV)/.dev-stamp

# A stamp is written last: an interrupted set-up starts again, a finished one needs no network.
$(VENV)/.run-stamp: pyproject.toml constraints.txt
	@$(MAKE) --no-print-directory $(VENV)/.python-stamp
	@echo "installing what the workbench needs (once, a few minutes)"
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/.dev-stamp: pyproject.toml constraints.txt $(VENV)/.run-stamp
	@echo "installing the development tools (once)"
	@$(INSTALL) --editable '.[dev]'
	@touch $@

$(VENV)/.python-stamp:
	@python=$$(PYTHON="$(PYTHON)" sh tools/find-python) && rm -rf $(VENV) && "$$python" -m venv $(VENV)
	@touch $@

# Fetches and converts the embedded model into the user's cache folder; instant when it is there.
model: setup
	@$(PY) -m engine.embedded

browser: setup-dev
	@sh tools/get-browser $(PY) || [ -z "$$CI" ]

lint: setup-dev
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

test: lint model browser
	@$(PY) -m pytest --numprocesses 2 --dist loadgroup

# The notebooks from their sources; a test holds them in step.
notebooks: setup-dev
	@$(PY) -m workbench.lessons build

# Every solution from a clean kernel, offline, and a page of each in out/lessons.
lessons: setup-dev model
	@$(PY) -m workbench.lessons run

jupyter: setup model
	@$(INSTALL) --editable '.[lessons]'
	@$(VENV)/bin/jupyter lab --ServerApp.root_dir=lessons --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate

slow: setup-dev model browser
	@$(PY) -m pytest -m slow

bench: setup model
	@for script in $(BENCHMARKS); do echo "== $$script"; $(PY) $$script || exit 1; done

clean:
	rm -rf $(VENV) .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache build dist out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
