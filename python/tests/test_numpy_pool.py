"""NumPy on the pool: contents, whose memory it is, and how long it lives."""

import asyncio
import concurrent.futures
import contextvars
import gc
import threading

import cachewise.numpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if np.__version__.startswith("1."):
    from numpy.core.multiarray import get_handler_name
else:
    from numpy._core.multiarray import get_handler_name

POOL = "256M"  # there is one pool in a process
LEAST = 128 << 10
MOST = 256 << 20


@pytest.fixture
def pool():
    with cachewise.numpy.enable(pool=POOL):
        yield cachewise.numpy


def served():
    return cachewise.numpy.stats()["served"]


def in_use():
    gc.collect()
    return cachewise.numpy.stats()["in_use_bytes"]


def of_the_pool(make):
    """An array that the pool serves. For a moment another thread may be in the pool, its own among them."""
    for _ in range(10_000):
        before, array = served(), make()
        if served() > before:
            return array
    raise AssertionError("never served")


def test_large_arrays_are_the_pools_and_others_are_not(pool):
    before = served()
    small = np.empty(LEAST - 1, np.uint8)
    assert served() == before
    large = of_the_pool(lambda: np.empty(LEAST, np.uint8))
    assert served() == before + 1
    # NumPy asks this handler for both.
    assert get_handler_name(small) == get_handler_name(large) == "cachewise_pool"
    too_large = pool.stats()["too_large"]
    sparse = np.zeros(MOST + 1, np.uint8)
    assert pool.stats()["too_large"] == too_large + 1
    assert sparse[-1] == 0


@pytest.mark.parametrize("n", [LEAST, LEAST + 1, 1 << 20, (5 << 20) + 3, 64 << 20])
def test_zeros_are_zero_whatever_lay_there_before(pool, n):
    for _ in range(4):
        dirty = np.empty(n, np.uint8)
        dirty[:] = 0xEE
        del dirty
        zeros = np.zeros(n, np.uint8)
        assert not zeros.any()
        zeros[:] = 0xDD
        del zeros


def test_memory_comes_back(pool):
    before = in_use()
    arrays = [of_the_pool(lambda: np.ones(200_000)) for _ in range(10)]
    assert in_use() >= before + 10 * 1_600_000
    del arrays
    assert in_use() == before


def test_arrays_outlive_disable(pool):
    before = in_use()
    cachewise.numpy.disable()
    assert not cachewise.numpy.is_enabled()
    with cachewise.numpy.enable(pool=POOL):
        array = of_the_pool(lambda: np.arange(300_000))
    assert not cachewise.numpy.is_enabled()
    assert get_handler_name(np.empty(10)) == "default_allocator"
    array += 1
    assert array[-1] == 300_000
    assert in_use() > before
    array.resize(600_000)  # by the handler it is from
    assert array[299_999] == 300_000 and not array[300_000:].any()
    del array
    assert in_use() == before


def test_the_context_manager_brings_back_what_was_before(pool):
    with cachewise.numpy.enable(pool=POOL) as inner:
        assert "enabled in" in repr(inner)
    assert cachewise.numpy.is_enabled()
    cachewise.numpy.disable()
    with pytest.raises(KeyError), cachewise.numpy.enable(pool=POOL):
        raise KeyError
    assert not cachewise.numpy.is_enabled()
    assert "not enabled" in repr(inner)


def test_growing_by_small_steps_moves_seldom_and_shrinking_never(pool):
    array = of_the_pool(lambda: np.ones(LEAST, np.uint8))
    place, moves = array.ctypes.data, 0
    for size in range(LEAST, 8 << 20, 4096):
        array.resize(size, refcheck=False)
        array[-1] = 1
        moves += array.ctypes.data != place
        place = array.ctypes.data
    assert moves < 200  # of 2000
    for size in (4 << 20, 1 << 20, LEAST, 100):
        array.resize(size, refcheck=False)
        assert array.ctypes.data == place
    assert array.all()


