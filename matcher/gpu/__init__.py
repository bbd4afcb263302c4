"""Matching on a GPU: the thesis's CCM (4.4.3), and a batched matcher for devices of today.

Whatever runs here gives the answers of ``naive``, and nothing here is imported unless a device is
asked for. Where there is none, :class:`~matcher.gpu.device.NoDevice` says why.

The host keeps every table as well and is their owner; the device has copies that are brought up
to date before they are used (:mod:`matcher.gpu.mirror`). Under numba's simulator of CUDA
(``NUMBA_ENABLE_CUDASIM=1``) the same code runs on the processor, slowly, and is tested there.
"""
