"""Loads models of other architectures through transformers, and proves that pages give the same logits.

Loads transformers, from local safetensors files only: no pickles, no code of the model's, no network.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from octavo_engine.errors import LoadCancelled, ModelLoadError
from octavo_engine.models.fallback.attention import NAME, LayerCall, Recording, masks_told, register, running
from octavo_engine.models.fallback.decoder import TransformersDecoder
from octavo_engine.models.forward_batch import ForwardBatch
from octavo_engine.models.specification.architecture import BY_MODEL_TYPE

Progress = Callable[[str, int, int], bool | None]

# A text for the proof, read in two chunks that cross a page.
_PROOF = 20
_CUT = 17
_TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.1}
_LAYER_TYPES = frozenset({"full_attention", "sliding_attention"})


def transformers_obstacle(config: Mapping[str, Any]) -> str | None:
    """Why transformers cannot run a model either, by its config.json; None where it may. Imports transformers.

    The answer names the architecture and the nearest ones that run.
    """
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    kind = config.get("model_type")
    if isinstance(kind, str) and kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return None
    known = sorted({*BY_MODEL_TYPE, *MODEL_FOR_CAUSAL_LM_MAPPING_NAMES})
    near = difflib.get_close_matches(str(kind), known, n=4, cutoff=0.3) or sorted(BY_MODEL_TYPE)
    return (
        f"The model's architecture is {kind!r}, which neither Octavo nor transformers runs as a language model. The "
        f"nearest that run are: {', '.join(near)}."
    )


def load_transformers_decoder(
    folder: Path,
    *,
    dtype: Literal["float32", "bfloat16"],
    max_context: int | None,
    progress: Progress | None,
) -> TransformersDecoder:
    """Load a model and prove it.

    Args:
        folder: a Hugging Face folder.
        dtype: of weights, activations and KV pages.
        max_context: positions that a sequence may have; None for as many as the model states.
        progress: called with ("weights", bytes done, bytes in all), as far as tensors tell; returning False cancels.

    Raises:
        ModelLoadError: the files are damaged, the model is none that transformers loads, or pages cannot hold it.
        LoadCancelled: `progress` returned False.
    """
    from transformers import AutoModelForCausalLM

    register()
    kind = _model_type(folder)
    with _reported(progress, sum(file.stat().st_size for file in folder.glob("*.safetensors"))), _explained(kind):
        model, found = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=getattr(torch, dtype),
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            attn_implementation="eager",
            output_loading_info=True,
        )
        _check_tensors(found)
        model.eval()
    config = model.config.get_text_config()
    stated = int(getattr(config, "max_position_embeddings", 0) or 0) or 2048
    context = min(stated, max_context or stated)
    with _explained(kind):
        _check_layers(config)
        _fix_rotation(model, context)
        expected = _own_logits(model)
        model.set_attn_implementation(NAME)
        decoder = TransformersDecoder(model, _recorded(model), vocab_size=expected.shape[-1], context_length=context)
        _prove(decoder, expected)
    return decoder


def _model_type(folder: Path) -> str:
    from octavo_engine.models.files.folder_checkpoint import read_json

    return str(read_json(folder / "config.json").get("model_type"))


@contextmanager
def _explained(kind: str) -> Iterator[None]:
    """Say which architecture it was that failed."""
    try:
        yield
    except LoadCancelled:
        raise
    except ModelLoadError as error:
        raise ModelLoadError(
            f"The model's architecture {kind!r} cannot run on KV pages: {error.message} Octavo's own decoder runs: "
            f"{', '.join(sorted(BY_MODEL_TYPE))}."
        ) from error
    # Whatever a library raises that is given files of unknown origin.
    except Exception as fault:
        raise ModelLoadError(
            f"The model's architecture is {kind!r}, and transformers cannot load it: {str(fault)[:300]} Octavo's own "
            f"decoder runs: {', '.join(sorted(BY_MODEL_TYPE))}."
        ) from fault


@contextmanager
def _reported(progress: Progress | None, nbytes: int) -> Iterator[None]:
    """Pass on what transformers tells its progress bars."""
    from transformers.utils import logging

    def bar(_factory: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        items = args[0] if args else kwargs.get("iterable", ())
        return _Counted(items, progress, nbytes)

    before = logging.set_tqdm_hook(bar)
    try:
        yield
    finally:
        logging.set_tqdm_hook(before)


class _Counted:
    """Stands for a progress bar over items."""

    def __init__(self, items: Iterable[Any], progress: Progress | None, nbytes: int) -> None:
        self._items = list(items)
        self._nbytes = nbytes
        self._progress = progress

    def __iter__(self) -> Iterator[Any]:
        for done, item in enumerate(self._items):
            self._tell(done)
            yield item
        self._tell(len(self._items))

    def _tell(self, done: int) -> None:
        nbytes = self._nbytes * done // max(1, len(self._items))
        if self._progress is not None and self._progress("weights", nbytes, self._nbytes) is False:
            raise LoadCancelled(
                f"Loading was cancelled after about {nbytes:,} of {self._nbytes:,} bytes.",
                needed=self._nbytes,
                available=nbytes,
            )

    def __enter__(self) -> _Counted:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def __getattr__(self, _name: str) -> Callable[..., None]:
        return lambda *_args, **_kwargs: None


def _check_tensors(found: Mapping[str, Any]) -> None:
    """What is missing, transformers makes up."""
    for what in ("missing_keys", "mismatched_keys"):
        if found.get(what):
            raise ModelLoadError(f"the tensor {min(map(str, found[what]))!r} is missing or has another shape.")


def _check_layers(config: Any) -> None:
    odd = set(getattr(config, "layer_types", None) or ()) - _LAYER_TYPES
    if odd:
        raise ModelLoadError(f"it has layers of the kind {min(odd)!r}.")


def _fix_rotation(model: torch.nn.Module, context: int) -> None:
    """Choose stretched rotations once, for the context of the engine: pages of two choices would not fit together."""
    for module in model.modules():
        kind = getattr(module, "rope_type", None)
        if not hasattr(module, "original_inv_freq") or kind not in ("dynamic", "longrope"):
            continue
        module(torch.zeros(1), torch.tensor([[context - 1]]))
        module.rope_type = "default"  # type: ignore[assignment]  # a plain attribute that steers transformers' wrapper


def _tokens(model: torch.nn.Module) -> torch.Tensor:
    rows = model.get_input_embeddings().weight.shape[0]  # type: ignore[operator]  # every model has this method
    return torch.from_numpy(np.random.default_rng(0).integers(0, rows, _PROOF))


@torch.inference_mode()
def _own_logits(model: torch.nn.Module) -> torch.Tensor:
    """Logits of the proof's text by transformers alone, float32 [tokens, vocabulary]."""
    logits: torch.Tensor = model(input_ids=_tokens(model)[None], use_cache=False).logits[0]
    return logits.float()


