# `make demo` and `make test` set everything up by themselves, in .venv, on a machine that has only Python.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
OLDEST := build/oldest

# Tests that start processes of their own, for which two workers of pytest leave no room.
CLUSTERS := tests/engines/test_dask.py tests/engines/test_spark.py

# A test that hangs says where, and ends the run.
HANGS := -o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true

UPLOT := 1.6.32
UPLOT_HOME := src/upturn/_report/vendor/uplot

.PHONY: demo test test-nojit test-oldest lint bench bench-install guard experiments-quick vendor clean

# The whole job on a simulated campaign: in Python, then by the command, which ends with a report that a browser opens.
demo: $(INSTALLED)
	rm -rf build/demo
	$(BIN)/python examples/demo.py
	rm -rf build/demo-command
	$(BIN)/upturn demo --folder build/demo-command

test: $(INSTALLED)
	$(BIN)/python -m pytest -n 2 --dist worksteal $(HANGS) $(CLUSTERS:%=--ignore %)
	$(BIN)/python -m pytest $(HANGS) $(CLUSTERS)

test-nojit: $(INSTALLED)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest tests/kernels tests/features/test_umodl_search.py

# Most tests with the oldest versions that pyproject.toml promises to work with. Left out: hostile files, to which versions
# are nothing, so is a browser, clusters, and golden effects, the README's figures and the pages of the experiments, which rest on the last digits of newer estimators.
test-oldest: $(OLDEST)/.installed
	PYTHONPATH=src NUMBA_CACHE_DIR=$(CURDIR)/$(OLDEST)/compiled $(OLDEST)/bin/python -m pytest -n 2 --dist worksteal \
		-W ignore::DeprecationWarning --ignore-glob '*hostile*' --ignore-glob '*/attack/*' --ignore-glob '*meta_golden*' \
		--ignore-glob '*command_golden*' --ignore-glob '*in_browser*' $(CLUSTERS:%=--ignore %) \
		--ignore-glob '*test_readme*' --deselect 'tests/test_docs.py::test_examples[marketing.md]' \
		--deselect tests/test_experiments.py::test_pages_quotes_and_pictures_agree_with_the_results \
		--deselect tests/test_experiments.py::test_a_number_changed_by_hand_is_seen

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(INSTALLED)
	$(BIN)/python benchmarks/run.py
	$(BIN)/python -m benchmarks.rivals speed

# Other libraries, each in an environment of its own under build/rivals; `make bench` runs those that are there.
bench-install: $(INSTALLED)
	$(BIN)/python -m benchmarks.rivals install

# Has anything become slower since another tree? make guard BASE=../base
guard: $(INSTALLED)
	$(BIN)/python benchmarks/bench_guard.py $(BASE)

# A small part of every experiment of the papers, compared with the committed results; UPTURN_DATA names the folder of the data.
experiments-quick: $(INSTALLED)
	rm -rf build/experiments
	$(BIN)/python -m experiments run --quick --jobs 2
	$(BIN)/python -m experiments check

# The chart library of the report's page, as its authors published it; whoever installs upturn gets it from here.
vendor:
	rm -rf build/vendor && mkdir -p build/vendor
	cd build/vendor && npm pack --silent uplot@$(UPLOT) && tar -xzf uplot-$(UPLOT).tgz
	cd build/vendor && cp $(addprefix package/,dist/uPlot.iife.min.js dist/uPlot.min.css LICENSE) .
	if grep -qx 'uplot $(UPLOT)' $(UPLOT_HOME)/VERSION; then cd build/vendor && sha256sum --check $(CURDIR)/$(UPLOT_HOME)/SHA256SUMS; else \
	cd build/vendor && sha256sum uPlot.iife.min.js uPlot.min.css LICENSE > $(CURDIR)/$(UPLOT_HOME)/SHA256SUMS && echo uplot $(UPLOT) > $(CURDIR)/$(UPLOT_HOME)/VERSION; fi
	cd build/vendor && cp uPlot.iife.min.js uPlot.min.css LICENSE $(CURDIR)/$(UPLOT_HOME)/

clean:
	rm -rf $(VENV) build dist
	find src tests -name __pycache__ -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "upturn needs Python 3.11 or newer; try make PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

# Every `>=` of pyproject.toml read as `==`, but for the tools of lint.
$(OLDEST)/.installed: pyproject.toml
	rm -rf $(OLDEST)
	$(PYTHON) -m venv $(OLDEST)
	$(PYTHON) -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	groups = [project["dependencies"], *project["optional-dependencies"].values()]; \
	needs = [need.replace(">=", "==") for group in groups for need in group if ">=" in need]; \
	print(*(need for need in needs if not need.startswith(("mypy", "ruff", "dask", "distributed", "pyspark"))), sep="\n")' > $(OLDEST)/minima.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $(OLDEST)/minima.txt
	touch $@
