# zstd: a large input packed with a long window, and unpacked through a pipe.
set -eu
. "$COMMON"
case $1 in
prepare)
    need zstd
    material "$(part 150000000)" /usr/lib/*-linux-gnu/*.so* /usr/bin/[a-g]*
    ;;
run)
    zstd -q -1 --long=27 --single-thread -c "$PREPARED/material" >packed
    zstd -q -d --long=27 -c packed | cksum
    cksum <packed
    ;;
esac
