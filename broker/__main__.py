"""``python -m broker`` is ``rexmq``."""

from __future__ import annotations

import sys

from broker.cli import main

sys.exit(main())
