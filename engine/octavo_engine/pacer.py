"""The pacer: how many prompt tokens a step may read, so that goals for the first and for every further token hold.

Reading a prompt makes the steps longer in which others decode. Small chunks keep those steps short, large ones end the
reading early. Knows times and counts only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

# A prompt is always read, however slowly.
_LEAST = 16
# The first chunk, from which the time of a prompt token is learnt.
_PROBE = 32
# The share of a goal that is aimed at, since no two steps take the same time.
_AIM = 0.9
# Weight of the newest step in the averages.
_NEWEST = 0.25


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt that is being read or waits for it: tokens still to read, and when it came (monotonic seconds)."""

    tokens: int
    submitted: float


class Pacer:
    """Learns what steps cost and limits the prompt tokens of each; without goals it limits nothing.

    With a goal for the time per token (`tpot_goal`, seconds) a step that decodes reads no more than fits into it. With
    a goal for the first token (`ttft_goal`, seconds from submission) it reads as much as is needed to keep that, and
    no more. Where both cannot be kept, the first token wins.
    """

    def __init__(
        self,
        ttft_goal: float | None = None,
        tpot_goal: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin knowing nothing."""
        self.ttft_goal = ttft_goal
        self.tpot_goal = tpot_goal
        self._clock = clock
        # Seconds of a step that only decodes, and seconds that each prompt token adds.
        self._decode: float | None = None
        self._token: float | None = None

    def observe(self, prompt_tokens: int, seconds: float) -> None:
        """Learn from a step that took `seconds` and read `prompt_tokens` beside its decodes."""
        if not prompt_tokens:
            self._decode = _averaged(self._decode, seconds)
            return
        # What a step costs whatever is in it hides the price of a few tokens.
        if self._decode is not None or prompt_tokens >= _PROBE:
            self._token = _averaged(self._token, max(0.0, seconds - (self._decode or 0.0)) / prompt_tokens)

    def limit(self, decodes: int, prompts: Iterable[Prompt], full: int) -> int:
        """Prompt tokens that the next step may read, at most `full`.

        Args:
            decodes: sequences that decode in it.
            prompts: what is to be read, in this order.
            full: tokens that are left of the step's budget.
        """
        if not decodes or (self.ttft_goal is None and self.tpot_goal is None):
            return full
        if self._token is None:
            return min(full, _PROBE)
        allowed = [_LEAST]
        if self.tpot_goal is not None:
            allowed.append(self._within(_AIM * self.tpot_goal))
        if self.ttft_goal is not None:
            allowed.append(self._needed(prompts, _AIM * self.ttft_goal, full))
        return min(full, max(allowed))

    def _within(self, seconds: float) -> int:
        """Prompt tokens that fit into a step of `seconds` beside the decodes."""
        assert self._token is not None
        return int((seconds - (self._decode or 0.0)) / max(self._token, 1e-9))

    def _needed(self, prompts: Iterable[Prompt], goal: float, full: int) -> int:
        """The smallest chunk with which every prompt, after those before it, is read in time."""
        assert self._token is not None
        now, before, needed = self._clock(), 0, 0
        for prompt in prompts:
            before += prompt.tokens
            # before / chunk steps of decode + chunk * token seconds each have to end in the time that is left.
            spare = prompt.submitted + goal - now - before * self._token
            if spare <= 0:
                return full
            needed = max(needed, int(before * (self._decode or 0.0) / spare) + 1)
        return needed


def _averaged(average: float | None, newest: float) -> float:
    return newest if average is None else average + _NEWEST * (newest - average)
