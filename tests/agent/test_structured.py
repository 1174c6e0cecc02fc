"""Answers of a type: validated, asked again, given up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import Enum

import pytest
from pydantic import BaseModel, ConfigDict

from tropa import Agent
from tropa import open as open_store
from tropa.model import Reply
from tropa.model.scripted import Scripted

pytestmark = pytest.mark.anyio


class Mode(Enum):
    SEA = "sea"
    ROAD = "road"


class Plan(BaseModel):
    model_config = ConfigDict(strict=True)
    day: date
    mode: Mode
    boxes: tuple[int, ...] = ()


GOOD = '{"day": "2026-03-01", "mode": "sea", "boxes": [1, 2]}'


async def test_an_answer_that_fits_comes_back_as_its_type():
    model = Scripted([f"```json\n{GOOD}\n```"])
    run = await Agent("p", model=model, output=Plan).run("plan it")
    assert run.ok
    assert run.output == Plan(day=date(2026, 3, 1), mode=Mode.SEA, boxes=(1, 2))
    assert model.requests[0].output_schema["properties"].keys() == {"day", "mode", "boxes"}


async def test_an_answer_that_does_not_fit_is_asked_for_again_with_what_is_wrong():
    model = Scripted(["on Monday", '{"day": "soon", "mode": "sea"}', GOOD])
    run = await Agent("p", model=model, output=Plan).run("plan it")
    assert run.ok
    notice = model.requests[2].messages[-1].text
    assert "`day`" in notice


async def test_after_its_retries_the_run_fails_and_says_why_and_can_be_resumed(tmp_path):
    bad = Scripted(["no", "no", "no"])
    run = await Agent("p", model=bad, output=Plan).run("plan it", store=tmp_path / "s.db", thread="t")
    assert (run.status, run.stop, run.ok) == ("failed", "error", False)
    assert "3 replies" in run.error
    run = await Agent("p", model=Scripted([GOOD]), output=Plan).resume("t", store=tmp_path / "s.db")
    assert run.output.mode is Mode.SEA


async def test_half_a_document_is_truncated_not_invalid():
    run = await Agent("p", model=Scripted([Reply(GOOD[:20], finish="length")]), output=Plan).run("plan it")
    assert (run.stop, run.output) == ("truncated", None)


async def test_the_value_is_the_same_when_the_run_is_read_again():
    @dataclass(frozen=True)
    class Pair:
        left: int
        right: float

    one = Agent("p", model=Scripted(['{"left": 1, "right": 0.5}']), output=Pair)
    async with open_store(":memory:") as store:
        run = await one.run("x", store=store, thread="t")
        again = await one.resume("t", store=store)
    assert run.output == again.output == Pair(1, 0.5)
