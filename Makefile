# Everything that a fresh clone needs, and nothing done by hand.

PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin

.PHONY: demo test lint bench signatures schema clean

demo: $(VENV)/ready
	@$(BIN)/convoscope demo

test: lint
	$(BIN)/pytest -n 2

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Small by default; FULL=1 for the figures in benchmarks/README.md.
bench: $(VENV)/ready
	$(BIN)/python -m benchmarks $(if $(FULL),--full)

# After a metric was changed and its version raised.
signatures: $(VENV)/ready
	$(BIN)/python -m convoscope.metrics.signatures

# After the model was changed.
schema: $(VENV)/ready
	$(BIN)/convoscope formats convoscope --schema > docs/formats/conversation-1.schema.json

$(VENV)/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || (apt-get update -q && apt-get install -qy python3-venv)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) runs
