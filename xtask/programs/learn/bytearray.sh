# CPython's own buffers: slices copied and hashed, copied and dropped, appended, translated.
set -eu
case $1 in
prepare)
    command -v python3 >/dev/null || { echo "python3 not installed"; exit 77; }
    ;;
run)
    python3 - <<'PYTHON'
import hashlib, zlib

data = bytearray(range(256)) * (1 << 15)
ring = [bytes(1)] * 16
check = 0
for n in range(600):
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
