# make        sets up .venv, then trains and draws the scale of params.yaml; run again, it makes what is missing
# make test   sets up .venv, then runs every check
SHELL := bash
PYTHON ?= python3.11
TORCH := $(shell grep -om1 'torch==[0-9.]*' requirements.lock)
LOG := results/logs/snakemake.log

export PATH := $(CURDIR)/.venv/bin:$(PATH)
export OMP_NUM_THREADS ?= 1

.PHONY: paper test setup
.DEFAULT_GOAL := paper

# A driver that was killed leaves its folder locked: whoever holds make.lock may unlock it.
paper: setup
	@etmdp status
	@mkdir -p results/logs; echo "Snakemake writes to $(LOG); Ctrl-C stops, make continues."
	@if command -v flock > /dev/null; then \
	  exec 9> results/logs/make.lock; \
	  flock -n 9 || { echo "make: another make is at work in this folder; wait for it or stop it" >&2; exit 1; }; \
	  snakemake --unlock > /dev/null 2>&1 9>&- || true; \
	fi; \
	etmdp status --follow 9>&- & trap "kill $$! 2> /dev/null" EXIT; \
	if ! snakemake --profile workflow/profiles/local > $(LOG) 2>&1 9>&-; then \
	  echo "Not everything was made. What failed:"; \
	  failed=$$(sed -n 's/^Logfile \(.*\):$$/\1/p' $(LOG) | sort -u); \
	  for file in $$failed; do echo "$$file:"; tail -n 20 $$file; done; \
	  [ "$$failed" ] || tail -n 12 $(LOG); \
	  echo "More is in $(LOG); make tries again what failed."; exit 1; \
	fi
	@scale=$$(python -c 'from etmdp.grid import Grid; print(Grid.load().scale)'); echo "Made, at the scale $$scale:"; \
	for part in report.html claims.md figures tables curves metrics.json; do echo "  results/$$scale/$$part"; done

test: setup
	ruff check
	ruff format --check
	snakefmt --check workflow
	snakemake --lint
	mypy
	pytest -n auto --dist loadgroup

setup: .venv/installed

.venv/installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, 11))' 2> /dev/null || \
	  { echo "make: $(PYTHON) is missing, is not Python 3.11 or lacks venv; install it (Debian: python3.11-venv) or name it: make PYTHON=..." >&2; exit 1; }
	@git --version > /dev/null || { echo "make: git is missing; install it" >&2; exit 1; }
	@echo "Setting up .venv: a few minutes the first time, mostly for $(TORCH)"
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet $(TORCH)
	.venv/bin/pip install --quiet --no-deps --requirement requirements.lock
	.venv/bin/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@
