# make demo   install what is missing, boot the demo host and open the console in it
# make test   install what is missing, check everything and run every test (those of the demo host need root)
# make lint   the checks alone
#
# PYTHON=python3.12 make ...   use another interpreter (3.11 or newer) for .venv
# DEMO="--keep"     make demo  options of `worktop demo`

PYTHON ?= python3
BIN := .venv/bin
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
KEEP_TERMINAL := $(if $(SUDO),--preserve-env=TERM,)
PIP := $(BIN)/pip --disable-pip-version-check --quiet --quiet --no-input

# pystemd is built from source; the rest is what the demo host boots with
APT := gcc pkg-config libsystemd-dev python3-dev python3-venv systemd-container dbus libpam-systemd cron
APT_TEST := tmux

.PHONY: demo test lint
demo: .venv/installed
	@$(BIN)/python -m compileall -q console
	@$(SUDO) $(KEEP_TERMINAL) $(BIN)/worktop demo $(DEMO)

test: lint
	$(BIN)/pytest

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# one stamp for each step: a second run starts at once
.venv/installed: pyproject.toml $(wildcard requirements.lock) | .venv/apt .venv/bin/pip
	@echo "installing worktop into .venv"
	@$(if $(wildcard requirements.lock),$(PIP) install --requirement requirements.lock)
	@$(PIP) install --editable '.[demo]'
	@touch $@

.venv/installed-dev: .venv/installed | .venv/apt-test
	@echo "installing the tools for the tests into .venv"
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"], sep="\n")' >.venv/dev.txt
	@$(PIP) install $(if $(wildcard requirements.lock),--constraint requirements.lock) --requirement .venv/dev.txt
	@$(BIN)/python -m compileall -q console
	@touch $@

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
fi
endef
