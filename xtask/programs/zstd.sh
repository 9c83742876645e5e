# zstd: there and back.
set -eu
case $1 in
prepare)
    command -v zstd >/dev/null || { echo "zstd not installed"; exit 77; }
    cat /usr/bin/[a-g]* /lib/*-linux-gnu/libc.so.6 2>/dev/null | head -c 24000000 >material
    ;;
run)
    zstd -q -9 --single-thread -c "$PREPARED/material" >packed
    zstd -q -dc packed | cmp - "$PREPARED/material"
    sha256sum <packed
    ;;
esac
