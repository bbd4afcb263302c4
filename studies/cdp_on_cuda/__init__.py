"""CDP on CUDA as the thesis and the journal article describe it, for comparison with today's."""

from studies.cdp_on_cuda.engine import PublishedCdp

__all__ = ["PublishedCdp"]
