"""Exit statuses, the same as the command's, the error that carries one, and numbers in words."""

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


def counted(number: int, what: str) -> str:
    """So many of something: ``1 host``, ``3 hosts``."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def gain(share: float) -> str:
    """A gain in whole per cent; what rounds to none has no minus."""
    return f"{100 * share:+.0f} %".replace("-0 %", "+0 %")