@torch.inference_mode()
def _recorded(model: Any) -> Mapping[int, LayerCall]:
    recording = Recording()
    with running(recording), masks_told():
        model(input_ids=_tokens(model)[None, :2], position_ids=torch.arange(2)[None], use_cache=False)
    if recording.oddities:
        raise ModelLoadError(f"{min(recording.oddities)}.")
    if sorted(recording.layers) != list(range(len(recording.layers))) or not recording.layers:
        raise ModelLoadError("not all of its layers attend through the interface of transformers.")
    return recording.layers


def _prove(decoder: TransformersDecoder, expected: torch.Tensor) -> None:
    """Refuse what would give wrong answers: the text in two chunks over pages against transformers alone."""
    page_size = 16
    kv = torch.full(decoder.kv_shape(3, page_size), torch.nan, dtype=decoder.kv_dtype)
    tokens = _tokens(decoder._model).numpy().astype(np.int32)  # noqa: SLF001  # the proof belongs to the making of it
    parts = []
    for start, stop in ((0, _CUT), (_CUT, _PROOF)):
        positions = np.arange(start, stop, dtype=np.int32)
        parts.append(
            decoder.forward(
                ForwardBatch(
                    token_ids=tokens[start:stop],
                    positions=positions,
                    # Page 2, then page 0.
                    slots=np.where(positions < page_size, 2 * page_size + positions, positions - page_size).astype(
                        np.int64
                    ),
                    query_starts=np.array([0, stop - start], np.int32),
                    context_lengths=np.array([stop], np.int32),
                    page_table=np.array([[2, 0]], np.int32),
                    logit_rows=np.arange(stop - start, dtype=np.int32),
                ),
                kv,
            )
        )
    ours = torch.cat(parts)
    wrong = (ours - expected).abs().amax(-1) / expected.abs().amax(-1)
    # In bfloat16 a rounding may choose another expert for a token, and what follows differs; most tokens must not.
    off = wrong.max() if decoder.kv_dtype == torch.float32 else wrong.median()
    if not off <= _TOLERANCE[decoder.kv_dtype]:
        raise ModelLoadError(f"its logits over pages are off by {float(off):.1e} of the largest.")