@given(sizes=st.lists(st.integers(0, 1 << 20) | st.sampled_from([0, 1, LEAST - 1, LEAST, LEAST + 1]), min_size=1, max_size=12))
@settings(deadline=None, max_examples=60)
def test_resizes_across_every_border_keep_contents(sizes):
    with cachewise.numpy.enable(pool=POOL):
        array, model = np.empty(0, np.uint8), b""
        for step, size in enumerate(sizes):
            array.resize(size, refcheck=False)
            model = (model + bytes(size))[:size]
            assert array.tobytes() == model
            array[:] = step + 1
            model = bytes([step + 1]) * size


@given(data=st.data())
@settings(deadline=None, max_examples=40)
def test_many_arrays_at_once_never_share_a_byte(data):
    with cachewise.numpy.enable(pool=POOL):
        alive = {}
        for mark in range(data.draw(st.integers(1, 40))):
            if alive and data.draw(st.booleans()):
                old = data.draw(st.sampled_from(sorted(alive)))
                assert (alive.pop(old) == old % 256).all()
            n = data.draw(st.integers(LEAST - 2, 3 * LEAST))
            zeroed = data.draw(st.booleans())
            array = np.zeros(n, np.uint8) if zeroed else np.empty(n, np.uint8)
            assert not zeroed or not array.any()
            array[:] = mark
            alive[mark] = array
        for mark, array in alive.items():
            assert (array == mark).all()


def test_sizes_of_nothing_and_beyond_all_memory(pool):
    assert np.zeros(0).size == 0 and np.zeros((0, 1 << 40)).size == 0
    assert np.empty((3, 0, 2)).shape == (3, 0, 2)
    for shape in [(1 << 60,), (1 << 31, 1 << 29)]:
        with pytest.raises((MemoryError, ValueError)):
            np.zeros(shape)
        with pytest.raises((MemoryError, ValueError)):
            np.empty(shape)


def test_a_full_pool_hands_on(pool):
    full = pool.stats()["full"]
    arrays = []
    # For a moment another thread may be in the pool, which makes an array elsewhere.
    while pool.stats()["full"] == full and len(arrays) < 200:
        arrays.append(np.full(8 << 20, 3, np.uint8))
    stats = pool.stats()
    assert stats["full"] > full and stats["in_use_bytes"] > 3 * stats["capacity_bytes"] // 4
    assert all((array == 3).all() for array in arrays)


def test_objects_and_views_and_wrapped_memory(pool):
    objects = np.array([{"a": n} for n in range(100_000)], dtype=object)
    assert objects[99_999] == {"a": 99_999}
    del objects
    view = np.arange(400_000).reshape(400, 1000)[::2, ::-1].T
    assert view[0, 0] == 999
    wrapped = np.frombuffer(bytearray(1 << 20), np.uint8)
    wrapped[:] = 1
    del view, wrapped


