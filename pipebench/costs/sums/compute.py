"""Operator times at a micro-batch size, on one device type, as integer nanoseconds."""

from fractions import Fraction
from functools import lru_cache

import numpy as np

from pipebench.costs.quantise import FloatArray, IntArray, nanoseconds, seconds_at
from pipebench.domain.profile import DeviceCosts


class OperatorTimes:
    """Times of all operators of a profile on one device type, cached by micro-batch size."""

    def __init__(self, costs: DeviceCosts) -> None:
        self.costs = costs
        self._forward = np.array([c.forward_s for c in costs.operators], dtype=np.float64)
        self._backward = np.array([c.backward_s for c in costs.operators], dtype=np.float64)
        self._weight = np.array(
            [c.weight_gradient_s or (0.0,) * len(costs.micro_batches) for c in costs.operators], dtype=np.float64
        )
        self.at = lru_cache(maxsize=256)(self._at)
        self.weight_gradient_at = lru_cache(maxsize=64)(self._weight_gradient_at)
        self.choice_ns = lru_cache(maxsize=65536)(self._choice_ns)
        self.collective_ns = lru_cache(maxsize=65536)(self._collective_ns)

    def _nanoseconds_at(self, times_s: FloatArray, samples: int) -> IntArray:
        return nanoseconds(seconds_at(self.costs.micro_batches, times_s, samples))

    def _at(self, samples: int) -> tuple[IntArray, IntArray]:
        """Forward and backward ns of every operator at `samples`, each of shape (operators,)."""
        return self._nanoseconds_at(self._forward, samples), self._nanoseconds_at(self._backward, samples)

    def _weight_gradient_at(self, samples: int) -> IntArray:
        """The weight-gradient part of the backward in ns, shape (operators,); 0 where not measured apart.

        At most the backward: beyond the profiled sizes the lines through both may cross.
        """
        backward: IntArray = self.at(samples)[1]
        return np.minimum(self._nanoseconds_at(self._weight, samples), backward)

    def _choice_ns(self, operator: int, identifier: str, samples: int) -> tuple[int, int, int]:
        """Forward, backward and weight-gradient ns of one operator under one of its alternatives ('' plain).

        An alternative's weight gradient is the plain one's share of the plain backward, rounded half-even.
        """
        plain_forward, plain_backward = (int(ns[operator]) for ns in self.at(samples))
        weight = int(self.weight_gradient_at(samples)[operator])
        if identifier == "":
            return plain_forward, plain_backward, weight
        alternative = self.costs.operators[operator].alternative(identifier)
        forward, backward = (
            self._one_time_ns(times_s, samples) for times_s in (alternative.forward_s, alternative.backward_s)
        )
        share = round(Fraction(weight * backward, plain_backward)) if plain_backward else 0
        return forward, backward, min(share, backward)

    def _collective_ns(self, operator: int, identifier: str, samples: int) -> tuple[int, int]:
        """The ns of an operator's forward and backward that its collectives add; 0 where they are not told apart.

        At most the whole time, to which they are a part.
        """
        if identifier == "":
            return 0, 0
        way = self.costs.operators[operator].alternative(identifier)
        whole = self.choice_ns(operator, identifier, samples)
        forward, backward = (
            min(whole[part], self._one_time_ns(said, samples)) if said else 0
            for part, said in enumerate((way.forward_collective_s, way.backward_collective_s))
        )
        return forward, backward

    def _one_time_ns(self, times_s: tuple[float, ...], samples: int) -> int:
        return nanoseconds(seconds_at(self.costs.micro_batches, times_s, samples))
