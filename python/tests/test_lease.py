"""Leases and pinned memory: a server that runs for the test, and the test library in the driver's place."""

import contextlib
import ctypes
import gc
import json
import os
import socket
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

import cachewise
from cachewise import _command, _lease

DRIVER = Path(__file__).parents[2] / "memory/pages/tests/cuda/driver.c"
MIB = 1 << 20


def _status(path):
    return json.loads(_command.output("scrubd", "status", "--socket", str(path), "--json"))


def _wait(ready):
    end = time.monotonic() + 60
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def scrubd(tmp_path):
    """The socket of a server with 16 MiB. Where there are no huge pages, of small ones."""
    path = tmp_path / "socket"
    for pages in "auto", "small":
        server = subprocess.Popen(
            [_command.path(), "scrubd", "--size", "16M", "--segment", "4M", "--socket", str(path),
             "--pages", pages, "--load", "1000"]
        )  # fmt: skip
        while server.poll() is None and not path.exists():
            time.sleep(0.01)
        if server.poll() is None:
            break
    yield path
    server.terminate()
    assert server.wait(10) == 0


def test_a_lease_is_zero_and_ends_with_its_last_array(scrubd):
    memory = cachewise.lease("4M", path=str(scrubd))
    assert isinstance(memory, cachewise.Lease) and len(memory) == 4 * MIB
    array = memory.numpy("uint32")
    assert array.shape == (MIB,) and not array.any()
    array[:] = 7
    assert _status(scrubd)["leased"] == 4 * MIB
    del memory
    gc.collect()
    assert array.sum() == 7 * MIB and _status(scrubd)["leased"] == 4 * MIB
    del array
    _wait(lambda: _status(scrubd)["leased"] == 0)
    with cachewise.lease("4M", path=str(scrubd)) as again:
        assert not any(again[:])


def test_why_there_is_no_lease(scrubd):
    with pytest.raises(cachewise.LeaseError, match="expected at most"):
        cachewise.lease("1T", path=str(scrubd))
    with pytest.raises(cachewise.LeaseError, match="running `cachewise scrubd`"):
        cachewise.lease("1M", path=str(scrubd) + ".none")
    with pytest.raises(ValueError, match="expected bytes"):
        cachewise.lease("much", path=str(scrubd))


def test_a_lease_keeps_its_size_and_is_shared_with_a_forked_child(scrubd):
    memory = cachewise.lease("4M", path=str(scrubd))
    for size in (2 * MIB, 8 * MIB):
        with pytest.raises(TypeError, match=f"expected none, found {size}"):
            memory.resize(size)
    assert len(memory) == 4 * MIB
    memory[:3] = b"old"
    child = os.fork()
    if child == 0:
        memory[:3] = b"new"
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert memory[:3] == b"new"


def test_the_usual_socket_is_named_by_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("CACHEWISE_SCRUBD", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert _lease.default_socket() == "/run/cachewise/scrubd.sock"
    (tmp_path / "cachewise").mkdir()
    (tmp_path / "cachewise/scrubd.sock").touch()
    assert _lease.default_socket() == str(tmp_path / "cachewise/scrubd.sock")
    monkeypatch.setenv("CACHEWISE_SCRUBD", "/named")
    assert _lease.default_socket() == "/named"
    assert (_lease.patience(0), _lease.patience(3 << 30)) == (1, 4)


def test_a_tensor_is_made_of_the_memory_itself(monkeypatch):
    torch = types.SimpleNamespace(uint8="bytes", frombuffer=lambda memory, dtype: (memory, dtype))
    monkeypatch.setitem(sys.modules, "torch", torch)
    memory = _lease.Memory(-1, 4096)
    assert memory.torch() == (memory, "bytes") and memory.torch("floats") == (memory, "floats")
    assert ctypes.string_at(memory.address(), 3) == bytes(3)


def test_a_server_that_does_not_answer_is_not_waited_for_for_ever(tmp_path):
    place = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server, contextlib.ExitStack() as clients:
        server.bind(place)
        server.listen(0)
        with pytest.raises(cachewise.LeaseError, match="no answer in 0.2 s"):
            cachewise.lease("1M", path=place, timeout=0.2)
        # Until nobody more is let in.
        with pytest.raises(BlockingIOError):
            for _ in range(8):
                client = clients.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                client.setblocking(False)
                client.connect(place)
        with pytest.raises(cachewise.LeaseError, match="no answer in 0.2 s"):
            cachewise.lease("1M", path=place, timeout=0.2)
    for timeout in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="expected seconds above 0"):
            cachewise.lease("1M", path=place, timeout=timeout)


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """The test library as libcuda.so.1, and its log."""
    library, log = tmp_path / "libcuda.so.1", tmp_path / "log"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, DRIVER], check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    monkeypatch.setenv("CACHEWISE_TEST_DRIVER_LOG", str(log))
    return log


def test_pinned_memory_is_registered_and_goes_in_the_right_order(scrubd, driver, in_new_process):
    program = """
        import gc, sys
        import cachewise.cuda
        leased = cachewise.cuda.pinned("4M", path=sys.argv[1])
        own = cachewise.cuda.pinned("3M", path=sys.argv[1] + ".none")
        assert leased.leased and not own.leased and "scrubd" in own.why_not
        assert (len(leased), len(own)) == (4 << 20, 4 << 20)
        arrays = [memory.numpy() for memory in (leased, own)]
        assert not any(array.any() for array in arrays)
        del leased
        gc.collect()
        arrays[0][:] = 1
        try:
            own.close()
        except BufferError:
            print("still used")
        del arrays
        gc.collect()
        own.close()
        kept = cachewise.cuda.pinned("2M", path=sys.argv[1]).numpy()
        print("end")
    """
    assert in_new_process(program, str(scrubd)) == "still used\nend\n"
    calls = [line.split() for line in driver.read_text().splitlines()]
    names = [name for name, *_ in calls]
    # The one that could not be closed is registered again; the last one goes with the interpreter.
    assert names.count("register") == names.count("unregister") == 4, calls
    assert "wrong" not in names and names[-1] == "unregister"
    assert sum(int(size) for name, _, size in calls if name == "register") == 14 * MIB
    _wait(lambda: _status(scrubd)["leased"] == 0)


def test_without_a_driver_or_a_device_there_is_one_sentence(driver, in_new_process, monkeypatch):
    program = """
        import cachewise.cuda
        try:
            cachewise.cuda.pinned("2M")
        except cachewise.cuda.CudaError as error:
            print(error)
    """
    monkeypatch.setenv("CACHEWISE_TEST_DRIVER", "none")
    assert in_new_process(program) == "cuInit: no CUDA-capable device is detected (error 100)\n"
    (driver.parent / "libcuda.so.1").unlink()
    if not any(Path(folder, "libcuda.so.1").exists() for folder in ("/usr/lib", "/usr/lib/x86_64-linux-gnu")):
        assert in_new_process(program).startswith("no NVIDIA driver: ")
