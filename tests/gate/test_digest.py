"""What an approval is bound to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tropa.gate import call_digest, canonical, proposal_id, sha256

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_every_json_value_has_a_canonical_form(value):
    assert canonical(value) == canonical(value)


def test_the_order_of_keys_does_not_matter_and_every_value_does():
    assert sha256({"x": 1, "y": [2]}) == sha256({"y": [2], "x": 1})
    assert sha256({"x": 1}) != sha256({"x": "1"})
    assert sha256({"x": 2**53}) != sha256({"x": 2**53 + 1})
    assert sha256({"x": "\ud800"}) != sha256({"x": "\ud801"})
    assert sha256({"x": "\0int"}) != sha256({"x": {"\0int": "1"}})
    assert sha256({"\0int": str(2**60)}) != sha256(2**60)
    assert sha256({"\ud800": 1}) != sha256({"\0eda080": 1})


def test_thread_call_tool_version_and_arguments_each_change_the_digest():
    same = call_digest("t", "c1", "pay", "v1", {"amount": 5})
    others = [
        call_digest("u", "c1", "pay", "v1", {"amount": 5}),
        call_digest("t", "c2", "pay", "v1", {"amount": 5}),
        call_digest("t", "c1", "pays", "v1", {"amount": 5}),
        call_digest("t", "c1", "pay", "v2", {"amount": 5}),
        call_digest("t", "c1", "pay", "v1", {"amount": 6}),
    ]
    assert len({same, *others}) == 6
    assert same.startswith(proposal_id(same))
