# CPython's own buffers: slices copied and hashed, copied and dropped, appended, translated.
set -eu
. "$COMMON"
case $1 in
prepare)
    need_python "import zlib" "python3 not installed"
    ;;
run)
    on_one_cpu
    "$(cat "$PREPARED/python")" - "$(part 600)" <<'PYTHON'
import hashlib, sys, zlib

data = bytearray(range(256)) * (1 << 15)
ring = [bytes(1)] * 16
check = 0
for n in range(int(sys.argv[1])):
    part = bytes(memoryview(data)[n * 4096 : n * 4096 + (4 << 20)])   # copied, read at once
    check = zlib.crc32(part, check)
    ring[n % 16] = bytes(memoryview(data)[: 2 << 20])                 # copied, read late or never
    grown = bytearray(part)
    grown += ring[(n + 5) % 16]
    check = zlib.crc32(grown[-64:], check)
print(check, hashlib.sha256(b"".join(ring)).hexdigest())
PYTHON
    ;;
esac
