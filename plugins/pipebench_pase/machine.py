"""The machine of PaSE's cost: a rate of arithmetic, and how much of it one word costs."""

from dataclasses import dataclass

from pipebench_pase.space import FloatArray


@dataclass(frozen=True, slots=True)
class Machine:
    """flops: multiply-adds a second. word_flops: what one word moved is worth (r of PaSE, equation 1)."""

    flops: float
    word_flops: float

    def words(self, words: FloatArray) -> FloatArray:
        """Cost of moving so many words."""
        return self.word_flops * words

    def all_reduce(self, words: FloatArray, devices: FloatArray) -> FloatArray:
        """Cost of a ring all-reduce of `words` on each of `devices`; 0 on one."""
        return self.word_flops * (words / devices) * (2.0 * (devices - 1.0))
