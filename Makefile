# Everything that a fresh clone needs, and nothing done by hand.

PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
MODEL   = $(or $(CONVOSCOPE_WEIGHTS),$(VENV)/weights)/smollm2-135m.gguf
WHISPER = $(or $(CONVOSCOPE_WEIGHTS),$(VENV)/weights)/whisper-tiny.en/model.bin

# Compiled files are kept, whatever the environment says: each process of the tests would compile everything anew.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test test-engines lint style docs screenshots bench weight signatures schema format-facts clean

demo: $(VENV)/demo
	@$(BIN)/convoscope demo
	@echo 'run   $(BIN)/convoscope, or `. $(BIN)/activate` and then `convoscope`'

# mypy needs one core only: it runs next to the tests, and what it says is printed after them.
test: style $(VENV)/browser $(VENV)/voices $(MODEL) $(WHISPER)
	@echo '$(BIN)/mypy && $(BIN)/lint-imports, and meanwhile $(BIN)/pytest -n 2 --dist worksteal'
	@{ $(BIN)/mypy && $(BIN)/lint-imports; } > $(VENV)/types.txt 2>&1 & types=$$!; \
	  $(BIN)/pytest -n 2 --dist worksteal; tests=$$?; \
	  wait $$types; types=$$?; cat $(VENV)/types.txt; exit $$((tests | types))

# Ray is large, and clusters take seconds to start and to lose their workers.
test-engines: $(VENV)/ready
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,ray]'
	CONVOSCOPE_ENGINES=1 $(BIN)/pytest tests/scoring/test_dask_engine.py tests/scoring/test_ray_engine.py

lint: style
	$(BIN)/mypy
	$(BIN)/lint-imports

style: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Writes the heads of the metrics' pages; runs every command in the documentation, or in one PAGE, and writes what it prints below it.
docs: $(VENV)/ready
	$(BIN)/python tests/docs/metric_pages.py
	$(BIN)/python tests/docs/blocks.py $(PAGE)

# After the page was changed.
screenshots: $(VENV)/browser
	$(BIN)/python tests/docs/screenshots.py

# Small by default; FULL=1 measures the figures of benchmarks/README.md and writes them into it. ONLY=road,page for some sections.
bench: $(VENV)/ready $(VENV)/browser
	$(BIN)/python -m benchmarks $(if $(FULL),--full) $(if $(ONLY),--only $(ONLY))

# Lines, files, functions and classes by package, lines of each reader and kit; PASSED=1 for what one input passes on its way.
weight: $(VENV)/ready
	$(BIN)/python -m benchmarks.weight $(if $(PASSED),--passed)

# After a metric was changed and its version raised; SAME=1 after a refactoring that keeps every number.
signatures: $(VENV)/ready
	$(BIN)/python -m convoscope.metrics.signatures $(if $(SAME),--same-numbers)

# After a reader was changed: the table of docs/formats/README.md, from the logs in ../shared or CONVOSCOPE_SHARED.
format-facts: $(VENV)/ready
	PYTHONPATH=tests $(BIN)/python -m support.format_table

# After the model or the summary was changed.
schema: $(VENV)/ready
	$(BIN)/convoscope formats convoscope --schema > docs/formats/conversation-1.schema.json
	$(BIN)/python -m convoscope.runs.summary > docs/formats/summary-2.schema.json

# What Convoscope needs to run.
$(VENV)/demo: pyproject.toml constraints.txt
	$(call install,.)
	@touch $@

# What its developers need on top of that.
$(VENV)/ready: pyproject.toml constraints.txt
	$(call install,.[dev])
	@touch $(VENV)/demo $@

# $(call install,WHAT): a Python that is too old is told before anything is installed.
define install
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
  { echo "Convoscope needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Name another: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || (apt-get update -q && apt-get install -qy python3-venv)
$(PYTHON) -m venv $(VENV)
$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '$(1)'
endef

# The page is tested in the real browser, Debian's; CONVOSCOPE_CHROMIUM names another. Without a window it takes half
# the time; not every Debian has that one.
$(VENV)/browser: $(VENV)/ready
	@command -v "$${CONVOSCOPE_CHROMIUM:-chromium-headless-shell}" >/dev/null || (apt-get update -q && \
	  (apt-get install -qy --no-install-recommends chromium-headless-shell fonts-dejavu-core || \
	   apt-get install -qy --no-install-recommends chromium fonts-dejavu-core))
	@touch $@

# Judges are tested with a real model, the smallest there is; `make bench FULL=1` fetches a larger one in the same way.
$(MODEL): | $(VENV)/ready
	$(BIN)/python tests/support/weights.py $(basename $(notdir $@))

# Recognisers are tested with the smallest Whisper, 78 MB.
$(WHISPER): | $(VENV)/ready
	$(BIN)/python tests/support/weights.py whisper-tiny.en

# Metrics of sound are tested with real speech: Debian's prompts of a telephone exchange, two synthesizers, and ffmpeg for
# codecs. Where they cannot be installed, the tests that need them are skipped, and say so. speechmos holds the models of
# the second opinion; what it needs for itself is not used.
VOICES = asterisk-core-sounds-en asterisk-core-sounds-en-g722 ffmpeg flite festival festvox-us-slt-hts
$(VENV)/voices: | $(VENV)/ready
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps speechmos
	@dpkg-query -W $(VOICES) >/dev/null 2>&1 || (apt-get update -q && apt-get install -qy --no-install-recommends $(VOICES)) || \
	  echo 'tests of sound that need speech are skipped: apt-get install $(VOICES)'
	@touch $@

clean:
	rm -rf $(VENV) runs
