"""``python -m cachewise.fleet``: tune, merge, report, install."""

import argparse
import re
import sys
from pathlib import Path

from . import errors
from .errors import FleetError


def main(words: list[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    options = _parser().parse_args(words)
    try:
        return int(options.run(options))
    except FleetError as error:
        tell(str(error))
        return error.status
    except KeyboardInterrupt:
        tell("interrupted")
        return errors.INTERRUPTED


def tell(text: str) -> None:
    """A line for people, on stderr."""
    print(f"cachewise.fleet: {text}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cachewise.fleet",
        description="Profiles for many machines: tune every host of a Dask cluster, merge, install.",
        epilog="Exit status: 0 ok, 1 error, 2 usage, 4 some hosts were not tuned, or a class of hosts got"
        " no profile, 130 interrupted (finished hosts kept).",
        allow_abbrev=False,
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    verb = verbs.add_parser("tune", help="tune every host that a scheduler's workers run on")
    verb.add_argument("--scheduler", required=True, metavar="ADDRESS", help="tcp://host:8786")
    verb.add_argument("--budget", type=seconds, default=60.0, metavar="DURATION", help="for each host [60s]")
    verb.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="where the records go")
    verb.add_argument(
        "--load",
        type=percent,
        default=0.1,
        metavar="PERCENT",
        help="a host whose CPUs are used more than this is asked again later [10]",
    )
    verb.add_argument("--patience", type=seconds, default=1800.0, metavar="DURATION", help="how long [30min]")
    verb.add_argument(
        "--wait",
        type=seconds,
        default=30.0,
        metavar="DURATION",
        help="for the first worker to join [30s]",
    )
    verb.add_argument(
        "--cachewise",
        metavar="FILE",
        help="the command on the hosts [beside the workers' Python, or on their PATH]",
    )
    verb.set_defaults(run=_tune)

    verb = verbs.add_parser("merge", help="one profile for each class of hosts that agree")
    verb.add_argument("directory", type=Path, metavar="DIR")
    verb.add_argument("--hosts", type=count, default=3, metavar="N", help="fewest hosts of a profile [3]")
    verb.add_argument("--cachewise", metavar="FILE", help="the command on this machine")
    verb.set_defaults(run=_merge)

    verb = verbs.add_parser("report", help="one self-contained page of what was merged")
    verb.add_argument("directory", type=Path, metavar="DIR")
    verb.add_argument("-o", "--output", type=Path, metavar="FILE", help="the page [DIR/merged/fleet.html]")
    verb.set_defaults(run=_report)

    verb = verbs.add_parser("install", help="put the merged profiles where the library looks")
    verb.add_argument("directory", type=Path, metavar="DIR")
    verb.add_argument(
        "--to",
        type=Path,
        default=Path("/etc/cachewise"),
        metavar="DIRECTORY",
        help="[/etc/cachewise]",
    )
    verb.add_argument("--cachewise", metavar="FILE", help="the command on this machine")
    verb.set_defaults(run=_install)
    return parser


def seconds(text: str) -> float:
    """90s, 10min, 1h."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(s|min|h)?", text)
    if found is None or float(found[1]) <= 0:
        raise argparse.ArgumentTypeError(f"found {text!r}, accepted 90s, 10min, 1h")
    return float(found[1]) * {"s": 1, "min": 60, "h": 3600}[found[2] or "s"]


def percent(text: str) -> float:
    """A number from 0 to 100, as a part of 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"found {text!r}, accepted 0 to 100")
    return value / 100


def count(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}, accepted a whole number from 1 on")
    return int(text)


def _tune(options: argparse.Namespace) -> int:
    from . import tune

    settings = tune.Settings(
        scheduler=options.scheduler,
        directory=options.output,
        budget=options.budget,
        load=options.load,
        patience=options.patience,
        wait=options.wait,
        command=options.cachewise,
    )
    return tune.tune(settings, tell)


def _merge(options: argparse.Namespace) -> int:
    from . import command, merge

    tool = command.find(options.cachewise)
    merged = merge.merge(options.directory, tool, options.hosts, tell)
    for one in merged.classes:
        what = f"profile {one.profile}" if one.profile else f"no profile: {one.reason}"
        letter = f" {one.letter}" if one.letter else ""
        print(f"{one.cpu}{letter}, {one.kernel}, {one.libc}: {errors.counted(one.hosts, 'host')}, {what}")
        if one.rows:
            gains = (f"{name} {errors.gain(gain)}" for name, gain in one.gain.items())
            print(
                f"  they agree at {100 * one.agreement:.1f} % of the sizes,"
                f" it serves them at {100 * one.served:.1f} %; {', '.join(gains)}"
            )
    count = errors.counted
    print(
        f"{count(merged.hosts, 'host')}, {count(len(merged.outliers), 'outlier')},"
        f" {count(len(merged.damaged), 'damaged file')}"
    )
    for outlier in merged.outliers[:20]:
        print(f"  {outlier['host']}: {outlier['times']:.1f} times as far off as usual; {outlier['why']}")
    if len(merged.outliers) > 20:
        print(f"  and {len(merged.outliers) - 20} more; `fleet report` names all")
    whole = all(one.profile for one in merged.classes)
    return errors.OK if whole else errors.INCONCLUSIVE


def _report(options: argparse.Namespace) -> int:
    from . import report

    path = report.write(options.directory, options.output)
    print(path)
    return errors.OK


def _install(options: argparse.Namespace) -> int:
    from . import command, install

    for line in install.install(options.directory, options.to, command.find(options.cachewise)):
        print(line)
    return errors.OK


if __name__ == "__main__":
    sys.exit(main())
