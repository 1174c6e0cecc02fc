"""A GGUF file as a model, as far as no file is needed."""

from __future__ import annotations

import importlib.util
import json

import pytest

from tropa.errors import MissingExtra, ModelError, UsageError
from tropa.messages import user
from tropa.model import Request
from tropa.model.llama import Llama, fetch_smollm2
from tropa.model.llama.model import guided

pytestmark = pytest.mark.anyio


def test_a_missing_file_is_named():
    with pytest.raises(UsageError, match=r"no file 'none\.gguf'"):
        Llama("none.gguf")


async def test_without_llama_cpp_the_command_that_installs_it_is_named(tmp_path, monkeypatch):
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'tropa\[llama\]'"):
        await Llama(file).count(Request("", (user("hi"),)))


async def test_a_file_that_is_no_model_is_refused_in_llama_cpp_s_words(tmp_path):
    pytest.importorskip("xllamacpp", reason="the `llama` extra is not installed: pip install 'tropa[llama]'")
    file = tmp_path / "model.gguf"
    file.write_bytes(b"not a model")
    model = Llama(file)
    with pytest.raises(ModelError, match="could not load"):
        await model.count(Request("", (user("hi"),)))
    assert model.pid is None


def test_a_schema_becomes_a_grammar_without_free_white_space():
    sent = guided(Request("", (), output_schema={"type": "integer"}, options={"seed": 1}))
    head, _, schema = sent.options["grammar"].partition("start: %json ")
    assert (sent.output_schema, sent.options["seed"], head) == (None, 1, "%llguidance {}\n")
    assert json.loads(schema) == {"type": "integer", "x-guidance": {"whitespace_flexible": False, "lenient": True}}


def test_a_model_that_was_fetched_before_is_not_fetched_again(tmp_path, monkeypatch):
    there = tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf"
    there.write_bytes(b"GGUF")
    monkeypatch.setattr("subprocess.run", None)
    assert fetch_smollm2(tmp_path) == there
