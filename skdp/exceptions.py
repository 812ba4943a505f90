"""The warnings and errors of skdp."""


class PrivacyLeakWarning(UserWarning):
    """Something outside the guarantee was read from private data."""


class PrivateEvaluationError(ValueError):
    """The target failed on the private data; the message says nothing of the data."""
