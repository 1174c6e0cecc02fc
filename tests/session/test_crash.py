"""A crash at every boundary of a run, in one process: what was running ends, a new session goes on from the file."""

from __future__ import annotations

import asyncio
import shutil

import pytest

from tests.session.crash import Fuse, Killed, alive, by_exception, check, release, work


def points(folder):
    """How many points a run without a crash passes."""
    fuse = Fuse(0, by_exception)
    asyncio.run(work(folder, fuse))
    asyncio.run(check(folder))
    return fuse.passed


def crash(folder, at):
    """Run until point `at`. Returns whether it was reached."""
    try:
        asyncio.run(work(folder, Fuse(at, by_exception)))
    except Killed:
        asyncio.run(release(folder))
        assert alive(folder)
        return True
    return False


@pytest.fixture(scope="module")
def total(tmp_path_factory):
    return points(tmp_path_factory.mktemp("whole"))


def test_a_crash_at_any_point_loses_nothing_and_repeats_nothing(ram, total):
    """C-09 and the table of crashes: no input lost, no effect twice, doubt only where the crash was inside a call."""
    assert total > 60
    doubted = {}
    for at in range(1, total + 1):
        folder = ram / str(at)
        folder.mkdir()
        assert crash(folder, at)
        asyncio.run(work(folder, Fuse(0, by_exception)))
        doubts, kinds = asyncio.run(check(folder))
        doubted[at] = len(doubts)
        assert kinds.count("call.doubted") == len(doubts) <= 1
        shutil.rmtree(folder)
    # Inside a call lie: after the start is stored, before and after the effect, before the end is stored.
    assert sum(doubted.values()) == 3 * 4, doubted


def test_a_second_crash_while_the_first_is_mended_changes_nothing(ram, total):
    for first in range(2, total, 13):
        for second in (1, 2, 3, 4, 6, 9, 14):
            folder = ram / f"{first}-{second}"
            folder.mkdir()
            assert crash(folder, first)
            crash(folder, second)
            asyncio.run(work(folder, Fuse(0, by_exception)))
            asyncio.run(check(folder))
            shutil.rmtree(folder)
