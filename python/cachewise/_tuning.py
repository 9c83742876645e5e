"""Tuning from Python, and its result as a notebook shows it."""

import html
import os
import re
from pathlib import Path
from typing import Any, Literal

from . import _command, _core
from ._records import read, records


#: Most characters that a cell of a notebook is given: all of them are kept in its file.
_CELL = 300_000


class Picture:
    """Figures as a page for notebooks, and as text for terminals."""

    def __init__(self, page: str, text: str, height: int):
        self._page, self._text, self._height = page, text, height

    def _repr_html_(self) -> str:
        # A page of its own inside the notebook's: neither's styles reach the other.
        return (
            f'<iframe sandbox srcdoc="{html.escape(_summary(self._page))}" title="cachewise" '
            f'style="width: 100%; height: {self._height}px; border: 0"></iframe>'
        )

    def __repr__(self) -> str:
        return self._text

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Writes the page, which needs no other file."""
        Path(path).write_text(self._page, encoding="utf-8")


def _summary(page: str) -> str:
    """What of a page a cell has room for: its beginning, the decisions, and panels of the first figure."""
    begin, figure, rest = page.partition("<figure")
    first = figure + rest.partition("</figure>")[0]
    parts = re.findall(r"<h2>Decisions.*?</table>.*?</div>", page, re.DOTALL)
    parts.append(first.partition('<section class="panel"')[0])
    parts += re.findall(r'<section class="panel".*?</section>', first, re.DOTALL)
    end = "</div></figure><p>The rest is in the whole page: <code>save</code> writes it.</p></body></html>"
    room = _CELL - len(html.escape(begin + end))
    text = begin
    for part in parts:
        room -= len(html.escape(part))
        if room < 0:
            break
        text += part
    return text + end


class Tuning:
    """The record of a tuning, one just made or one of before: ``cachewise.Tuning("tune.jsonl.gz")``.

    A notebook shows the beginning of the page that ``cachewise report`` makes of it; ``page().save(FILE)`` writes all.

    Attributes
    ----------
    record : pathlib.Path
    profile : pathlib.Path or None
        The profile that was written with it.
    verdicts : list of str
        What the rows say; the first is the headline.
    decisions : list of dict
        ``operation``, ``reuse``, ``from``, ``to`` (bytes), ``kernel``, and ``ratio`` and ``why`` where there is one.
    """

    def __init__(self, record: "str | os.PathLike[str]", profile: "str | os.PathLike[str] | None" = None):
        self.record = Path(record)
        self.profile = None if profile is None else Path(profile)
        [objects] = read(self.record)
        self.verdicts: list[str] = list(objects[-1].get("verdicts") or [])
        self.decisions: list[dict[str, Any]] = [
            decision for item in objects if item["type"] == "decisions" for decision in item.get("kernels") or []
        ]

    def records(self, *, form: Literal["pandas", "arrow", "rows"] = "pandas") -> Any:
        """Its rows, as `cachewise.records` has them."""
        return records(self.record, form=form)

    def page(self) -> Picture:
        """The whole page: verdict, machine, figures, decisions, every row."""
        return Picture(self._page(), repr(self), 900)

    def plot(self) -> Picture:
        """The page's figures alone; in a terminal, its tables."""
        page = self._page()
        head = page[: page.index("<body")]
        figures = re.findall(r"<figure\b.*?</figure>", page, re.DOTALL)
        text = _command.output("report", os.fspath(self.record))
        return Picture(f"{head}<body>{''.join(figures)}</body></html>", text, 700)

    def _page(self) -> str:
        return _command.output("report", os.fspath(self.record), "-o", "-")

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()

    def __repr__(self) -> str:
        headline = self.verdicts[0] if self.verdicts else f"{len(self.decisions)} decisions"
        return f"<cachewise.Tuning {os.fspath(self.record)!r}: {headline}>"


def tune(
    budget: str = "10min",
    *,
    profile: "str | os.PathLike[str] | None" = None,
    record: "str | os.PathLike[str] | None" = None,
    force: bool = False,
) -> Tuning:
    """Measures this machine, decides, and writes the profile that the library follows.

    Nothing else should run on the machine meanwhile. Progress is shown on stderr.

    Parameters
    ----------
    budget : str
        How long it may take: ``"60s"``, ``"10min"``, ``"1h"``.
    profile : path, optional
        Where to write the profile; by default this CPU's place in the user's configuration directory.
    record : path, optional
        Where to write the record; by default beside the profile.
    force : bool
        Replace the profile of a longer or less disturbed tuning, too.

    Returns
    -------
    Tuning
        With ``plot()``, and a page where a notebook shows it.

    Raises
    ------
    cachewise.CommandError
        What the command said, with its status: 2 for a wrong argument or a budget shorter than that of the
        profile there is, 4 where the profile there is stays since it is better, 130 for an interruption.
    """
    options = [f"--budget={budget}", *(["--force"] if force else [])]
    if profile is not None:
        options.append(f"--output={os.fspath(profile)}")
    else:
        profile = _core.user_profile()
        if profile is None:
            raise FileNotFoundError("profile: neither HOME nor XDG_CONFIG_HOME names a directory; name a file")
    profile = Path(profile)
    if record is not None:
        options.append(f"--record={os.fspath(record)}")
    _command.output("tune", *options, show_progress=True)
    record = profile.with_suffix(".record.jsonl") if record is None else record
    return Tuning(record, profile)
