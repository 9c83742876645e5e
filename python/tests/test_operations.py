"""The operations against Python's and NumPy's own, and what they refuse."""

import array
import ctypes
import mmap
import sys
import threading

import cachewise
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

LARGE = 3 << 20  # the interpreter is let go for these


def pattern(n, seed=0):
    return np.random.default_rng(seed).integers(0, 256, n, dtype=np.uint8)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 4095, 4096, 100_001, LARGE])
@pytest.mark.parametrize("reuse", [None, "soon", "never"])
def test_copy_move_fill_zero_of_every_size_do_what_slices_do(n, reuse):
    src = pattern(n)
    dst = bytearray(n)
    cachewise.copy(dst, src, reuse=reuse)
    assert dst == src.tobytes()
    cachewise.fill(dst, 0xA5, reuse=reuse)
    assert dst == b"\xa5" * n
    cachewise.zero(dst, reuse=reuse)
    assert dst == bytes(n)
    cachewise.move(dst, src, reuse=reuse)
    assert cachewise.equal(dst, src)


@given(
    n=st.integers(0, 20_000),
    to=st.integers(0, 300),
    source=st.integers(0, 300),
    seed=st.integers(0, 99),
)
@settings(deadline=None)
def test_moves_that_overlap(n, to, source, seed):
    ours, theirs = pattern(n + 300, seed), pattern(n + 300, seed)
    cachewise.move(ours[to : to + n], ours[source : source + n])
    theirs[to : to + n] = theirs[source : source + n].copy()
    assert (ours == theirs).all()


ANY_DTYPE = hnp.scalar_dtypes() | hnp.array_dtypes() | hnp.nested_dtypes()


def without_objects(dtype):
    return not dtype.hasobject and dtype.itemsize > 0


@given(data=st.data())
@settings(deadline=None)
def test_any_dtype_shape_offset_and_order_as_numpy_copies(data):
    dtype = data.draw(ANY_DTYPE.filter(without_objects))
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=7))
    order = data.draw(st.sampled_from("CF"))
    offset = data.draw(st.integers(0, 65))
    n = int(np.prod(shape, dtype=int)) * dtype.itemsize
    source = np.ndarray(shape, dtype, pattern(n + offset, n), offset=offset, order=order)
    around = pattern(n + 200, 7)
    before = around.copy()
    target = np.ndarray(shape, dtype, around, offset=100, order=order)
    cachewise.copy(target, source)
    assert target.tobytes(order) == source.tobytes(order)
    assert (around[:100] == before[:100]).all() and (around[100 + n :] == before[100 + n :]).all()
    assert cachewise.equal(target, source) and cachewise.compare(target, source) == 0
    cachewise.zero(target)
    assert target.tobytes(order) == bytes(n)
    assert (around[:100] == before[:100]).all() and (around[100 + n :] == before[100 + n :]).all()


@given(a=st.binary(max_size=300), b=st.binary(max_size=300))
@settings(deadline=None)
def test_order_is_that_of_bytes(a, b):
    assert cachewise.compare(a, b) == (a > b) - (a < b)
    assert cachewise.equal(a, b) == (a == b)


def test_all_kinds_of_buffers():
    text = b"0123456789abcdef"
    file = mmap.mmap(-1, 16)
    numbers = array.array("d", [0.0, 0.0])
    fields = (ctypes.c_uint32 * 4)()
    for target in [bytearray(16), memoryview(bytearray(16)), file, numbers, fields, np.zeros(2)]:
        cachewise.copy(target, text)
        assert bytes(target) == text
        assert cachewise.equal(target, text)


def test_dates_and_other_types_that_numpy_does_not_export():
    days = np.array(["2024-01-01", "2024-02-03"], dtype="datetime64[D]")
    copied = np.zeros_like(days)
    cachewise.copy(copied, days)
    assert (copied == days).all()
    with pytest.raises(ValueError, match="read-only"):
        copied.flags.writeable = False
        cachewise.zero(copied)


