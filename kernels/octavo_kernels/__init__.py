"""The arithmetic of a decoder: one public function for each operation, with an implementation chosen for the device.

Knows nothing of models, sequences or files. Importing this package loads neither torch nor numba nor triton.
"""

from octavo_kernels.dispatch import Backend, Declined, backends, forced
from octavo_kernels.identity import identity
from octavo_kernels.operations.gated_activation import gated_activation
from octavo_kernels.operations.group_product import group_product
from octavo_kernels.operations.head_norm import head_norm
from octavo_kernels.operations.paged_attention import paged_attention
from octavo_kernels.operations.rms_norm import rms_norm
from octavo_kernels.operations.rope import rope
from octavo_kernels.operations.widen_groups import widen_groups
from octavo_kernels.operations.write_kv import write_kv
from octavo_kernels.warm import warm

__all__ = [
    "Backend",
    "Declined",
    "backends",
    "forced",
    "gated_activation",
    "group_product",
    "head_norm",
    "identity",
    "paged_attention",
    "rms_norm",
    "rope",
    "warm",
    "widen_groups",
    "write_kv",
]
