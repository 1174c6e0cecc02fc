"""Shared by the tests of sessions."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def ram():
    """A folder in memory where the system has one: hundreds of small databases are made in it."""
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="tropa-", dir=shared if shared.is_dir() else None))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
