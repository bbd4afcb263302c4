# Everything a newcomer needs: each target sets up what it uses, from Python and make alone.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: demo test studies oldest test-spark test-spark-whole spark-ready spark-versions wheel site \
	check lint bench gpu gpu-fill campaign paper-tables combinations bench-quick fuzz fuzz-inputs guarded sizes strangers soak kill clean

# Where this is set (images for containers do), every process compiles its modules anew: the tests
# start hundreds, and most of what each does before its work is that.
unexport PYTHONDONTWRITEBYTECODE

INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile \
	-c constraints.txt
# By one process, so that workers of tests do not do it side by side.
COMPILE_KERNELS := $(BIN)/python -c \
	"from broker.warmup import warm_up, warm_up_matching; warm_up('cdp'); warm_up_matching()"

# The stamps make the set-up happen once, and again when what it depends on changes. Modules are
# compiled when they are first imported, so that those that never are cost nothing. Kernels are
# compiled while what only developers need is installed.
$(VENV)/.ready: pyproject.toml constraints.txt | $(VENV)/.runs
	$(COMPILE_KERNELS) & $(INSTALL) -e ".[dev]" && wait $$!
	touch $@

# What the demo needs, and nothing else: no linters, no plots.
$(VENV)/.runs: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e ".[demo]"
	touch $@

demo: $(VENV)/.runs
	$(BIN)/rexmq demo

# Kernels that have changed are compiled first. Four workers share two cores: a third of what tests
# take is waiting, for processes, links and moments. The tests of Spark have a target of their own,
# whatever is installed; so have those of studies, but for a sample. Files go to the workers in the order of tests/conftest.py, the longest
# first. Of what is alike a sample is tried: `make combinations` tries the rest, `make campaign` and
# `make fuzz` more at random.
STUDIES_SAMPLE := studies/tests/operators/test_operators.py \
	studies/tests/reproduction/test_verdicts.py studies/tests/test_reproduction_pages.py
test: $(VENV)/.ready
	$(COMPILE_KERNELS)
	$(BIN)/python -m pytest -n 4 --dist worksteal --ignore tests/spark tests $(STUDIES_SAMPLE)

# What runs the papers again: its own tests, all of them.
studies: $(VENV)/.ready
	$(BIN)/python -m pytest -n 4 --dist worksteal studies/tests

# All pages of docs/reproduction from the rows and tables that are kept: nothing is measured.
paper-tables: $(VENV)/.ready
	$(BIN)/python -m studies.reproduction.judging
	$(BIN)/python -m studies.reproduction.gpu
	$(BIN)/python -m studies.reproduction.headlines

# The oldest numba that pyproject.toml admits; `make test` has the newest (constraints.txt).
OLDEST := numba==0.63.1
oldest:
	$(PYTHON) -m venv build/oldest
	build/oldest/bin/python -m pip install --quiet --disable-pip-version-check -e ".[dev]" "$(OLDEST)"
	NUMBA_CACHE_DIR=$(CURDIR)/build/oldest/kernels build/oldest/bin/python -m pytest -n 2 \
		tests/rules/test_local.py tests/rules/engine/test_cdp.py tests/conformance/test_engines.py \
		tests/matcher

# The tests of Spark need its extra (half a gigabyte), which this installs, and Java 17, without
# which they are skipped. Sessions of Spark Connect need more of pyspark's own extras.
# ``test-spark`` has what goes wrong and what connectors are asked for, and a sample of what rules
# find; ``test-spark-whole`` also how tables are cut, read and ordered, and the example pipeline.
SPARK_REST := blocks cuts direct narrowing nulls orders pipeline scans simultaneous
SPARK_TESTS = $(BIN)/python -m pytest -n 2 --dist worksteal tests/spark
test-spark: spark-ready
	$(SPARK_TESTS) $(SPARK_REST:%=--ignore tests/spark/test_%.py)

test-spark-whole: spark-ready
	$(SPARK_TESTS)

spark-ready: $(VENV)/.ready
	$(INSTALL) -e ".[dev,spark]" "pyspark[connect]"
	$(BIN)/python -c "from broker.warmup import warm_up; warm_up('cdp')"

# The oldest pyspark that pyproject.toml admits, in an environment of its own, after the newest
# (constraints.txt).
OLDEST_SPARK := pyspark==4.1.0
spark-versions: test-spark-whole
	$(PYTHON) -m venv build/oldest-spark
	grep -v '^pyspark==' constraints.txt > build/oldest-spark/constraints.txt
	build/oldest-spark/bin/python -m pip install --quiet --disable-pip-version-check \
		-c build/oldest-spark/constraints.txt -e ".[dev,spark]" "$(OLDEST_SPARK)"
	build/oldest-spark/bin/python -m pytest -n 2 --dist worksteal tests/spark

# A wheel, installed outside the checkout on each Python from 3.11 to 3.13 that there is, and used:
# a file, a broker with clients, and Spark where there is Java.
wheel: $(VENV)/.ready
	$(BIN)/python tools/wheel.py build/wheel

# All pages as a site with search, and a reference of the public classes from their docstrings, in
# build/site. A link that leads nowhere is an error. What generates it is installed when it is asked for.
site: $(VENV)/.ready
	$(INSTALL) -e ".[dev,site]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/python tools/site.py

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/house.py

check: lint test

# Longer random campaigns: engines against the oracle. CASES=100000 SEED=5000 make campaign
campaign: $(VENV)/.ready
	REXMQ_CASES=$(or $(CASES),30000) REXMQ_SEED=$(or $(SEED),0) \
		$(BIN)/python -m pytest -n 2 --timeout 0 tests/conformance

