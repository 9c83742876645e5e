# zstd: a large input packed with a long window, and unpacked through a pipe.
set -eu
case $1 in
prepare)
    command -v zstd >/dev/null || { echo "zstd not installed"; exit 77; }
    cat /usr/lib/*-linux-gnu/*.so* /usr/bin/[a-g]* 2>/dev/null | head -c 150000000 >material
    ;;
run)
    zstd -q -1 --long=27 --single-thread -c "$PREPARED/material" >packed
    zstd -q -d --long=27 -c packed | cksum
    cksum <packed
    ;;
esac
