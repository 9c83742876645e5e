# 48 MB of programs packed and unpacked.
set -eu
case $1 in
prepare)
    command -v zstd >/dev/null || { echo "zstd not installed"; exit 77; }
    cat /usr/bin/[a-p]* /lib/*-linux-gnu/libc.so.6 2>/dev/null | head -c 48000000 >material
    ;;
run)
    zstd -q -11 --single-thread -c "$PREPARED/material" >packed
    zstd -q -dc packed | cmp - "$PREPARED/material"
    sha256sum <packed
    ;;
esac