# All of what `make test` tries a sample of: each test of networks under every strategy, all
# combinations of values, and the longer rows of random cases. FOLDERS=tests/simulator make
# combinations runs some of it.
combinations: $(VENV)/.ready
	REXMQ_COMBINATIONS=1 REXMQ_CASES=1200 REXMQ_TREES=300 REXMQ_NETWORKS=25 REXMQ_FAULTS=8 \
		REXMQ_COMING=120 $(BIN)/python -m pytest -n 2 --timeout 0 --ignore tests/spark $(or $(FOLDERS),tests)

# Random networks against the oracle, with every strategy. SEEDS=500..1000 make fuzz
# (make fuzz-inputs tries what reads bytes from outside.)
fuzz: $(VENV)/.ready
	$(BIN)/rexmq simulate --fuzz --seeds $(or $(SEEDS),0..500)

# Engines, operators and matchers in guarded memory: every array grows in every test, and an access
# outside of one ends the run. Flush with the front, then with the end of each array, then with all
# indices checked. Kernels of each run are kept apart. Left out: what runs without them, in processes
# of its own or in numba's simulator, what measures memory, calls and how kernels are compiled, and
# what has many arrays, each of which takes as many pages here.
GUARDED := $(BIN)/python -m pytest -n 2 --timeout 900 $(or $(FOLDERS),tests/runtime \
	tests/conformance tests/rules tests/matcher tests/sizes tests/simulator/test_fuzzing.py) \
	$(addprefix --deselect ,tests/matcher/test_gpu.py tests/runtime/test_compiling.py \
	tests/rules/engine/test_pool.py tests/rules/engine/test_footprints.py \
	tests/rules/engine/test_host_of_gpu.py tests/rules/engine/kernels/test_ahead.py \
	tests/matcher/test_choose.py \
	tests/matcher/test_vocabulary.py::test_a_hundred_thousand_constraints_on_one_text \
	tests/conformance/test_matchers.py::test_more_interfaces_than_two_bytes_can_count \
	tests/conformance/test_matchers.py::test_more_filters_for_one_event_than_there_is_room_for_at_first)
guarded: $(VENV)/.ready
	NUMBA_CACHE_DIR=$(CURDIR)/build/guarded $(GUARDED) --guarded front
	NUMBA_CACHE_DIR=$(CURDIR)/build/guarded $(GUARDED) --guarded end
	NUMBA_CACHE_DIR=$(CURDIR)/build/checked NUMBA_BOUNDSCHECK=1 $(GUARDED) \
		-W error::pytest.PytestUnraisableExceptionWarning

# Each kind of clause over many events and keys, in every engine, beside what numpy says.
# SIZE=1000000 make sizes
sizes: $(VENV)/.ready
	REXMQ_SIZE=$(or $(SIZE),120000) $(BIN)/python -m pytest -n 2 --timeout 0 tests/sizes

# Bytes from outside, against every reader of them: frames, files of events, rules, configuration,
# keys. Guided by coverage, where there is a wheel of atheris. COUNT=1000000 TARGETS="wire rules"
# make fuzz-inputs. In the background for ten minutes: MINUTES=10 COUNT=10000000 nice -n 19 make
# fuzz-inputs >fuzz.log 2>&1 &
fuzz-inputs: $(VENV)/.ready
	$(INSTALL) atheris
	$(BIN)/python tools/fuzz_inputs.py --inputs $(or $(COUNT),100000) \
		--minutes $(or $(MINUTES),0) $(TARGETS)

# Peers that speak ZMTP badly against a broker. COUNT=100000 SEED=600 make strangers
strangers: $(VENV)/.ready
	REXMQ_STRANGERS=$(or $(COUNT),30000) REXMQ_SEED=$(or $(SEED),0) \
		$(BIN)/python -m pytest --timeout 0 tests/broker/test_strangers.py

# Does memory stay flat while events flow and rules come and go? MINUTES=5 make soak
soak: $(VENV)/.ready
	$(BIN)/python -m benchmarks.campaign soak --minutes $(or $(MINUTES),60)

# Five live brokers under each strategy, one killed and started again, at several rates, beside two
# programs that use the processor all the time and without: is what the sink gets what one engine
# finds? Hours; STRATEGY=centralized make kill runs one.
kill: $(VENV)/.ready
	$(BIN)/python -m benchmarks.campaign kill --all $(STRATEGY)

# Benchmarks at their smallest size: that they run, not their figures. That of Spark says so and is
# left out without its extra or Java.
bench-quick: $(VENV)/.ready
	$(BIN)/rexmq bench --quick machine files language detection growth hybrid deployment \
		matching changes walks operators subscriptions ways choice brokers peers connect floods store \
		fanout network simulator multicore_costs processing_costs gpu spark

bench: $(VENV)/.ready
	$(BIN)/rexmq bench

# What a machine with a GPU can tell: the tests on the device, and figures, in eight minutes at most.
# PARTS=tests,matching make gpu runs some of it. It needs the extra gpu.
gpu: $(VENV)/.ready
	$(BIN)/python -m studies.bench_gpu --output build/gpu $(if $(PARTS),--parts $(PARTS))

# What is "not yet measured on a device" in docs/reproduction/gpu.md: measured, kept, and written, in
# ten minutes at most.
gpu-fill: $(VENV)/.ready
	$(BIN)/python -m studies.fill_gpu

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build *.egg-info
