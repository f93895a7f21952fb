"""What one forward pass computes: a ragged batch of new tokens from several sequences. Loads no torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class ForwardBatch:
    """New tokens of several sequences, one sequence after another.

    Attributes:
        token_ids: int32 [tokens].
        positions: int32 [tokens]: position of each token in its sequence.
        slots: int64 [tokens]: page * page_size + offset where its keys and values go.
        query_starts: int32 [sequences + 1]: first row of each sequence, and the number of tokens.
        context_lengths: int32 [sequences]: positions of each sequence, the new ones included.
        page_table: int32 [sequences, max_pages].
        logit_rows: int32 [wanted]: rows whose logits are wanted.
    """

    token_ids: npt.NDArray[np.int32]
    positions: npt.NDArray[np.int32]
    slots: npt.NDArray[np.int64]
    query_starts: npt.NDArray[np.int32]
    context_lengths: npt.NDArray[np.int32]
    page_table: npt.NDArray[np.int32]
    logit_rows: npt.NDArray[np.int32]
