"""Arguments: plain first, then by the declared type, and errors that a model can act on."""

from __future__ import annotations

import json
from typing import Annotated, Literal, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_validator

from tropa.errors import InvalidArguments
from tropa.messages import dumps, loads
from tropa.tool import Tool, masked, tool


class Unit(BaseModel):
    name: str
    scale: float = 1.0


class Line(BaseModel):
    sku: str
    unit: Unit | None = None
    counts: list[int] = []


@tool
def total(values: list[int], unit: Unit): ...


@tool(strict=True)
def total_strictly(values: list[int], unit: Unit): ...


@tool
def order(lines: list[Line], note: str = "", priority: Literal["low", "high"] = "low", by: dict[str, Line] = {}): ...  # noqa: B006


def refusal(made: Tool, arguments) -> str:
    with pytest.raises(InvalidArguments) as caught:
        made.validate(arguments)
    return str(caught.value)


class TestDoubleEncoding:
    """A-01."""

    def test_structures_given_as_text_are_read(self):
        checked = total.validate({"values": "[7, 8]", "unit": '{"name": "m"}'})
        assert checked.native == {"values": [7, 8], "unit": Unit(name="m")}
        assert checked.canonical == {"values": [7, 8], "unit": {"name": "m"}}

    def test_at_any_depth(self):
        inner = json.dumps({"sku": "A", "unit": json.dumps({"name": "kg"}), "counts": "[1,2]"})
        native = order.validate({"lines": json.dumps([inner]), "by": {"x": inner}}).native
        line = Line(sku="A", unit=Unit(name="kg"), counts=[1, 2])
        assert native["lines"] == [line]
        assert native["by"] == {"x": line}

    def test_broken_text_is_the_ordinary_error_that_names_the_parameter(self):
        text = refusal(total, {"values": "[7, x", "unit": {"name": "m"}})
        assert text == "`values` is '[7, x', expected a valid array"

    def test_strict_switches_it_off(self):
        assert "`values`" in refusal(total_strictly, {"values": "[7]", "unit": {"name": "m"}})
        assert total_strictly.validate({"values": [7], "unit": {"name": "m"}}).native["values"] == [7]


class TestText:
    """A-02."""

    def test_text_that_looks_like_json_stays_text(self):
        @tool
        def save(body: str, tags: list[str] | str): ...

        for body, tags in (('{"k": [1]}', "[plain]"), ("[3]", '["y"]'), ("null", "[]"), (" 5 ", "7")):
            assert save.validate({"body": body, "tags": tags}).native == {"body": body, "tags": tags}

    def test_also_when_something_else_had_to_be_coerced(self):
        @tool
        def save(body: str, n: int, tags: list[str] | str): ...

        checked = save.validate({"body": "[1]", "n": "4", "tags": '["x"]'})
        assert checked.native == {"body": "[1]", "n": 4, "tags": '["x"]'}

    def test_a_number_is_not_text(self):
        assert "`note` is 5, expected a valid string" in refusal(order, {"lines": [], "note": 5})

    @given(st.text(), st.text())
    def test_every_text_arrives_byte_for_byte(self, body, other):
        @tool
        def save(body: str, other: str, n: int = 0): ...

        checked = save.validate({"body": body, "other": other, "n": "1"})
        assert checked.native == {"body": body, "other": other, "n": 1}
        assert checked.canonical == {"body": body, "other": other, "n": 1}

    def test_half_a_surrogate_pair_is_refused_by_name_where_pydantic_cannot_carry_it(self):
        assert "`lines[0].sku`" in refusal(order, {"lines": [{"sku": "\ud83d"}]})


