"""Workers on machines of their own, as far as the network can tell: one's link is cut in the middle of a run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.fleet.conftest import Server, fleet_on, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=True, text=True)


@pytest.fixture
def lands():
    """Three network namespaces: `db`, and `a` and `b` with a link each to it. Nothing else of this machine is touched."""
    names = {key: f"tropa{os.getpid()}{key}" for key in ("db", "a", "b")}
    if shutil.which("ip") is None:
        pytest.skip("needs `ip` (Debian: iproute2)")
    try:
        for name in names.values():
            ip("netns", "add", name)
        for number, key in enumerate("ab", 1):
            ip("link", "add", "up0", "netns", names[key], "type", "veth", "peer", f"to-{key}", "netns", names["db"])
            for place, link, host in ((key, "up0", 2), ("db", f"to-{key}", 1)):
                ip("-n", names[place], "addr", "add", f"10.99.{number}.{host}/24", "dev", link)
                ip("-n", names[place], "link", "set", link, "up")
    except subprocess.CalledProcessError as error:
        for name in names.values():
            ip("netns", "del", name, check=False)
        pytest.skip(f"network namespaces are not permitted here: {error.stderr.strip()}")
    yield names
    for name in names.values():
        ip("netns", "del", name, check=False)


def test_a_worker_whose_link_is_cut_loses_its_run_and_does_nothing_twice(lands, tmp_path, monkeypatch):
    monkeypatch.setenv("YARD", str(tmp_path))
    place = Path(tempfile.mkdtemp(prefix="tropa-cut-"))
    server = Server(place, "10.99.1.1,10.99.2.1", lands["db"])
    try:
        with fleet_on(server, tmp_path) as fleet:
            name = re.search(r"fleet\d+", fleet.url).group()
            inside = {key: ("ip", "netns", "exec", lands[key]) for key in "ab"}
            fleet.hold()
            cut = fleet.start("walker", "hoist", url=f"postgresql://postgres@10.99.1.1/{name}", before=inside["a"])
            fleet.submit("walker", "t")
            wait_for(lambda: fleet.effects, why=fleet.all_said())
            other = fleet.start("walker", url=f"postgresql://postgres@10.99.2.1/{name}", before=inside["b"])
            wait_for(lambda: len(fleet.do(lambda _, queue: queue.workers())) == 2)
            ip("-n", lands["a"], "link", "set", "up0", "down")
            began = time.monotonic()
            fleet.let_go()
            assert fleet.until("t", "completed", seconds=60).answer == "done after 9 steps"
            assert 10 < time.monotonic() - began < 35, "the claim of a worker that may be alive ends by its lease"
            before = fleet.events("t")
            assert cut.poll() is None
            ip("-n", lands["a"], "link", "set", "up0", "up")
            # It comes back to work, and lets go of what is no longer its own.
            fleet.submit("hoist", "u")
            fleet.until("u", "completed", seconds=120)
            wait_for(lambda: "u: completed" in fleet.said(cut))
            assert fleet.events("t") == before
            done = Counter(re.sub(r" pid.*", "", one) for one in fleet.effects)
            assert done.pop("weigh 0") == 2  # it only reads: run again by the one who took over
            assert done == {**{f"weigh {crate}": 1 for crate in range(1, 8)}, "lift 8 t": 1, "lift 7 u": 1}
            assert {line.rpartition(" ")[2] for line in fleet.effects if line.startswith("weigh ")} == {
                str(cut.pid),
                str(other.pid),
            }
            assert "t: completed" in fleet.said(other)
            assert "Traceback" not in fleet.all_said()
            assert [fleet.stop(worker) for worker in (cut, other)] == [0, 0]
    finally:
        server.close()
        shutil.rmtree(place, ignore_errors=True)
