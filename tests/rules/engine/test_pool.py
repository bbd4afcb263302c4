"""Memory serves again only when nobody holds what stood in it (rules.engine.results.pool)."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from rules.engine.results.pool import KEPT_MAX, SMALL, Pool


def test_what_nobody_holds_is_lent_again() -> None:
    pool = Pool()
    lent = pool.lend(3 * SMALL)
    assert lent.shape == (3 * SMALL,)
    where = lent.ctypes.data
    assert pool.kept == 0
    del lent
    assert pool.kept == 4 * SMALL
    assert pool.lend(4 * SMALL).ctypes.data == where


def test_a_slice_of_a_view_holds_its_piece() -> None:
    pool = Pool()
    lent = pool.lend(SMALL)
    lent[:] = 7
    held = lent.view(np.int64)[8:16].reshape(2, 4)[:, 1:]
    del lent
    other = pool.lend(SMALL)
    other[:] = 9
    assert pool.kept == 0
    assert (held == 0x0707070707070707).all()
    del held
    assert pool.kept == SMALL


def test_small_pieces_are_not_kept() -> None:
    pool = Pool()
    pool.lend(SMALL - 1)
    assert pool.kept == 0


def test_what_waits_is_bounded_and_what_was_asked_for_last_stays() -> None:
    pool = Pool()
    held = [pool.lend(KEPT_MAX // 8) for _ in range(8)]
    held += [pool.lend(KEPT_MAX // 4) for _ in range(3)]
    held.reverse()
    while held:
        held.pop()
        assert pool.kept <= KEPT_MAX
    assert pool.kept == KEPT_MAX
    kept = [pool.lend(KEPT_MAX // 4) for _ in range(3)]
    assert pool.kept == KEPT_MAX // 4, "three of the last size waited"
    del kept


def test_pieces_come_back_from_other_threads() -> None:
    pool = Pool()
    with ThreadPoolExecutor(4) as threads:
        for _ in range(50):
            pieces = [pool.lend(SMALL) for _ in range(16)]
            assert len({piece.ctypes.data for piece in pieces}) == 16
            for place, piece in enumerate(pieces):
                piece[:] = place
            del piece
            sums = threads.map(lambda one: int(one.sum(dtype=np.int64)), pieces)
            pieces = []
            assert list(sums) == [SMALL * place for place in range(16)]
    assert pool.kept <= 64 * SMALL