class TestNull:
    """A-03."""

    def test_null_for_a_default_is_the_default_unless_null_is_a_value(self):
        @tool
        def search(q: str, limit: int = 25, lang: str | None = "de"): ...

        checked = search.validate({"q": "x", "limit": None, "lang": None})
        assert checked.native == {"q": "x", "limit": 25, "lang": None}
        assert refusal(search, {"q": None}) == "`q` is null, expected a valid string"

    def test_at_depth(self):
        native = order.validate({"lines": [{"sku": "A", "counts": None, "unit": None}]}).native
        assert native["lines"] == [Line(sku="A", unit=None, counts=[])]

    def test_of_a_raw_schema(self):
        made = Tool.from_schema(
            "t",
            "",
            {
                "type": "object",
                "properties": {
                    "q": {"type": "string"},
                    "n": {"type": "integer", "default": 3},
                    "m": {"type": "integer"},
                    "lang": {"type": ["string", "null"], "default": "en"},
                },
                "required": ["q"],
            },
            lambda arguments: arguments,
        )
        assert made.validate({"q": "x", "n": None, "m": None, "lang": None}).canonical == {
            "q": "x",
            "n": 3,
            "lang": None,
        }
        assert "`q`" in refusal(made, {"q": None})


class TestScalars:
    @pytest.mark.parametrize(
        ("given", "meant"), [("5", 5), ("-12", -12), (" 7 ", 7), (5.0, 5), ("5.0", 5), (2**70, 2**70)]
    )
    def test_integers(self, given, meant):
        @tool
        def f(n: int): ...

        checked = f.validate({"n": given})
        assert checked.native == {"n": meant}
        assert type(checked.canonical["n"]) is int

    @pytest.mark.parametrize("given", ["5.5", "five", "", "1e400", "0x10", True, [5], "9" * 5000])
    def test_not_integers(self, given):
        @tool
        def f(n: int): ...

        assert "`n`" in refusal(f, {"n": given})

    def test_booleans_and_numbers(self):
        @tool
        def f(flag: bool, x: float, maybe: int | None = 1): ...

        assert f.validate({"flag": "True", "x": "2.5e3", "maybe": "null"}).native == {
            "flag": True,
            "x": 2500.0,
            "maybe": None,
        }
        for wrong in ({"flag": "yes", "x": 1}, {"flag": 1, "x": 1}, {"flag": True, "x": "NaN"}):
            refusal(f, wrong)


class TestErrors:
    def test_several_are_joined_with_path_given_and_allowed(self):
        text = refusal(order, {"lines": [{"sku": 3, "counts": ["x"]}], "priority": "top", "nott": "a"})
        assert text == (
            "`lines[0].sku` is 3, expected a valid string; `lines[0].counts[0]` is 'x', expected a valid integer; "
            "`priority` is 'top', expected 'low' or 'high'; `nott` is not an argument; did you mean `note`?"
        )

    def test_a_missing_one_is_named(self):
        assert refusal(total, {"values": []}) == "`unit` is required and missing"
        assert refusal(order, {"lines": [{}]}) == "`lines[0].sku` is required and missing"

    def test_members_of_a_union_are_told_as_alternatives(self):
        @tool
        def f(x: int | list[int]): ...

        assert refusal(f, {"x": "q"}) == "`x` is 'q', expected a valid integer or a valid array"

    def test_long_and_many_are_cut(self):
        text = refusal(order, {"lines": [{"sku": 1}] * 50, "priority": "x" * 5000})
        assert len(text) < 700
        assert "and 46 more" in text

    def test_a_nested_name_that_nobody_declared_is_refused_not_dropped(self):
        assert refusal(order, {"lines": [{"sku": "A", "unit": {"name": "kg", "scal": 2.0}}]}) == (
            "`lines[0].unit.scal` is not an argument; did you mean `scale`?"
        )

    def test_a_nested_model_that_takes_more_says_so_and_may(self):
        class Free(BaseModel, extra="allow"):
            a: int = 0

        @tool
        def f(free: Free, either: Line | Unit | None = None): ...

        assert f.validate({"free": {"b": 1}, "either": {"name": "x"}}).native["free"].b == 1
        assert "`either.extra`" in refusal(f, {"free": {}, "either": {"name": "x", "extra": 1}})

    def test_members_of_typed_dicts_and_tagged_unions_are_named(self):
        class Size(TypedDict):
            width: int

        class Cat(BaseModel):
            kind: Literal["cat"]

        class Dog(BaseModel):
            kind: Literal["dog"]

        @tool
        def f(size: Size, pet: Annotated[Cat | Dog, Field(discriminator="kind")]): ...

        assert f.validate({"size": '{"width": "3"}', "pet": '{"kind": "dog"}'}).native == {
            "size": {"width": 3},
            "pet": Dog(kind="dog"),
        }
        assert refusal(f, {"size": {"width": 1, "widht": 2}, "pet": {"kind": "cow"}}) == (
            "`size.widht` is not an argument; did you mean `width`?; `pet.kind` is 'cow', expected one of 'cat', 'dog'"
        )

    def test_own_validators_speak(self):
        class Even(BaseModel):
            n: int

            @field_validator("n")
            @classmethod
            def even(cls, n: int) -> int:
                if n % 2:
                    raise ValueError(f"must be even, and {n} is odd")
                return n

        @tool
        def f(even: Even): ...

        assert refusal(f, {"even": {"n": 3}}) == "`even.n` must be even, and 3 is odd"

    def test_what_is_not_json_is_refused(self):
        text = refusal(order, {"lines": [], "note": float("nan")})
        assert "`note` is nan" in text
        open_schema = Tool.from_schema("t", "", {"type": "object", "additionalProperties": True}, print)
        assert "nan" in refusal(open_schema, {"x": [float("nan")]})