def test_names_of_fields_that_numpy_does_not_export():
    records = np.zeros(3, [(":O:", "i4"), ("b", "M8[s]")])
    source = np.arange(36, dtype=np.uint8)
    cachewise.copy(records, source)
    assert records.tobytes() == source.tobytes()
    with pytest.raises(ValueError, match="':' is not an allowed"):
        cachewise.zero(np.zeros(3, [(":", "O")]))


def test_what_is_refused_is_refused_with_a_sentence():
    grid = np.zeros((8, 8))
    tensor = type("Tensor", (), {"__module__": "torch"})()
    refused = [
        (ValueError, "dst has 4 bytes and src has 5", lambda: cachewise.copy(bytearray(4), bytes(5))),
        (ValueError, "dst: expected writable memory, found read-only memory", lambda: cachewise.zero(b"abc")),
        (ValueError, "src: found elements with gaps", lambda: cachewise.copy(bytearray(64), grid[:, 0])),
        (ValueError, "one in C order and one in Fortran", lambda: cachewise.copy(grid, np.asfortranarray(grid))),
        (ValueError, "overlap", lambda: cachewise.copy(grid[1:], grid[:-1])),
        (TypeError, "dst: expected an object with the buffer protocol .*, found list", lambda: cachewise.zero([1])),
        (TypeError, r"dst: expected an object .*, found Tensor; its numpy\(\) is one", lambda: cachewise.zero(tensor)),
        (TypeError, "src: expected an object with the buffer protocol .*, found str", lambda: cachewise.copy(bytearray(1), "a")),
        (TypeError, "references to Python objects", lambda: cachewise.zero(np.array([[], {}], object))),
        (TypeError, "references to Python objects", lambda: cachewise.equal(np.zeros(2, "O"), bytes(16))),
        (TypeError, "references to Python objects", lambda: cachewise.zero(np.zeros(2, [("a", "i4"), ("b", "O")]))),
        (ValueError, 'reuse: expected "soon", "never", None, found "later"', lambda: cachewise.zero(bytearray(1), reuse="later")),
        (ValueError, "value: expected 0 to 255, found 256", lambda: cachewise.fill(bytearray(1), 256)),
        (ValueError, "value: expected 0 to 255, found -1", lambda: cachewise.fill(bytearray(1), -1)),
        (ValueError, "value: expected 0 to 255, found 1180591620717411303424", lambda: cachewise.fill(bytearray(1), 1 << 70)),
        (TypeError, "value: expected a whole number from 0 to 255, found 1.0", lambda: cachewise.fill(bytearray(1), 1.0)),
    ]
    for kind, sentence, call in refused:
        with pytest.raises(kind, match=sentence):
            call()


def test_a_field_whose_name_has_an_o_is_no_object():
    records = np.zeros(3, [("O", "i4"), ("NO", "f8")])
    records["O"] = 7
    cachewise.zero(records)
    assert not records["O"].any()


def test_the_buffer_is_let_go():
    target = bytearray(10)
    cachewise.zero(target)
    with pytest.raises(ValueError):
        cachewise.copy(target, bytes(11))
    target.extend(b"longer")  # refused while somebody holds the memory
    assert len(target) == 16


def test_another_thread_runs_during_a_large_copy():
    """With this interval no thread is made to let go: the main one runs only if the copy does."""
    src, dst = np.ones(64 << 20, np.uint8), np.empty(64 << 20, np.uint8)

    def main_ran_meanwhile():
        begun, ended = threading.Event(), []

        def work():
            begun.set()
            cachewise.copy(dst, src)
            ended.append(True)

        thread = threading.Thread(target=work)
        thread.start()
        begun.wait()
        meanwhile = not ended
        thread.join()
        return meanwhile

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        assert any(main_ran_meanwhile() for _ in range(100))
    finally:
        sys.setswitchinterval(interval)
