"""``python -m cachewise.fleet``: tune, merge, install."""

import argparse
import re
import sys
from pathlib import Path

from . import merge, store
from .store import FleetError


def main(words: list[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    options = _parser().parse_args(words)
    try:
        return int(options.run(options))
    except FleetError as error:
        tell(str(error))
        return 1
    except KeyboardInterrupt:
        tell("interrupted")
        return 130


def tell(text: str) -> None:
    """A line for people, on stderr."""
    print(f"cachewise.fleet: {text}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cachewise.fleet",
        description="Profiles for many machines: tune every host of a Dask cluster, merge, install.",
        epilog="Exit status: 0 ok, 1 error, 2 usage, 4 some hosts were not tuned, or a CPU got no profile, 130"
        " interrupted (finished hosts kept).",
        allow_abbrev=False,
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    verb = verbs.add_parser("tune", help="tune every host that a scheduler's workers run on")
    verb.add_argument("--scheduler", required=True, metavar="ADDRESS", help="tcp://host:8786")
    verb.add_argument("--budget", type=seconds, default=60.0, metavar="DURATION", help="for each host [60s]")
    verb.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="where the records go")
    verb.add_argument("--load", type=percent, default=0.1, metavar="PERCENT", help="busy from here on: asked later [10]")
    verb.add_argument("--patience", type=seconds, default=1800.0, metavar="DURATION", help="how long [30min]")
    verb.add_argument("--wait", type=seconds, default=30.0, metavar="DURATION", help="for the first worker [30s]")
    verb.add_argument("--cachewise", metavar="FILE", help="the command on the hosts [beside Python, or on PATH]")
    verb.set_defaults(run=_tune)

    verb = verbs.add_parser("merge", help="one profile for each CPU, as a new version")
    verb.add_argument("directory", type=Path, metavar="DIR")
    verb.add_argument("--hosts", type=count, default=3, metavar="N", help="fewest hosts of a profile [3]")
    verb.set_defaults(run=_merge)

    verb = verbs.add_parser("install", help="put the profiles of a version where the library looks")
    verb.add_argument("directory", type=Path, metavar="DIR")
    verb.add_argument("--to", type=Path, default=Path("/etc/cachewise"), metavar="DIRECTORY", help="[/etc/cachewise]")
    verb.add_argument("--version", type=count, metavar="N", help="an earlier version [the newest]")
    verb.set_defaults(run=_install)
    return parser


def seconds(text: str) -> float:
    """90s, 10min, 1h."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(s|min|h)?", text)
    if found is None or float(found[1]) <= 0:
        raise argparse.ArgumentTypeError(f"expected 90s, 10min, 1h, found {text!r}")
    return float(found[1]) * {"s": 1, "min": 60, "h": 3600}[found[2] or "s"]


def percent(text: str) -> float:
    """A number from 0 to 100, as a part of 1."""
    if re.fullmatch(r"\d+(\.\d+)?", text) and float(text) <= 100:
        return float(text) / 100
    raise argparse.ArgumentTypeError(f"expected 0 to 100, found {text!r}")


def count(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, found {text!r}")
    return int(text)


def _tune(options: argparse.Namespace) -> int:
    # Only this verb needs Dask.
    from . import tune

    names = {"directory": "output", "command": "cachewise"}
    values = {name: getattr(options, names.get(name, name)) for name in tune.Settings.__dataclass_fields__}
    return tune.tune(tune.Settings(**values), tell)


def _merge(options: argparse.Namespace) -> int:
    for _, error in store.damaged(options.directory):
        tell(f"{error}; left out")
    merged = merge.merge(options.directory, options.hosts)
    for one in merged:
        what = f"profile {one.profile}" if one.profile else f"no profile: {one.reason}"
        share = f"{one.hosts} of {one.all} hosts of this CPU model"
        print(f"{one.cpu}, caches {one.caches}: {share}, {what}")
    return 0 if all(one.profile for one in merged) else 4


def _install(options: argparse.Namespace) -> int:
    for path in merge.install(options.directory, options.to, options.version):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
