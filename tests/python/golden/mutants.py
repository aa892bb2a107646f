"""Wrong kernels, by operation: what somebody gets wrong who writes that operation.

    @mutants_of("RmsNormOperation")
    def wrong_rms_norms(trial):
        (y,) = trial.run({"layerType": 1}, [x, gamma])
        trial.sound(y, kernel())
        trial.caught("no epsilon", y, kernel(epsilon=0))

Each operation has one such function, in the file that tests its golden. test_mutants.py runs them all, and holds their
names against the table in docs/opcheck_operators.md.
"""

import functools

from golden_oracle import assert_caught, assert_sound, golden, share

MUTANTS = {}


def mutants_of(operation):
    def keep(function):
        assert operation not in MUTANTS
        MUTANTS[operation] = function
        return function

    return keep


class Trial:
    """Asks the golden of one operation, and keeps the names of the wrong kernels that it was asked about."""

    def __init__(self, operation):
        self.operation = operation
        self.caught_names = []
        self.missed_names = []

    def run(self, param, inputs, **options):
        return golden.run(self.operation, param, inputs, **options)

    def sound(self, expected, result, dtype=None):
        assert_sound(expected, result, dtype)

    def caught(self, name, expected, result, dtype=None, by=1.0):
        """The golden must not take this result for sound."""
        assert_caught(expected, result, dtype, by)
        self.caught_names.append(name)

    def missed(self, name, expected, result, dtype=None):
        """It is wrong, and no bound can tell; the documents name it."""
        assert share(expected, result, dtype) <= 1
        self.missed_names.append(name)


@functools.cache
def tried(operation):
    """Runs the wrong kernels of an operation."""
    trial = Trial(operation)
    MUTANTS[operation](trial)
    return trial


__all__ = ["MUTANTS", "Trial", "mutants_of", "tried"]
