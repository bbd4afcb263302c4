"""What exists only to run the papers again, or to be measured beside the product.

Nothing of the product imports it, nor do the product's tests (tools/house.py); a wheel does not
have it. ``make studies`` runs its tests.

- ``reproduction``: the experiments of the papers and their verdicts (``rexmq reproduce``);
- ``operators``: operators on streams of batches, of the thesis on GPUs (docs/operators.md);
- ``cdp_on_cuda``: column-based processing on a GPU as published;
- ``multicore``: hybrid parallelism on up to 64 simulated cores;
- ``counterexamples``: where the printed versions lose or double something (docs/spec/exactness.md);
- ``scale``: what networks of many brokers cost that do hardly anything (docs/design);
- ``device``: what is measured on a GPU, each part in a process of its own (``bench_gpu``);
- ``bench_operators``, ``bench_multicore``: benchmarks of these (``rexmq bench``).
"""
