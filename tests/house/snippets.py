"""Reads the fenced blocks of a Markdown page and runs them, so that no documentation lags behind the code.

What a fence may say:
- ```python                          is executed; all blocks of a page share their names, in order; `await` is allowed
- ```python test="slow"              is executed with the slow tests only
- ```python file="tools.py"          is written to that file, for the blocks after it to import or to run
- ```python no-run reason="..."      is not executed, and says why; not allowed in the README
- ```console                         each line `$ tropa ...` is executed and must exit with 0
- ```console exit=3                  ... the last of them with 3
- anything else (```text, ```sh ...) is for reading
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^`\n]*)\n(?P<code>.*?)^ *(?P=ticks)`* *$", re.M | re.S)
OPTION = re.compile(r"""([\w-]+)(?:=(?:"([^"]*)"|(\S+)))?""")
KNOWN = {"python": {"test", "file", "no-run", "reason"}, "console": {"exit", "test"}}


class SnippetError(AssertionError):
    """A block of a page is wrong; the message says where and how."""


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block. `line` is the number of its first line of code."""

    page: Path
    line: int
    language: str
    options: dict[str, str]
    code: str

    @property
    def slow(self) -> bool:
        return self.options.get("test") == "slow"

    @property
    def place(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page that are executed, in order; an unknown or unexplained option is an error."""
    text = page.read_text("utf-8")
    for match in FENCE.finditer(text):
        language, _, rest = match["info"].strip().partition(" ")
        if language not in KNOWN:
            continue
        options = {key: quoted or bare for key, quoted, bare in OPTION.findall(rest)}
        indent = len(match["indent"])
        code = "".join(
            line[min(indent, len(line) - len(line.lstrip(" "))) :] for line in match["code"].splitlines(True)
        )
        block = Block(page, text.count("\n", 0, match.start("code")) + 1, language, options, code)
        if unknown := set(options) - KNOWN[language]:
            raise SnippetError(f"{block.place}: unknown option {sorted(unknown)} on a {language} block")
        if "no-run" in options:
            if page.name == "README.md":
                raise SnippetError(f"{block.place}: every block of the README is executed; remove `no-run`")
            if not options.get("reason"):
                raise SnippetError(f'{block.place}: `no-run` needs its reason: no-run reason="..."')
            continue
        yield block


def run_page(page: Path, *, slow: bool) -> int:
    """Execute the blocks of a page in the current folder, the slow ones only if asked; returns how many ran."""
    module = ModuleType(f"snippets_{page.stem}".replace("-", "_"))
    sys.modules[module.__name__] = module  # dataclasses and pydantic look their module up
    ran = 0
    sys.path.insert(0, str(Path.cwd()))
    try:
        with asyncio.Runner() as runner:
            for block in blocks(page):
                if block.slow and not slow:
                    continue
                run_console(block) if block.language == "console" else run_python(block, module, runner)
                ran += 1
    finally:
        sys.path.remove(str(Path.cwd()))
        del sys.modules[module.__name__]
    return ran


def run_python(block: Block, module: ModuleType, runner: asyncio.Runner) -> None:
    """Execute a block in the names of its page; line numbers in errors are those of the page."""
    padded = "\n" * (block.line - 1) + block.code
    code = compile(padded, str(block.page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if name := block.options.get("file"):
        Path(name).write_text(block.code, "utf-8")
        return
    result = eval(code, module.__dict__)
    if inspect.iscoroutine(result):
        runner.run(result)


def run_console(block: Block) -> None:
    """Execute the `$ tropa` lines of a block, without a terminal, and compare their exit codes."""
    commands = [line[2:] for line in block.code.splitlines() if line.startswith("$ tropa")]
    scripts = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{scripts}{os.pathsep}{os.environ.get('PATH', '')}", "NO_COLOR": "1"}
    for number, command in enumerate(commands, start=1):
        expected = int(block.options.get("exit", "0")) if number == len(commands) else 0
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment,
            timeout=100,
        )
        if done.returncode != expected:
            raise SnippetError(
                f"{block.place}: `{command}` exited with {done.returncode}, not {expected}:\n{done.stdout}{done.stderr}"
            )