class TestSecrets:
    """J-05."""

    @tool(secret=["password"])
    def login(user: str, password: Annotated[str, Field(min_length=8)], pin: int = 0): ...

    def test_a_secret_is_never_in_an_error(self):
        text = refusal(self.login, {"user": 5, "password": "hunt3r"})
        assert "hunt3r" not in text
        assert "`password` is •••, expected" in text
        assert "`user` is 5" in text

    def test_nor_under_another_name_or_inside_another_value(self):
        text = refusal(self.login, {"user": "a", "password": "corr'ect", "pin": "pin of corr'ect"})
        assert "corr" not in text
        text = refusal(self.login, {"user": "a", "passwort": "s3cret!!"})
        assert "s3cret" not in text
        raw = Tool.from_schema(
            "t",
            "",
            {"type": "object", "properties": {"key": {"type": "string", "pattern": "^k"}}},
            print,
            secret=["key"],
        )
        assert "zzz-9" not in refusal(raw, {"key": "zzz-9"})

    def test_masked_shows_everything_else(self):
        given = {"user": "bob", "password": "hunt3r22", "passwort": "hunt3r22"}
        assert masked(self.login, given) == {"user": "bob", "password": "•••", "passwort": "•••"}
        assert masked(order, {"note": "x"}) == {"note": "x"}


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@tool
def mixed(
    n: int, x: float, text: str, flag: bool, items: list[int], line: Line, either: int | list[str] | None = None
): ...


as_text = st.booleans()
line_values = st.builds(
    lambda sku, counts: {"sku": sku, "counts": counts}, st.text().filter(str.isascii), st.lists(st.integers())
)
calls = st.fixed_dictionaries(
    {
        "n": st.integers() | st.integers(-(10**9), 10**9).map(str),
        "x": st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
        "text": st.text(),
        "flag": st.booleans() | st.sampled_from(["true", "false"]),
        "items": st.lists(st.integers()) | st.lists(st.integers()).map(json.dumps),
        "line": line_values | line_values.map(json.dumps),
    },
    optional={"either": st.none() | st.integers() | st.lists(st.text())},
)


@given(calls)
def test_the_canonical_form_validates_to_itself(call):
    first = mixed.validate(call)
    again = mixed.validate(first.canonical)
    assert again.canonical == first.canonical
    assert again.native == first.native
    assert loads(dumps(first.canonical)) == first.canonical


@given(st.dictionaries(st.sampled_from(["n", "x", "text", "flag", "items", "line", "either", "other"]), values))
def test_whatever_is_given_is_accepted_or_refused_shortly(call):
    try:
        checked = mixed.validate(call)
    except InvalidArguments as error:
        assert 0 < len(str(error)) < 1500
    else:
        assert set(checked.canonical) <= set(call)


@given(calls)
def test_what_is_given_is_never_changed_in_place(call):
    before = json.dumps(call)
    mixed.validate(call)
    assert json.dumps(call) == before
