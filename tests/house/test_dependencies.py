"""The lock files cover what pyproject.toml asks for, and every direct dependency has its reason."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
MOST_IN_CORE = 30  # packages, Tropa itself among them

LOCKS = {
    "core.lock": [],
    "demo.lock": ["needle"],
    "dev.lock": [extra for extra in EXTRAS if extra != "bench"],
    "bench.lock": ["bench"],
}


def asked(extras: list[str]) -> list[Requirement]:
    """What the project asks for with these extras."""
    return [Requirement(line) for line in (*PROJECT["dependencies"], *(r for e in extras for r in EXTRAS[e]))]


def locked(lock: str) -> dict[str, Requirement]:
    """The pins of a lock file by name."""
    lines = (ROOT / "requirements" / lock).read_text("utf-8").splitlines()
    return {canonicalize_name(pin.name): pin for pin in map(Requirement, lines)}


def version(pin: Requirement) -> str:
    """The one version that a pin allows."""
    (specifier,) = pin.specifier
    assert specifier.operator == "==", pin
    return specifier.version


@pytest.mark.parametrize(("lock", "extras"), LOCKS.items())
def test_a_lock_covers_every_direct_dependency(lock: str, extras: list[str]) -> None:
    pins = locked(lock)
    uncovered = [
        str(need)
        for need in asked(extras)
        if (pin := pins.get(canonicalize_name(need.name))) is None or version(pin) not in need.specifier
    ]
    assert uncovered == [], "run `make lock`"


@pytest.mark.parametrize("lock", LOCKS)
def test_the_locks_agree_on_versions(lock: str) -> None:
    everything = locked("dev.lock")
    assert {
        n: str(p) for n, p in locked(lock).items() if n in everything and version(p) != version(everything[n])
    } == {}


def test_the_core_install_is_small() -> None:
    machines = [{"sys_platform": "linux", "os_name": "posix", "platform_system": "Linux", "python_full_version": v,
                 "python_version": v.rpartition(".")[0]} for v in ("3.11.0", "3.13.0")]  # fmt: skip
    for machine in machines:
        pins = [n for n, pin in locked("core.lock").items() if pin.marker is None or pin.marker.evaluate(machine)]
        assert len(pins) + 1 <= MOST_IN_CORE, pins


def test_every_direct_dependency_has_its_reason() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text("utf-8")
    explained = {canonicalize_name(name): reason for name, reason in re.findall(r"^- `([\w.-]+)`: (.+\.)$", page, re.M)}
    direct = {canonicalize_name(need.name) for need in asked(list(EXTRAS))} | set(locked("bench-data.lock"))
    assert sorted(explained) == sorted(direct)
