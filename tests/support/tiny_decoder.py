"""Decoders of model files, without an engine around them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from octavo_engine.inspection import checkpoint_of, read_model
from octavo_engine.models.decoder import Decoder
from octavo_engine.models.weights.loader import load_decoder


def decoder_of(path: Path, **options: Any) -> Decoder:
    """Load the model at `path`; `options` go to `load_decoder`."""
    return load_decoder(checkpoint_of(read_model(path)), **options)
