"""SIGKILL at every boundary of a run, and a fresh process that goes on: nothing lost, nothing twice, doubts said."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import warnings

import pytest

from tests.session.crash import Fuse, alive, by_signal, check, work

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked, so that each starts at once")
FINISHED, DIED = 0, 86


def child(folder, at):
    """Work in a process of its own that kills itself at point `at`. Returns whether it did; a failure is no crash."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of earlier tests may still be about
        pid = os.fork()
    if pid == 0:
        code = DIED
        try:
            asyncio.run(work(folder, Fuse(at, by_signal)))
            code = FINISHED
        except BaseException as error:
            print(f"point {at}: {type(error).__name__}: {error}", file=sys.__stderr__, flush=True)
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == FINISHED, f"the process failed at point {at}"
    return False


@pytest.mark.slow
def test_killed_at_any_point_a_run_is_finished_by_the_next_process(ram):
    doubted, at = [], 0
    while True:
        at += 1
        folder = ram / str(at)
        folder.mkdir()
        if not child(folder, at):
            break
        assert alive(folder)
        assert not child(folder, 0)
        doubts, _ = asyncio.run(check(folder))
        doubted += [at] if doubts else []
        shutil.rmtree(folder)
    assert at > 60
    assert len(doubted) == 12, "in doubt are the four points inside each of the three calls with side effects, no other"


@pytest.mark.slow
def test_killed_again_and_again_a_run_still_comes_to_its_end(ram):
    for step in (2, 3, 5, 7, 12):
        folder = ram / str(step)
        folder.mkdir()
        lives = 1
        # A process that dies at point 2 of its life gets as far as to claim the thread, and no further: let it grow.
        while child(folder, step + lives):
            lives += 1
            assert lives < 200
        asyncio.run(check(folder))


def test_one_kill_inside_a_side_effect_is_said_to_be_in_doubt(ram):
    """The same as above, once, for the fast tests: 26 is inside a call with side effects."""
    for at in range(24, 60):
        folder = ram / str(at)
        folder.mkdir()
        assert child(folder, at)
        assert not child(folder, 0)
        if asyncio.run(check(folder))[0]:
            return
    raise AssertionError("no point was in doubt")
