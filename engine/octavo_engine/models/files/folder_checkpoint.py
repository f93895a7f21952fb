"""Opens a Hugging Face folder as a checkpoint: config.json and safetensors files. Loads no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from octavo_engine.errors import ModelLoadError
from octavo_engine.models.files.checkpoint import Checkpoint
from octavo_engine.models.files.hugging_face_names import module_name
from octavo_engine.models.files.quantized_checkpoint import Quantization, quantization_of
from octavo_engine.models.files.safetensors_header import read_safetensors
from octavo_engine.models.files.stored import Matrix, Stack, Stored, TensorInfo
from octavo_engine.models.specification.from_config import config_specification
from octavo_engine.models.specification.model_spec import ModelSpec, Unsupported, check_specification

MAX_JSON_BYTES = 64 << 20
_INDEX = "model.safetensors.index.json"
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
# Constants that are computed, and parts that only pictures need.
_IGNORED_ENDS = (".rotary_emb.inv_freq", ".masked_bias", ".attn.bias")
_IGNORED_PARTS = ("vision_tower.", "vision_model.", "multi_modal_projector.", "visual.")


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """What lies in a folder.

    Attributes:
        config: content of config.json.
        tensors: by the names of the checkpoint; `TensorInfo.file` counts in `files`.
        files: the safetensors files.
    """

    path: Path
    config: Mapping[str, Any]
    tensors: Mapping[str, TensorInfo]
    files: tuple[Path, ...]

    @property
    def sources(self) -> tuple[Path, ...]:
        """The files that decide what the model computes."""
        return (*self.files, self.path / "config.json")

    @property
    def file_bytes(self) -> int:
        """Size of all safetensors files."""
        return sum(file.stat().st_size for file in self.files)


def read_folder(path: Path) -> ModelFolder:
    """Read configuration and headers.

    Raises:
        ModelLoadError: no model, pickle files only, or damaged or missing files.
    """
    if not path.is_dir():
        raise ModelLoadError(f"There is no folder at {path}. Choose another model.")
    config = read_json(path / "config.json")
    files = _files(path)
    tensors: dict[str, TensorInfo] = {}
    for number, file in enumerate(files):
        tensors |= read_safetensors(file, number)
    return ModelFolder(path, config, tensors, files)


def folder_checkpoint(folder: ModelFolder) -> Checkpoint:
    """The checkpoint in a folder.

    Raises:
        ModelLoadError: an architecture, variant or format that Octavo's own decoder does not run, or damaged files.
    """
    spec = config_specification(folder.config)
    found = _Found(folder, spec)
    tensors = {name: found.stored(name) for name in spec.tensors()}
    tensors |= {name: found.stored(name) for name in spec.biases() if found.has(name)}
    unknown = found.unknown()
    if unknown:
        raise Unsupported(
            f"The model has a part that Octavo's own decoder does not compute: the tensor {min(unknown)!r}."
        )
    check_specification(spec, {name: stored.shape for name, stored in tensors.items()})
    return Checkpoint(spec, tensors, folder.files, spec.architecture.norm_offset)


def read_json(path: Path) -> Mapping[str, Any]:
    """A JSON object from a file that nobody vouches for.

    Raises:
        ModelLoadError: missing, too large, or not an object.
    """
    try:
        size = path.stat().st_size
        if size > MAX_JSON_BYTES:
            raise ModelLoadError(
                f"{path.name} has {size:,} bytes, too many for what it is.", needed=size, available=MAX_JSON_BYTES
            )
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise ModelLoadError(f"There is no {path.name} in {path.parent}; it is no folder of a model.") from None
    except OSError as error:
        raise ModelLoadError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as fault:
        raise ModelLoadError(f"{path.name} is damaged: {fault}. Download the model again.") from fault
    if not isinstance(content, dict):
        raise ModelLoadError(f"{path.name} is damaged: it holds no object. Download the model again.")
    return content


def _files(path: Path) -> tuple[Path, ...]:
    """The safetensors files of a folder, in order."""
    if (path / _INDEX).is_file():
        parts = read_json(path / _INDEX).get("weight_map")
        if not isinstance(parts, dict) or not all(isinstance(name, str) for name in parts.values()):
            raise ModelLoadError(f"{_INDEX} is damaged: it lists no files. Download the model again.")
        names = sorted(set(parts.values()))
        outside = [name for name in names if Path(name).name != name or not name.endswith(".safetensors")]
        if outside:
            raise ModelLoadError(f"{_INDEX} names {outside[0]!r}, which is no safetensors file of this folder.")
        missing = [name for name in names if not (path / name).is_file()]
        if missing:
            raise ModelLoadError(
                f"The model has {len(names)} parts and {len(missing)} of them are not in its folder: {missing[0]}"
                f"{' and others' if len(missing) > 1 else ''}. Download them too.",
                needed=len(names),
                available=len(names) - len(missing),
            )
        return tuple(path / name for name in names)
    files = sorted(path.glob("model*.safetensors")) or sorted(path.glob("*.safetensors"))
    if files:
        return tuple(files)
    pickles = [file.name for pattern in _PICKLES for file in path.glob(pattern)]
    if pickles:
        raise ModelLoadError(
            f"The model's weights are in {min(pickles)}, a pickle file. Such a file can run any program when it is "
            "opened, so Octavo does not. Get the model as safetensors or GGUF."
        )
    raise ModelLoadError(f"There are no safetensors files in {path}. Download the model again.")


class _Found:
    """Finds the tensors that a specification names among those of a folder."""

    def __init__(self, folder: ModelFolder, spec: ModelSpec) -> None:
        self._tensors = folder.tensors
        self._spec = spec
        self._quantization: Quantization | None = quantization_of(folder.config)
        self._used: set[str] = set()
        # "model." in most, "language_model.model." or "model.language_model." where pictures are understood too.
        ends = (
            name.removesuffix("embed_tokens.weight") for name in folder.tensors if name.endswith("embed_tokens.weight")
        )
        self._prefix = min((prefix for prefix in ends if "vision" not in prefix), key=len, default="model.")

    def has(self, name: str) -> bool:
        """Whether a tensor is there under its plain name."""
        return "{}" not in self._module(name) and self._full(name) in self._tensors

    def stored(self, name: str) -> Stored:
        """Where a tensor lies."""
        module = self._module(name)
        if "{}" not in module:
            return self._matrix(module, name.rpartition(".")[2])
        fused = self._fused_experts(name, module)
        if fused is not None:
            return fused
        assert self._spec.experts is not None
        parts = tuple(self._matrix(module.format(expert), "weight") for expert in range(self._spec.experts.count))
        if len({part.shape for part in parts}) > 1:
            raise ModelLoadError(f"The model is damaged: the experts of {module!r} differ in shape. Download it again.")
        return Stack(parts)

    def unknown(self) -> set[str]:
        """Tensors that nobody asked for and that are not known to be useless."""
        rest = self._tensors.keys() - self._used
        if self._spec.tied_head:
            rest -= {name for name in rest if name.endswith("lm_head.weight")}
        return {
            name
            for name in rest
            if not name.endswith(_IGNORED_ENDS) and not any(part in name for part in _IGNORED_PARTS)
        }

    def _module(self, name: str) -> str:
        if name.startswith("output."):
            return self._head()
        return self._prefix + module_name(self._spec, name)

    def _head(self) -> str:
        heads = [name for name in self._tensors if name == "lm_head.weight" or name.endswith(".lm_head.weight")]
        return min(heads, default="lm_head.weight").removesuffix(".weight")

    def _full(self, name: str) -> str:
        return f"{self._module(name)}.{name.rpartition('.')[2]}"

    def _matrix(self, module: str, part: str) -> Matrix:
        if self._quantization is not None:
            packed = self._quantization.matrix(module, part, self._tensors)
            if packed is not None:
                matrix, names = packed
                self._used |= names
                return matrix
        return self._plain(f"{module}.{part}")

    def _plain(self, name: str) -> TensorInfo:
        tensor = self._tensors.get(name)
        if tensor is None:
            raise ModelLoadError(f"The model lacks the tensor {name!r}. Get another copy of this model.")
        self._used.add(name)
        return tensor

    def _fused_experts(self, name: str, module: str) -> Stack | None:
        """Experts that lie in one tensor [experts, outputs, inputs], gate above up."""
        block = module.partition(".{}")[0]
        is_down = "ffn_down" in name
        fused = self._tensors.get(f"{block}.down_proj" if is_down else f"{block}.gate_up_proj")
        if fused is None or len(fused.shape) != 3:
            return None
        self._used.add(f"{block}.down_proj" if is_down else f"{block}.gate_up_proj")
        parts = [fused.part(expert) for expert in range(fused.shape[0])]
        if is_down:
            return Stack(tuple(parts))
        half = fused.shape[1] // 2
        first = 0 if "ffn_gate" in name else half
        return Stack(tuple(part.rows(first, first + half) for part in parts))
