"""``python -m cachewise.run --pool SIZE PROGRAM``: a Python program whose NumPy arrays are the pool's."""

import argparse
import builtins
import functools
import multiprocessing
import multiprocessing.forkserver
import multiprocessing.spawn
import os
import runpy
import sys
import types
from typing import Any

WORKER = "cachewise._worker"

def main() -> int:
    """Runs a program by this process's arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m cachewise.run",
        usage="%(prog)s --pool SIZE [--stats] (FILE | -m MODULE) [ARGUMENT ...]",
        description="Run a Python program whose NumPy arrays are in memory of the page pool.",
        epilog="Worker processes of multiprocessing have a pool of their own, of the same size at most.",
        allow_abbrev=False,
    )
    parser.add_argument("--pool", required=True, metavar="SIZE", help="bytes at most, like 512M or 1G")
    parser.add_argument("--stats", action="store_true", help="afterwards print to stderr what the pool did")
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module instead of a file")
    options, program = _split(parser, sys.argv[1:])
    import cachewise.numpy

    try:
        cachewise.numpy.enable(pool=options.pool)
    except (ImportError, RuntimeError, TypeError, ValueError) as error:
        parser.error(str(error))
    _enable_in_workers(options.pool)
    try:
        if options.module is not None:
            sys.argv = [options.module, *program]
            _search_first(os.getcwd())
            runpy.run_module(options.module, run_name="__main__", alter_sys=True)
        else:
            sys.argv = program
            _search_first(os.path.dirname(os.path.realpath(program[0])))
            _run_file(program[0])
    finally:
        if options.stats:
            print("cachewise: the pool of the first process; workers have their own", file=sys.stderr)
            for name, value in (cachewise.numpy.stats() or {}).items():
                print(f"cachewise: {name} {value}", file=sys.stderr)
    return 0


def _enable_in_workers(pool: str) -> None:
    """From now on workers that are spawned, or forked by a server, have a pool of that size."""
    os.environ["CACHEWISE_NUMPY_POOL"] = pool
    words_of: Any = multiprocessing.spawn.get_command_line

    def with_pool(**arguments: Any) -> list[str]:
        words: list[str] = words_of(**arguments)
        # A frozen program has no code among its words.
        if "-c" in words:
            code = words.index("-c") + 1
            words[code] = f"import {WORKER}; {words[code]}"
        return words

    setattr(multiprocessing.spawn, "get_command_line", with_pool)  # noqa: B010, a type checker refuses the plain form
    _enable_in_fork_servers()


def _enable_in_fork_servers() -> None:
    """Has a fork server import the worker's module, beside those that the program names before or after this."""
    server: Any = multiprocessing.forkserver.ForkServer
    start = server.ensure_running

    @functools.wraps(start)
    def start_with_pool(self: Any, *arguments: Any, **named: Any) -> Any:
        modules = list(self._preload_modules)
        if WORKER not in modules:
            self._preload_modules = [*modules, WORKER]
        return start(self, *arguments, **named)

    server.ensure_running = start_with_pool
    # The module's own name for it is a method that was bound before.
    running: Any = multiprocessing.forkserver
    running.ensure_running = running._forkserver.ensure_running


def _search_first(directory: str) -> None:
    """Where modules are looked for first, as `python` sets it."""
    if not sys.flags.safe_path:
        sys.path[0] = directory


def _run_file(path: str) -> None:
    """Like `python FILE`: the program is `__main__`, for its threads and for `pickle` too."""
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    module = types.ModuleType("__main__")
    vars(module).update(__file__=path, __builtins__=builtins)
    sys.modules["__main__"] = module
    exec(code, vars(module))


def _split(
    parser: argparse.ArgumentParser, arguments: list[str]
) -> tuple[argparse.Namespace, list[str]]:
    """Options up to the program; what follows it is the program's own."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        takes_value = arguments[at] in ("--pool", "-m")
        is_module = arguments[at] == "-m"
        at += 2 if takes_value else 1
        if is_module:
            break
    options = parser.parse_args(arguments[:at])
    program = arguments[at:]
    if options.module is None and not program:
        parser.error("found no program, accepted a file, or -m and a module")
    if options.module is None and not os.path.isfile(program[0]):
        parser.error(f"{program[0]}: no such file")
    return options, program


if __name__ == "__main__":
    sys.exit(main())
