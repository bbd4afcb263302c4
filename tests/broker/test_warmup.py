"""A broker is warm: what it calls later, it has called before."""

import subprocess
import sys

PROGRAM = """
import sys
from numba.core.dispatcher import Dispatcher
from broker.warmup import warm_up

warm_up("auto")
found = {
    f"{name}.{each}": kernel
    for name, module in sorted(sys.modules.items())
    if name.startswith("rules.engine.") and not name.startswith("rules.engine.kernels")
    for each, kernel in vars(module).items()
    if isinstance(kernel, Dispatcher)
}
assert "rules.engine.cdp.forget_access" in found
print(*[name for name, kernel in found.items() if not kernel.signatures])
"""


def test_no_kernel_of_the_engine_is_waited_for_afterwards():
    # Another process: this one has called them all.
    told = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert (told.stdout.strip(), told.stderr) == ("", "")
