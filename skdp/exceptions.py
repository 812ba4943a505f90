"""The warnings and errors of skdp."""


class PrivacyLeakWarning(UserWarning):
    """Something outside the guarantee was read from private data."""


class PrivateEvaluationError(ValueError):
    """The target failed on the private data; the message says nothing of the data."""


class ReproductionWarning(UserWarning):
    """A published number is reproduced as printed, although it is not what it claims to be.

    Given by the functions of `skdp.risk.paper`. Their values are for comparison with the
    publication; no guarantee is ever computed from them.
    """
