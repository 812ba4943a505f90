# Every target creates or reuses its own virtual environment; only Python >= 3.11 and make are needed.

PYTHON ?= python3
VENV := .venv
OLDEST := .venv-oldest
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
OLDEST_STAMP := $(OLDEST)/.installed
VERSIONS ?= 1.6 1.7 1.8 1.9
TESTS_IN := $(foreach version,$(VERSIONS),in-$(version)-oldest in-$(version)-newest)

# Plots are drawn to files: no target needs a display.
export MPLBACKEND := Agg
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Each worker would compile all tests anew if no bytecode were kept.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-fast test-oldest test-versions flaky lint dist docs examples notebooks papers bench bench-smoke field clean

help:
	@echo "make demo         private and exact SVM on real data, side by side"
	@echo "make test         the whole test suite; COVER=95 measures coverage, and fails below it"
	@echo "make test-fast    a sixth of the cases of all tests not marked slow, for daily work"
	@echo "make test-oldest  the tests not marked slow, on the oldest supported dependencies; EVERY=3 has a third of the cases"
	@echo "make test-versions  these for each scikit-learn, all else oldest and newest; VERSIONS=1.7 for one"
	@echo "make flaky        200 runs of all tests that depend on chance; RUNS=20 for less"
	@echo "make lint         style, formatting and types"
	@echo "make dist         sdist and wheel in dist/, checked as an index would"
	@echo "make docs         the documentation, in docs/_build/html; Chromium looks at each page"
	@echo "make examples     every script in examples/, warnings as errors, unless make docs has just run them"
	@echo "make notebooks    write examples/notebooks/ anew from scripts, with outputs"
	@echo "make papers       the experiments of the papers in full; PAPERS=examples/papers/plot_x.py for one"
	@echo "make bench        what sampling costs; BENCHMARKS=benchmarks/utility.py for another script"
	@echo "make field DATA=folder  ours and others on Adult and rice, class tables, and how cost grows; FIELD='--tables rice' for less"
	@echo "make bench-smoke  every benchmark in its small mode, two at a time"
	@echo "make clean        remove environments and everything built"

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "skdp needs Python 3.11 or later, e.g. make PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

$(OLDEST_STAMP): pyproject.toml constraints.txt constraints-oldest.txt
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --constraint constraints-oldest.txt --editable '.[test]'
	touch $@

# scikit-learn 1.9 asks for more than the oldest that we support.
OLDEST_FOR_1.9 := -e 's/^joblib==.*/joblib==1.4.0/' -e 's/^threadpoolctl==.*/threadpoolctl==3.5.0/'
# .venv-1.7-oldest has scikit-learn 1.7 among the oldest dependencies, .venv-1.7-newest among today's.
.venv-%/.installed: pyproject.toml constraints.txt constraints-oldest.txt
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	sed -e '/^scikit-learn==/d' $(if $(findstring oldest,$*),$(OLDEST_FOR_$(firstword $(subst -, ,$*))) constraints-oldest.txt,constraints.txt) > $(@D)/constraints.txt
	$(@D)/bin/python -m pip install --quiet --constraint $(@D)/constraints.txt 'scikit-learn==$(firstword $(subst -, ,$*)).*' --editable '.[test]'
	touch $@

demo: $(STAMP)
	$(BIN)/python examples/plot_private_svm.py

COVERAGE := $(if $(COVER),--cov --cov-report term --cov-fail-under $(COVER))
test: $(STAMP)
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal $(COVERAGE)

test-fast: $(STAMP)
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal -m "not slow" --every 6 --hypothesis-profile fast

EVERY ?= 1
test-oldest: $(OLDEST_STAMP)
	$(OLDEST)/bin/python -m pytest --numprocesses auto --dist worksteal -m "not slow" --every $(EVERY) $(COVERAGE)

test-versions: $(TESTS_IN)

$(TESTS_IN): in-%: .venv-%/.installed
	.venv-$*/bin/python -m pytest --numprocesses auto --dist worksteal -m "not slow"

RUNS ?= 200
flaky: $(STAMP)
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal --hypothesis-profile random --runs $(RUNS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

dist: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dist]'
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m twine check --strict dist/*

# Runs the commands of its input, two at a time. Prints what each has said when it ends, and fails if one failed.
TWO_AT_A_TIME := xargs -P 2 -I {} sh -c 'said=$$({} 2>&1); failed=$$?; echo "== {}"; echo "$$said"; exit $$failed'

# The docs run all scripts, warnings as errors, and leave a file with the time when they began.
RAN := docs/_build/ran
CHANGED = find skdp examples docs/conf.py $(STAMP) -type f -newer $(RAN) ! -name '*.pyc' ! -name '*.png'
# Small fits by boosting take several times as long on two threads as on one.
docs examples: export OMP_NUM_THREADS := 1
docs: $(STAMP)
	rm -rf docs/_build docs/generated docs/auto_examples
	mkdir docs/_build && touch $(RAN).new
	$(BIN)/python -m sphinx --builder html --jobs 2 --nitpicky --fail-on-warning --keep-going --quiet docs docs/_build/html
	mv $(RAN).new $(RAN)
	$(BIN)/python docs/check_site.py
	@echo "Open docs/_build/html/index.html"

examples: $(STAMP)
	$(BIN)/python examples/notebooks/generate.py --check
	@if test -e $(RAN) && test -z "$$($(CHANGED))"; then echo "make docs has run all scripts as they are."; else \
		printf '$(BIN)/python -W error %s\n' examples/*.py examples/papers/plot_*.py | $(TWO_AT_A_TIME); fi

notebooks: $(STAMP)
	$(BIN)/python examples/notebooks/generate.py

PAPERS ?= $(wildcard examples/papers/plot_*.py)
papers: $(STAMP)
	@set -e; for script in $(PAPERS); do \
		echo "== $$script"; SKDP_PAPERS=full $(BIN)/python -W error "$$script"; done

BENCHMARKS ?= benchmarks/compare.py
bench: $(STAMP)
	@set -e; for script in $(BENCHMARKS); do \
		echo "== $$script"; $(BIN)/python "$$script"; done

SMALL := audit_estimators class_tables classes compare components coverage engines expected field floating_point likeness mutation scale search utility
field: $(STAMP)
	$(BIN)/python benchmarks/field.py --data $(DATA) $(FIELD)
	$(BIN)/python benchmarks/class_tables.py --data $(DATA)
	$(BIN)/python benchmarks/scale.py --figure docs/_static/scale.png

bench-smoke: export OMP_NUM_THREADS := 1
bench-smoke: $(STAMP)
	@printf '$(BIN)/python benchmarks/%s.py --small\n' $(SMALL) | $(TWO_AT_A_TIME)

clean:
	rm -rf $(VENV) .venv-* docs/_build docs/generated docs/auto_examples
	rm -rf .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
