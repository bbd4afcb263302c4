"""Hashes of terms and of what is asked of them; Bloom filters over hashes."""

from __future__ import annotations

import numpy as np

from matcher.kernels.compiled import inlined, kernel


@inlined
def mix(number):
    """The finishing step of SplitMix64 (public domain, S. Vigna)."""
    word = np.uint64(number) + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64(word ^ (word >> np.uint64(31)))


@inlined
def key_of(term, value, how):
    """The hash of an equality or a test on a term."""
    return mix(mix(term * 8 + how + 1) ^ value)


@inlined
def in_bloom(bloom, number):
    """Whether a hash may have been given to a Bloom filter; its length is a power of two."""
    word = bloom[(number >> 6) & (len(bloom) - 1)]
    bits = (np.int64(1) << (number & 63)) | (np.int64(1) << ((number >> 40) & 63))
    return word & bits == bits


@kernel
def to_bloom(bloom, number):
    """Give a hash to a Bloom filter."""
    bits = (np.int64(1) << (number & 63)) | (np.int64(1) << ((number >> 40) & 63))
    bloom[(number >> 6) & (len(bloom) - 1)] |= bits
