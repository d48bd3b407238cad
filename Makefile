# make demo   install what is missing, boot the demo host and open the console in it
# make test   install what is missing, check everything and run every test (those of the demo host need root)
# make lint   the checks alone
# make bench  what worktop costs beside isd and pg_activity: a table; ten minutes on a quiet machine
# make screenshots   the pictures of docs/, make lock   requirements.lock
#
# PYTHON=python3.12 make ...   use another interpreter (3.11 or newer) for .venv
# DEMO="--keep"     make demo  options of `worktop demo`
# BENCH="--out x.md"  make bench  options of `python -m tests.bench`
# PYTEST="-x tests/queue"  make test  options of pytest, instead of three workers

PYTHON ?= python3
PYTEST ?= -n 3 --dist loadgroup --no-loadscope-reorder --durations=10
BIN := .venv/bin
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
KEEP_TERMINAL := $(if $(SUDO),--preserve-env=TERM,)
PIP := $(BIN)/pip --disable-pip-version-check --quiet --quiet --no-input

# on every core; pip does it on one
COMPILE = $(BIN)/python -m compileall -q -j 0 .venv/lib console || true  # some packages ship templates that are no Python

# pystemd is built from source; the rest is what the demo host boots with
APT := gcc pkg-config libsystemd-dev python3-dev python3-venv systemd-container dbus libpam-systemd polkitd cron
# sshd is run inside the demo host only: where its package was missing, its service is switched off again
APT_TEST := tmux openssh-client openssh-server openssl

DEV_GROUP := $(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"], sep="\n")'

# npm beside pip, mypy beside the other checks
MAKEFLAGS += --jobs=2

.PHONY: demo test lint lint-types lint-rest lock screenshots bench
demo: .venv/installed
	@$(BIN)/python -m compileall -q console
	@$(SUDO) $(KEEP_TERMINAL) $(BIN)/worktop demo $(DEMO)

test: lint .venv/pgboss/installed
	$(BIN)/pytest $(PYTEST)

lint: lint-types lint-rest
lint-types: .venv/installed-dev
	$(BIN)/mypy
lint-rest: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

# the pictures of the documentation, from a demo host
screenshots: .venv/installed-dev
	@$(SUDO) $(BIN)/python docs/screenshots.py

# not a test: nothing is asserted
bench: .venv/installed-dev
	@$(BIN)/python -m compileall -q console
	@$(SUDO) $(BIN)/python -m tests.bench $(BENCH)

# requirements.lock: what was tested
lock: .venv/installed-dev
	@$(DEV_GROUP) >.venv/dev.txt
	@$(BIN)/pip-compile --quiet --strip-extras --extra demo --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
	    --no-emit-trusted-host --output-file requirements.lock pyproject.toml .venv/dev.txt

# one stamp for each step: a second run starts at once
.venv/installed: pyproject.toml requirements.lock | .venv/apt .venv/bin/pip
	@echo "installing worktop into .venv"
	@$(PIP) install --no-compile --constraint requirements.lock --editable '.[demo]'
	@$(COMPILE)
	@touch $@

.venv/installed-dev: .venv/installed | .venv/apt-test
	@echo "installing the tools for the tests into .venv"
	@$(DEV_GROUP) >.venv/dev.txt
	@$(PIP) install --no-compile --constraint requirements.lock --requirement .venv/dev.txt
	@$(COMPILE)
	@touch $@

# pg-boss and the node it runs on, for the tests with its real workers: from npm, pinned, without any script of theirs.
# Where npm or its registry is not to be had the tests that need them are skipped; with CI=true they fail.
.venv/pgboss/installed: tests/queue/pgboss/package.json tests/queue/pgboss/package-lock.json | .venv/apt-test
	@mkdir -p .venv/pgboss
	@if ! command -v npm >/dev/null; then $(call apt_install,nodejs npm); fi
	@echo "installing pg-boss into .venv/pgboss"
	@cp tests/queue/pgboss/package.json tests/queue/pgboss/package-lock.json .venv/pgboss/
	@if (cd .venv/pgboss && npm ci --ignore-scripts --no-audit --no-fund --silent); then touch $@; else \
	    echo "npm cannot install pg-boss: the tests with its workers will be skipped (with CI=true they fail)"; \
	fi

.venv/bin/pip: | .venv/apt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "worktop needs Python 3.11 or newer; name one: make PYTHON=python3.12 ...")'
	@$(PYTHON) -m venv .venv

.venv/apt:
	@mkdir -p .venv
	@$(call apt_install,$(APT))
	@touch $@

.venv/apt-test: | .venv/apt
	@$(call apt_install,$(APT_TEST))
	@touch $@

# $(1): packages; installs those that are missing, says which where it cannot
define apt_install
missing=; for package in $(1); do \
    [ "$$(dpkg-query --show --showformat='$${db:Status-Status}' $$package 2>/dev/null)" = installed ] || missing="$$missing $$package"; \
done; \
if [ -n "$$missing" ] && ! command -v apt-get >/dev/null; then \
    echo "not Debian: install what corresponds to$$missing"; \
elif [ -n "$$missing" ] && [ "$$(id -u)" != 0 ] && [ -z "$(SUDO)" ]; then \
    echo "neither root nor sudo: ask for these packages:$$missing"; \
elif [ -n "$$missing" ]; then \
    echo "installing$$missing"; \
    $(SUDO) apt-get -qq update >/dev/null; \
    $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get -qq --no-install-recommends install $$missing >/dev/null </dev/null; \
    case "$$missing" in *openssh-server*) \
        $(SUDO) systemctl disable --now ssh.service >/dev/null 2>&1 || true;; \
    esac; \
fi
endef
