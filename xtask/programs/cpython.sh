# CPython's own regression tests: those of types and modules that move bytes, and are deterministic.
set -eu
tests="test_bytes test_array test_memoryview test_buffer test_struct test_binascii test_base64
test_json test_pickle test_unicode test_list test_dict test_set test_tuple test_long test_hashlib
test_zlib test_bz2 test_lzma test_mmap test_re test_bisect test_heapq test_deque test_itertools
test_string test_codecs test_marshal test_copy test_difflib test_textwrap test_csv test_zipfile
test_decimal test_sort test_generators test_descr test_ast test_compile test_random"
case $1 in
prepare)
    command -v python3 >/dev/null || { echo "python3 not installed"; exit 77; }
    python3 -c 'import test.support' 2>/dev/null || { echo "no test package"; exit 77; }
    ;;
run)
    PYTHONHASHSEED=0 python3 -m test --tempdir "$PWD" $tests >told 2>&1 || status=$?
    # Without the durations and the temporary names. A crash is a status of its own.
    grep -E '^(All |[0-9]+ tests? |    test_)' told || true
    echo "status ${status:-0}"
    ;;
esac
