"""Model names, as given on a command line."""

from __future__ import annotations

import importlib.util

import pytest

from tropa.errors import MissingExtra, UsageError
from tropa.model import Scripted, load_model


def test_a_model_is_given_back_as_it_is():
    model = Scripted([])
    assert load_model(model) is model


@pytest.mark.parametrize("spec", ["", "gpt", "openai", "openai:", "llama:", "needle:x", "openai:@http://h/v1"])
def test_an_unknown_name_lists_what_is_possible(spec):
    with pytest.raises(UsageError, match="`needle`, `openai:NAME`"):
        load_model(spec)


def test_a_missing_file_is_named():
    with pytest.raises(UsageError, match=r"no file 'none\.gguf'"):
        load_model("llama:none.gguf")


@pytest.mark.parametrize(("spec", "extra"), [("needle", "needle"), ("llama:x.gguf", "llama")])
def test_a_missing_extra_is_named_with_its_command(monkeypatch, spec, extra):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=rf"pip install 'tropa\[{extra}\]'"):
        load_model(spec)
