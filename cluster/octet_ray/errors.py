"""Errors: one sentence that says what, where, why and what next."""


class OctetRayError(Exception):
    """The work can't be done. `code` is the exit code, with the meaning that `octet --help` gives."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.code = code

    def __reduce__(self):
        # Ray sends errors between processes.
        return (type(self), (self.message, self.code))


class Interrupted(Exception):
    """The native program ended without a verdict, such as by a signal, so the shard may run again."""
