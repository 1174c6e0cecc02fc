"""The child process that holds a llama.cpp server. Started as a plain file; imports only xllamacpp besides the standard library.

It reads one JSON line of settings (`folder` that holds xllamacpp, `path`, `context`, `threads`, `key`), serves on
`127.0.0.1` at a port the system picks, writes one line `{"url", "context", "tools"}`, and ends with its parent.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import sys
import urllib.request
from typing import Any


def serve(settings: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Load the model and start to serve; the server and what the parent needs to know of it."""
    sys.path.insert(0, settings["folder"])
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.n_ctx = settings["context"]
    params.n_parallel = 1  # several slots would share the context among them
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [settings["key"]]
    params.offline = True
    params.ui = False
    params.warmup = False
    server = xllamacpp.Server(params)
    url = server.listening_address
    request = urllib.request.Request(f"{url}/props", headers={"Authorization": f"Bearer {settings['key']}"})  # noqa: S310  # llama.cpp's own address
    with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
        props = json.load(response)
    tools = bool(props.get("chat_template_caps", {}).get("supports_tools"))
    return server, {"url": url, "context": props["default_generation_settings"]["n_ctx"], "tools": tools}


def main() -> None:
    """Serve until the parent closes the pipe or ends."""
    parent = os.getppid()
    # llama.cpp logs where it likes; the one line for the parent gets a descriptor of its own.
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    server, facts = serve(json.loads(sys.stdin.buffer.readline()))
    out.write(json.dumps(facts).encode() + b"\n")
    while os.getppid() == parent:
        if select.select([0], [], [], 2.0)[0] and not os.read(0, 1):
            break
    del server
    os._exit(0)


if __name__ == "__main__":
    main()
