"""Tool results as parts of a message: nothing is changed without a visible mark."""

from __future__ import annotations

import enum
import math
from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from tropa.errors import NotStorable
from tropa.messages import Data, Media, Text, dumps, loads
from tropa.tool import to_parts


class Size(enum.Enum):
    SMALL = 1


class Word(enum.StrEnum):
    YES = "yes"


@dataclass
class Point:
    x: float
    label: Any = None


class Box(BaseModel):
    points: list[Point]
    size: Size = Size.SMALL


class Pair(NamedTuple):
    a: int
    b: int


def data(value):
    [part] = to_parts(value)
    assert isinstance(part, Data)
    assert loads(dumps(part.value)) == part.value
    return part.value


def test_text_media_and_bytes():
    image = Media("image/png", b"\x89PNG", "plot.png")
    assert to_parts("a\x00\ud800b") == (Text("a\x00\ud800b"),)
    assert to_parts("") == (Text(""),)
    assert to_parts(image) == (image,)
    assert to_parts(b"\x00\xff") == (Media("application/octet-stream", b"\x00\xff"),)
    assert to_parts(["see:", image, {"n": 1}]) == (Text("see:"), image, Data({"n": 1}))
    assert to_parts({"plot": image, "n": 1}) == (Data({"plot": "[attached: plot.png]", "n": 1}), image)


def test_nan_and_the_infinities_are_told_apart_and_strict_json():
    """A-07."""
    value = data({"n": 0, "mean": math.nan, "max": math.inf, "rows": [-math.inf], "p": Point(math.nan)})
    assert value == {"n": 0, "mean": "NaN", "max": "Infinity", "rows": ["-Infinity"], "p": {"x": "NaN", "label": None}}
    assert data(math.nan) == "NaN"
    assert data(Box(points=[Point(math.inf)]))["points"] == [{"x": "Infinity", "label": None}]


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (2**64 + 1, 2**64 + 1),
        (-(10**40), -(10**40)),
        (True, True),
        (Size.SMALL, 1),
        (Word.YES, "yes"),
        ({"w": Word.YES}, {"w": "yes"}),
        (Point(1.5, {"k": (1, 2)}), {"x": 1.5, "label": {"k": [1, 2]}}),
        (Box(points=[Point(1, "a")]), {"points": [{"x": 1.0, "label": "a"}], "size": 1}),
        (date(2024, 1, 2), "2024-01-02"),
        ([datetime(2024, 1, 2, 3, tzinfo=UTC)], ["2024-01-02T03:00:00+00:00"]),
        (Decimal("1.10"), "1.10"),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        (Pair(1, 2), [1, 2]),
        (deque([1]), [1]),
        (OrderedDict(a=1), {"a": 1}),
        (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (PurePosixPath("/a/b"), "/a/b"),
        ({1: "a", None: "b", True: "c", date(2024, 1, 2): "d", (1, 2): "e"}, None),
    ],
)
def test_values_of_many_types(value, plain):
    if plain is None and value is not None:
        plain = {"1": "c", "null": "b", "2024-01-02": "d", "1, 2": "e"}
    assert data(value) == plain


def test_two_keys_of_one_text_are_refused_not_overwritten():
    with pytest.raises(NotStorable, match="two keys"):
        to_parts({1: "a", "1": "b"})


class Array:
    def tolist(self):
        return [1, math.nan]


def test_arrays_of_other_libraries():
    assert data({"a": Array()}) == {"a": [1, "NaN"]}


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": {"b": [1, object()]}}, "result.a.b[1]"),
        ([Point(1, object())], "result[0].label"),
        (iter([1]), "result"),
        ({"f": lambda: 1}, "result.f"),
        ([b"x", object()], "result[1]"),
    ],
    ids=["dict", "dataclass", "iterator", "function", "beside media"],
)
def test_what_cannot_be_described_is_named_by_path_and_type(value, path):
    with pytest.raises(NotStorable) as caught:
        to_parts(value)
    assert f"`{path}` is of type `" in str(caught.value)


def test_what_contains_itself_is_refused():
    loop: list = []
    loop.append(loop)
    with pytest.raises(NotStorable, match="contains itself"):
        to_parts(loop)
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(NotStorable, match="nested"):
        to_parts(deep)
    shared = [1]
    assert data([shared, shared]) == [[1], [1]]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(json_values)
def test_json_comes_out_as_it_went_in(value):
    expected = Text(value) if isinstance(value, str) else Data(value)
    assert to_parts(value) == (expected,)


@given(
    st.recursive(
        st.floats() | st.text(), lambda i: st.lists(i) | st.dictionaries(st.integers() | st.text(), i), max_leaves=9
    )
)
def test_anything_is_strict_json_or_refused(value):
    try:
        parts = to_parts(value)
    except NotStorable:
        return
    for part in parts:
        if isinstance(part, Data):
            assert loads(dumps(part.value)) == part.value