class TestThreads:
    def test_a_thread_takes_over_its_starters_setting(self, pool):
        names = []

        def work():
            names.append((cachewise.numpy.is_enabled(), get_handler_name(np.empty(1 << 20))))

        def run():
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            assert "run" not in vars(thread)
            return names.pop()

        assert run() == (True, "cachewise_pool")
        cachewise.numpy.disable()
        assert run() == (False, "default_allocator")

    def test_a_thread_that_cannot_be_started_is_as_it_was(self, pool):
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError):
            thread.start()
        assert "run" not in vars(thread)

    def test_subclasses_with_a_run_of_their_own(self, pool):
        class Own(threading.Thread):
            def run(self):
                self.found = cachewise.numpy.is_enabled()

        thread = Own()
        thread.start()
        thread.join()
        assert thread.found

    def test_pools_of_threads(self, pool):
        with concurrent.futures.ThreadPoolExecutor(4) as workers:
            sums = workers.map(lambda n: (np.zeros(100_000 + n) + n).sum() - n * n, range(200))
            assert list(sums) == [100_000 * n for n in range(200)]

    def test_freed_by_another_thread_than_the_one_that_made_it(self, pool):
        before = in_use()
        made = []
        maker = threading.Thread(target=lambda: made.append(of_the_pool(lambda: np.ones(1 << 20))))
        maker.start()
        maker.join()
        assert in_use() > before
        made.clear()
        assert in_use() == before

    def test_many_threads_make_check_and_free(self, pool):
        wrong = []

        def work(mark):
            rng = np.random.default_rng(mark)
            kept = []
            for _ in range(60):
                zeros = np.zeros(int(rng.integers(LEAST, 8 * LEAST)), np.uint8)
                if zeros.any():
                    wrong.append("not zero")
                zeros[:] = mark
                kept.append(zeros)
                if len(kept) > 5:
                    if not (kept.pop(int(rng.integers(5))) == mark).all():
                        wrong.append("not mine")

        threads = [threading.Thread(target=work, args=(n + 1,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong

    def test_tasks_and_contexts(self, pool):
        async def work():
            return cachewise.numpy.is_enabled()

        assert asyncio.run(work())
        assert not contextvars.Context().run(cachewise.numpy.is_enabled)


class TestProcesses:
    """Each in an interpreter of its own."""

    def test_children_by_fork_use_and_free_what_they_inherit(self, in_new_process):
        said = in_new_process(
            """
            import os, threading, numpy as np, cachewise.numpy
            cachewise.numpy.enable("256M")
            kept = [np.full(1 << 20, n, np.uint8) for n in range(20)]
            stop = threading.Event()
            def busy():
                while not stop.is_set():
                    assert not np.zeros(1 << 20).any()
            threads = [threading.Thread(target=busy) for _ in range(2)]
            for thread in threads: thread.start()
            for turn in range(20):
                child = os.fork()
                if child == 0:
                    status = 1
                    try:
                        assert all((array == n).all() for n, array in enumerate(kept))
                        kept.clear()
                        for _ in range(30):
                            array = np.zeros(2 << 20, np.uint8)
                            assert not array.any()
                            array[:] = 9
                        status = 0
                    finally:
                        os._exit(status)
                assert os.waitpid(child, 0)[1] == 0
            stop.set()
            for thread in threads: thread.join()
            assert all((array == n).all() for n, array in enumerate(kept))
            print("well")
            """
        )
        assert "well" in said

    def test_children_leave_alone_what_they_inherit_free(self, in_new_process):
        said = in_new_process(
            """
            import os, time, numpy as np, cachewise.numpy
            cachewise.numpy.enable("256M")
            def proportional(process):
                with open(f"/proc/{process}/smaps_rollup") as lines:
                    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
            arrays = [np.ones(1 << 20, np.uint8) for _ in range(80)]
            arrays.clear()
            before, (ready, say), (stop, end), children = proportional("self"), os.pipe(), os.pipe(), []
            for _ in range(4):
                child = os.fork()
                if child == 0:
                    os.close(end)
                    np.zeros(1 << 20, np.uint8)[:] = 1
                    os.write(say, b".")
                    os.read(stop, 1)
                    os._exit(0)
                children.append(child)
            for _ in children:
                os.read(ready, 1)
            time.sleep(1)
            after = sum(map(proportional, ["self", *children]))
            os.close(end)
            assert before > 40 << 20
            assert after < before * 1.1 + len(children) * (8 << 20), (before, after)
            assert all(os.waitpid(child, 0)[1] == 0 for child in children)
            print("well")
            """
        )
        assert "well" in said

    def test_the_interpreter_ends_with_arrays_alive(self, in_new_process):
        said = in_new_process(
            """
            import atexit, sys, threading, time, numpy as np, cachewise.numpy
            cachewise.numpy.enable("64M")
            sys.kept = np.ones(1 << 20)
            class Late:
                array = np.ones(1 << 20)
                def __del__(self):
                    self.array = np.zeros(1 << 19) if np is not None else None
            sys.late = Late()
            atexit.register(lambda: print(np.zeros(1 << 20).sum()))
            threading.Thread(target=lambda: [np.zeros(1 << 19) for _ in range(200)], daemon=True).start()
            """
        )
        assert said == "0.0\n"

    def test_one_pool_of_one_size(self, in_new_process):
        said = in_new_process(
            """
            import cachewise.numpy as c
            assert c.stats() is None
            c.enable("64M"); c.enable(64 << 20)
            try: c.enable("65M")
            except RuntimeError as error: print(error)
            """
        )
        assert "found 68157440 bytes, accepted 67108864" in said

    @pytest.mark.parametrize("size, sentence", [
        ("'lots'", "found 'lots', accepted bytes with K, M, G or T"), ("0", "found 0"), ("-1", "found -1"),
        ("True", "found True"), ("1.5", "found 1.5"), ("'200T'", "accepted 1 to"), ("'2T'", "at most the"), ("'1e9'", "found '1e9'"),
    ])  # fmt: skip
    def test_sizes_that_are_refused(self, in_new_process, size, sentence):
        said = in_new_process(
            f"""
            import cachewise.numpy as c
            try: c.enable({size})
            except (ValueError, TypeError) as error: print(error)
            assert c.stats() is None and not c.is_enabled()
            """
        )
        assert sentence in said

    @pytest.mark.parametrize("version", ["1.25.2", "3.0.0", "1.9"])
    def test_versions_that_are_not_known(self, in_new_process, version):
        said = in_new_process(
            f"""
            import numpy
            numpy.__version__ = "{version}"
            import cachewise.numpy as c
            try: c.enable("64M")
            except ImportError as error: print(error)
            """
        )
        assert f"NumPy {version}: found an unknown version, accepted 1.26 and 2.x" in said

    def test_a_subinterpreter_is_refused(self, in_new_process):
        said = in_new_process(
            """
            try: import _interpreters as subs
            except ImportError: import _xxsubinterpreters as subs
            import cachewise
            sub = subs.create()
            try:
                found = subs.run_string(sub, "import cachewise")
                print(getattr(found, "formatted", found))
            except subs.RunFailedError as error:
                print(error)
            print("the main one goes on", cachewise.equal(b"", b""))
            """
        )
        assert "ImportError" in said and "the main one goes on True" in said


class TestRun:
    """`python -m cachewise.run --pool SIZE ...`, for programs that know nothing."""

    @pytest.fixture
    def run(self, tmp_path):
        import subprocess
        import sys

        def run(*arguments, status=0):
            done = subprocess.run(
                [sys.executable, "-m", "cachewise.run", *arguments],
                capture_output=True, text=True, timeout=120, cwd=tmp_path,
            )  # fmt: skip
            assert done.returncode == status, done.stdout + done.stderr
            return done.stdout, done.stderr

        (tmp_path / "beside.py").write_text("value = 7\n")
        (tmp_path / "program.py").write_text(
            "import pickle, sys, beside, numpy as np\n"
            "class Point: pass\n"
            "assert type(pickle.loads(pickle.dumps(Point()))) is Point\n"
            "name = getattr(np, '_core', np.core if np.__version__ < '2' else None).multiarray.get_handler_name\n"
            "print(__name__, __file__, sys.argv, beside.value, name(np.empty(9)))\n"
            "sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)\n"
        )
        return run

    def test_a_file_with_arguments_and_status(self, run):
        out, err = run("--pool", "64M", "program.py", "3", "--pool", status=3)
        assert out == "__main__ program.py ['program.py', '3', '--pool'] 7 cachewise_pool\n"
        assert err == ""

    def test_a_module_and_statistics(self, run):
        out, err = run("--pool=64M", "--stats", "-m", "program", "0")
        assert "cachewise_pool" in out and "7" in out
        assert "cachewise: capacity_bytes 67108864" in err

    @pytest.mark.parametrize("arguments, sentence", [
        (["--pool", "64M"], "found no program"), (["--pool", "64M", "absent.py"], "absent.py: no such file"),
        (["--pool", "none", "program.py"], "found 'none'"), (["--pool", "64M", "--what", "program.py"], "--what"),
    ])  # fmt: skip
    def test_what_is_refused(self, run, arguments, sentence):
        assert sentence in run(*arguments, status=2)[1]

    @pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
    def test_workers_have_a_pool(self, run, tmp_path, method):
        (tmp_path / "workers.py").write_text(
            "import multiprocessing, sys\n"
            "import cachewise.numpy\n"
            "def ask(_):\n"
            "    return cachewise.numpy.is_enabled(), cachewise.numpy.stats()['capacity_bytes']\n"
            "if __name__ == '__main__':\n"
            "    with multiprocessing.get_context(sys.argv[1]).Pool(2) as workers:\n"
            "        print(workers.map(ask, range(3)))\n"
        )
        out, err = run("--pool", "64M", "workers.py", method)
        assert out == f"{[(True, 64 << 20)] * 3}\n", err

    @pytest.mark.parametrize("call", ["multiprocessing", "multiprocessing.get_context('forkserver')"])
    def test_workers_of_a_fork_server_with_modules_of_its_own_have_a_pool(self, run, tmp_path, call):
        (tmp_path / "own.py").write_text("")
        (tmp_path / "workers.py").write_text(
            "import multiprocessing, sys\n"
            "import cachewise.numpy\n"
            "def ask(_):\n"
            "    return cachewise.numpy.is_enabled(), 'own' in sys.modules\n"
            "if __name__ == '__main__':\n"
            f"    {call}.set_forkserver_preload(['own'])\n"
            "    with multiprocessing.get_context('forkserver').Pool(2) as workers:\n"
            "        print(workers.map(ask, range(3)))\n"
        )
        out, err = run("--pool", "64M", "workers.py")
        assert out == f"{[(True, True)] * 3}\n", err


# Another package replaces `start`, and `run` in it: takes it as it is or its function, hands on anything or nothing.
WRAPPED = """
    import sys, threading
    import numpy as np
    kind, first = sys.argv[1:]
    def wrap():
        start = threading.Thread.start
        def wrapped(self, *arguments, **named):
            run = self.run
            function = getattr(run, "__func__", run)
            if kind == "function":
                self.run = lambda *a: function(threading.current_thread(), *a[1:])
            elif kind == "bound":
                self.run = lambda *a, **k: run()
            elif kind == "arguments":
                self.run = lambda *a, **k: run(*a, **k)
            return start(self, *arguments, **named)
        threading.Thread.start = wrapped
    def enable():
        import cachewise.numpy
        cachewise.numpy.enable(pool="64M")
    for step in (wrap, enable) if first == "wrap" else (enable, wrap):
        step()
    import cachewise.numpy
    ran = []
    def work(*arguments):
        ran.append((arguments, cachewise.numpy.is_enabled()))
    class Own(threading.Thread):
        def run(self):
            work("own")
    class OfInstance(threading.Thread):
        def __init__(self):
            super().__init__()
            self.run = lambda *_: work("instance")
    threads = [threading.Thread(target=work, args=("target",)), Own(), OfInstance(), threading.Timer(0, work)]
    for thread in threads:
        thread.start()
        thread.join()
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(2) as executor:
        executor.submit(work, "executor").result(30)
    assert ran == [((name,), True) for name in ("target", "own", "instance")] + [((), True), (("executor",), True)], ran
    print("all ran")
"""


@pytest.mark.parametrize("kind", ["function", "bound", "arguments"])
@pytest.mark.parametrize("first", ["wrap", "enable"])
def test_threads_run_though_another_package_replaces_them_too(in_new_process, kind, first):
    assert in_new_process(WRAPPED, kind, first) == "all ran\n"


def test_start_hands_on_what_it_is_called_with(in_new_process):
    program = """
        import threading
        start = threading.Thread.start
        def start_with(self, *arguments, **named):
            print(arguments, named)
            return start(self)
        threading.Thread.start = start_with
        import cachewise.numpy
        cachewise.numpy.enable(pool="64M")
        thread = threading.Thread(target=print, args=("ran",))
        thread.start(1, word=2)
        thread.join()
        threading.Thread.start(self=threading.Thread())
        try:
            thread.start()
        except RuntimeError as error:
            print(error, "run" in vars(thread))
    """
    expected = "(1,) {'word': 2}\nran\n() {}\n() {}\nthreads can only be started once False\n"
    assert in_new_process(program) == expected
