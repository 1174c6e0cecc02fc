"""Any GGUF file as a model, through llama.cpp's server on loopback."""

from tropa.model.llama.model import Llama
from tropa.model.llama.smollm2 import fetch_smollm2

__all__ = ["Llama", "fetch_smollm2"]
