"""Whose death a worker may conclude from a claim: only that of processes it can see."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tropa.journal.lease import dead, new_owner

NAMES = "from tropa.journal.lease import new_owner; print(new_owner(), flush=True); input()"
CHILD = f"import subprocess, sys; from tropa.journal.lease import dead; p = subprocess.Popen([sys.executable, '-c', {NAMES!r}], stdin=-1, stdout=-1, text=True); print(dead(p.stdout.readline()), flush=True); p.communicate('x')"


def inside(*how: str, program: str = NAMES):
    """Start a program in namespaces of its own; skip where that is not permitted."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", *how, "true"], capture_output=True).returncode:
        pytest.skip(f"`unshare {' '.join(how)}` is not permitted here")
    return subprocess.Popen(
        ["unshare", *how, sys.executable, "-c", program], stdin=-1, stdout=-1, text=True, env=dict(os.environ)
    )


def test_a_process_of_another_network_namespace_is_dead_when_it_is_gone():
    there = inside("--net")
    owner = there.stdout.readline()
    assert not dead(owner)
    there.communicate("x")
    assert dead(owner)


def test_of_another_process_namespace_on_the_same_machine_nothing_is_concluded():
    there = inside("--pid", "--fork", "--mount-proc")
    owner = there.stdout.readline()
    assert owner.partition("/")[0] == new_owner().partition("/")[0], "the same boot"
    assert not dead(owner)
    there.communicate("x")
    assert not dead(owner)


@pytest.mark.parametrize("proc", [["--mount-proc"], []], ids=["its own /proc", "the machine's /proc"])
def test_neighbours_in_a_process_namespace_do_not_take_each_other_for_dead(proc):
    there = inside("--pid", "--fork", *proc, program=CHILD)
    assert there.communicate()[0].strip() == "False"
