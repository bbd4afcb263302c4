"""AIP as the thesis describes it (5.3, 5.6), for comparison with today's: see ``engine``."""

from rules.engine.chains.published.engine import AipPublished

__all__ = ["AipPublished"]
