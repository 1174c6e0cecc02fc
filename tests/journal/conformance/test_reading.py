"""Reading: pages, order, limits, large texts, state at any point."""

from __future__ import annotations

import hashlib

import pytest

from tests.journal.build import AGENT, DEFINITION, collect, field, finished, rows, started, turn, user
from tropa.errors import CorruptStore, ThreadNotFound
from tropa.events import NewEvent

pytestmark = pytest.mark.anyio


async def test_pages_limits_and_order_agree(journal):
    kinds = ["even", "odd"]
    await journal.append("t", 0, [NewEvent(kinds[n % 2], {"n": n}) for n in range(1, 1206)])
    everything = await collect(journal.events("t"))
    assert [event.body["n"] for event in everything] == list(range(1, 1206))
    assert await collect(journal.events("t", newest_first=True)) == everything[::-1]
    assert await collect(journal.events("t", after=3, until=1100)) == everything[3:1100]
    assert await collect(journal.events("t", newest_first=True, limit=10)) == everything[:-11:-1]
    assert await collect(journal.events("t", limit=600)) == everything[:600]
    assert await collect(journal.events("t", kinds=("odd",), limit=550)) == everything[::2][:550]
    assert (
        await collect(journal.events("t", kinds=("odd",), newest_first=True, after=1000)) == everything[1000::2][::-1]
    )
    assert await collect(journal.events("t", limit=0)) == []
    assert await collect(journal.events("t", after=9999)) == []
    assert await collect(journal.events("t", until=0)) == []
    assert await collect(journal.events("nobody")) == []


async def test_times_are_those_of_the_append_and_never_empty(journal):
    await turn(journal, "t")
    times = [event.time for event in await collect(journal.events("t"))]
    assert times == sorted(times)
    head = await journal.head("t")
    assert (head.opened, head.updated) == (times[0], times[-1])


async def test_state_at_every_point(journal):
    await turn(journal, "t", 0, fields=[field("language", "Spanish")])
    await turn(journal, "t", 1, fields=[field("notes", ["a"], "append")])
    await turn(journal, "t", 2, fields=[field("language", "German"), field("notes", ["b"], "append")])
    seen = [((await journal.state("t", at)).fields, len((await journal.state("t", at)).messages)) for at in (6, 11, 17)]
    assert seen == [
        ({"language": "Spanish"}, 2),
        ({"language": "Spanish", "notes": ["a"]}, 4),
        ({"language": "German", "notes": ["a", "b"]}, 6),
    ]
    assert await journal.fields("t") == (await journal.state("t")).fields == seen[-1][0]


async def test_a_large_text_is_stored_once_wherever_it_stands(journal):
    large = "p" * 40_000
    await turn(journal, "a", fields=[field("page", large), field("pages", [large, {"again": large}, "small"])])
    await turn(journal, "b", text=large)
    assert rows(journal, "SELECT count(*) FROM tropa_blobs") == [(2,)]  # the page, and the agent's definition
    assert (await journal.state("a")).fields == {"page": large, "pages": [large, {"again": large}, "small"]}
    assert (await journal.state("b")).messages[0].parts[0].text == large
    assert await journal.verify("a") == 7


async def test_a_body_that_looks_like_a_reference_is_data(journal):
    body = {"blobs": [["message"], "ab" * 32], "text": None, "sha256": AGENT}
    await journal.append("t", 0, [NewEvent("x.y", body)])
    assert (await collect(journal.events("t")))[0].body == body


async def test_texts_are_found_by_their_hash_and_nothing_else(journal):
    odd = "nul \0 lone \ud800"
    digest = hashlib.sha256(odd.encode("utf-8", "surrogatepass")).hexdigest()
    await journal.append("t", 0, [started()], texts={AGENT: DEFINITION, digest: odd})
    assert await journal.text(AGENT) == DEFINITION
    assert await journal.text(digest) == odd
    with pytest.raises(CorruptStore, match="missing"):
        await journal.text("0" * 64)


async def test_threads_and_runs_are_listed_newest_first(journal):
    for name in ("a", "b", "c"):
        await turn(journal, name)
    await journal.append("a", 5, [started("r2"), user()])
    assert [(head.thread, head.status) for head in await journal.threads()] == [
        ("a", "running"),
        ("c", "completed"),
        ("b", "completed"),
    ]
    assert [head.thread for head in await journal.threads(status="running")] == ["a"]
    assert [head.thread for head in await journal.threads(status="completed", limit=1)] == ["c"]
    assert [(row.thread, row.status) for row in await journal.runs(limit=2)] == [("a", "running"), ("c", "completed")]
    last = (await journal.runs("b"))[0]
    assert (last.stop, last.input, last.output, last.cost) == ("answered", 9, 4, 0.002)
    assert last.finished >= last.started


async def test_a_resumed_run_keeps_its_start(journal):
    await turn(journal, "t")
    before = (await journal.runs("t"))[0]
    await journal.append("t", 5, [NewEvent("run.resumed", {})])
    again = (await journal.runs("t"))[0]
    assert (again.started, again.status, again.finished, again.stop) == (before.started, "running", None, None)
    await journal.append("t", 6, [finished("failed", "error")])
    assert await journal.verify("t") == 7


async def test_what_is_not_there_is_said(journal):
    for work in (journal.state("no"), journal.verify("no"), journal.fork("no", 1, "x"), journal.delete("no")):
        with pytest.raises(ThreadNotFound, match="no thread 'no'"):
            await work
    with pytest.raises(ThreadNotFound):
        await collect(journal.export("no"))
