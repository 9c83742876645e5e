"""Exit statuses, the same as the command's, and the error that carries one."""

OK = 0
ERROR = 1
USAGE = 2
INCONCLUSIVE = 4
INTERRUPTED = 130


class FleetError(Exception):
    """Told in one line; ends the command with its status."""

    def __init__(self, text: str, status: int = ERROR) -> None:
        super().__init__(text)
        self.status = status
