"""Split large blocks of rows over the cores: partition, factor each, merge."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from threading import RLock
from typing import Any

from threadpoolctl import ThreadpoolController

# Multiply-adds below which starting a thread costs more than it saves (about 0.2 ms of work).
SMALLEST_SHARE = 2_000_000
# Columns below which BLAS starts no threads, and up to which they cost more than they save in a
# singular value decomposition (measured to 2,000 on two cores, where they never paid). Beside other
# programs on the same cores they cost 50 times that: each waits for one that does not run.
WITHOUT_THREADS, FEW_COLUMNS = 16, 2000


def count_workers() -> int:
    """Cores to use: ``POSTERITY_NUM_THREADS`` when set, otherwise those this process may run on.

    Examples
    --------
    >>> count_workers() >= 1
    True
    """
    named = os.environ.get("POSTERITY_NUM_THREADS", "")
    if named:
        if not named.isdigit() or int(named) < 1:
            raise ValueError(
                f"POSTERITY_NUM_THREADS is {named!r}: it must be a whole number from 1 up"
            )
        return int(named)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def split_rows(n_rows: int, width: int, threads: int | None = None) -> list[slice]:
    """Cut ``n_rows`` rows into one run for each core that is worth starting."""
    parts = n_rows * width * width // SMALLEST_SHARE
    if parts > 1:
        parts = min(count_workers() if threads is None else threads, parts)
    parts = max(1, parts)
    edges = [n_rows * part // parts for part in range(parts + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]


def run_together(task: Callable[..., None], *arguments: Sequence[Any]) -> None:
    """Call ``task`` on each tuple of arguments, all but the first on threads of their own.

    These are the threads there are: BLAS has one in each.
    """
    calls = list(zip(*arguments, strict=True))
    if len(calls) == 1:
        task(*calls[0])
        return
    with limit_blas_threads(FEW_COLUMNS), ThreadPoolExecutor(len(calls) - 1) as pool:
        futures = [pool.submit(task, *call) for call in calls[1:]]
        task(*calls[0])
        for future in futures:
            future.result()


def run_in_parallel(
    task: Callable[[int], None], turns: Iterable[int], multiply_adds: float
) -> None:
    """Call ``task`` on each of ``turns``; every core takes the next one when it is free.

    ``multiply_adds`` is their number in all: of few, one core does all.
    """
    if multiply_adds < SMALLEST_SHARE:
        for turn in turns:
            task(turn)
        return
    # No lock: an interrupt could leave it locked for ever.
    waiting = deque(turns)

    def work(_: int) -> None:
        while True:
            try:
                turn = waiting.popleft()
            except IndexError:
                return
            task(turn)

    run_together(work, range(count_workers()))


_limit_lock = RLock()
_limits: list[list[tuple[Any, int]]] = []  # libraries that are limited, and their threads before


@cache
def _find_blas() -> list[Any]:
    return ThreadpoolController().select(user_api="blas").lib_controllers


@contextmanager
def limit_blas_threads(size: int) -> Iterator[None]:
    """Keep BLAS to one thread for work on ``size`` columns, where threads do not pay.

    Always where ``POSTERITY_NUM_THREADS`` is 1. Of threads of Python that are in it at the same
    time, the first sets the limit, and restores what was there: OpenBLAS may ignore any other.

    Examples
    --------
    >>> import numpy as np
    >>> with limit_blas_threads(200):
    ...     np.linalg.svd(np.eye(200)).S[0]
    np.float64(1.0)
    """
    if size < WITHOUT_THREADS or (size > FEW_COLUMNS and count_workers() > 1):
        yield
        return
    limited: list[tuple[Any, int]] = []
    with _limit_lock:
        first = not _limits
        if first:
            before = [(library, library.num_threads) for library in _find_blas()]
            limited = [(library, threads) for library, threads in before if threads != 1]
            _limits.append(limited)
        for library, _ in limited:
            library.set_num_threads(1)
    try:
        yield
    finally:
        if first:
            with _limit_lock:
                _limits.remove(limited)
                for library, threads in limited:
                    library.set_num_threads(threads)
