"""Every block of code in the README and in docs/ is executed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.house.snippets import SnippetError, blocks, run_page

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SLOW_PAGES = [page for page in PAGES if any(block.slow for block in blocks(page))]
LINK = re.compile(r"\]\((?!\w+:|#)([^)\s#]+)")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page, slow=False)


@pytest.mark.slow
def test_the_pages_with_slow_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for page in SLOW_PAGES:
        folder = tmp_path / page.stem
        folder.mkdir()
        monkeypatch.chdir(folder)
        run_page(page, slow=True)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=name)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    targets = LINK.findall(page.read_text("utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_readme_sets_up_with_exactly_two_commands() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert re.findall(r"^\$ (make .*?)\s*(?:#.*)?$", text, re.M) == ["make demo", "make test"]


def page_of(folder: Path, text: str, title: str = "page.md") -> Path:
    page = folder / title
    page.write_text(text, "utf-8")
    return page


def test_blocks_share_their_names_and_may_await(tmp_path: Path) -> None:
    page = page_of(
        tmp_path,
        """
```python
import asyncio
from dataclasses import dataclass
seen = []
```
- in a list:
  ```python
  await asyncio.sleep(0)
  seen.append("awaited")
  ```
```python
assert seen == ["awaited"]
```
""",
    )
    assert run_page(page, slow=False) == 3


def test_a_failing_block_is_reported_at_its_line_of_the_page(tmp_path: Path) -> None:
    page = page_of(tmp_path, "# Title\n\n```python\nx = 1\nassert x == 2\n```\n")
    with pytest.raises(AssertionError) as caught:
        run_page(page, slow=False)
    assert (caught.traceback[-1].path, caught.traceback[-1].lineno + 1) == (page, 5)


def test_slow_blocks_wait_for_the_slow_tests(tmp_path: Path) -> None:
    page = page_of(tmp_path, '```python\nx = 1\n```\n```python test="slow"\nassert x == 2\n```\n')
    assert run_page(page, slow=False) == 1
    with pytest.raises(AssertionError):
        run_page(page, slow=True)


def test_a_block_with_a_file_name_is_written_for_the_next_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = page_of(tmp_path, '```python file="shelf.py"\nBOOKS = 3\n```\n```python\nfrom shelf import BOOKS\n```\n')
    assert run_page(page, slow=False) == 2


@pytest.mark.parametrize(
    ("title", "text", "complaint"),
    [
        ("README.md", '```python no-run reason="needs a key"\n1\n```\n', "remove `no-run`"),
        ("guide.md", "```python no-run\n1\n```\n", "needs its reason"),
        ("guide.md", "```python tset=slow\n1\n```\n", "tset"),
        ("guide.md", "```console\n$ tropa-of-another-name\n```\n", "exited with 127, not 0"),
        ("guide.md", "```console exit=3\n$ tropa-of-another-name\n```\n", "exited with 127, not 3"),
    ],
)
def test_a_wrong_block_is_refused(tmp_path: Path, title: str, text: str, complaint: str) -> None:
    with pytest.raises(SnippetError, match=complaint):
        run_page(page_of(tmp_path, text, title), slow=False)


def test_the_last_command_of_a_console_block_may_exit_as_announced(tmp_path: Path) -> None:
    page = page_of(
        tmp_path, "```console exit=127\n$ tropa-of-another-name\nsome output\n$ ls\n```\n```text\n$ x\n```\n"
    )
    assert run_page(page, slow=False) == 1


def test_an_unexecuted_block_says_why(tmp_path: Path) -> None:
    assert run_page(page_of(tmp_path, '```python no-run reason="needs a key"\n1/0\n```\n'), slow=True) == 0
