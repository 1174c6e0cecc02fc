"""From the name of a model, as given on a command line, to a `Model`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from tropa.errors import MissingExtra, UsageError
from tropa.model.protocol import Model

POSSIBLE = (
    "`needle`, `openai:NAME`, `openai:NAME@BASE_URL` (such as `openai:qwen3@http://localhost:8080/v1`) "
    "or `llama:PATH.gguf`"
)


def load_model(spec: str | Model) -> Model:
    """The model that `spec` names; a `Model` is given back as it is.

    `openai:NAME` honours `OPENAI_BASE_URL` and `OPENAI_API_KEY`. Nothing is downloaded and no request is sent.

    Raises `UsageError` on a name that means nothing, with all that would, and `MissingExtra` with the command that
    installs what is missing.
    """
    if not isinstance(spec, str):
        return spec
    kind, _, rest = spec.partition(":")
    if spec == "needle":
        _need("needle", "needle")
        from tropa.model.needle import Needle  # noqa: PLC0415  # only who asks for it pays for it

        return Needle()
    if kind == "openai" and rest:
        name, scheme, url = rest.partition("@http")
        if not name:
            raise UsageError(f"model {spec!r} names a server but no model; write {POSSIBLE}")
        from tropa.model.openai import OpenAI  # noqa: PLC0415  # only who asks for it pays for it

        return OpenAI(name, base_url="http" + url if scheme else None)
    if kind == "llama" and rest:
        _need("xllamacpp", "llama")
        if not Path(rest).is_file():
            raise UsageError(f"model {spec!r}: there is no file {rest!r}; give the path of a GGUF file")
        from tropa.model.llama import Llama  # noqa: PLC0415  # only who asks for it pays for it

        return Llama(rest)
    raise UsageError(f"model {spec!r} is not known; possible are {POSSIBLE}")


def _need(module: str, extra: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise MissingExtra(f"the `{extra}` model is not installed; install it with: pip install 'tropa[{extra}]'")
