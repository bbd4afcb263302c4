"""CDP on CUDA as the thesis and the journal article describe it, for comparison with today's."""

from rules.engine.gpu.published.engine import PublishedCdp

__all__ = ["PublishedCdp"]
