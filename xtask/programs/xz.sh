# 14 MB of programs packed and unpacked.
set -eu
case $1 in
prepare)
    command -v xz >/dev/null || { echo "xz not installed"; exit 77; }
    cat /usr/bin/[a-g]* /lib/*-linux-gnu/libc.so.6 2>/dev/null | head -c 14000000 >material
    ;;
run)
    xz -2 -T1 -c "$PREPARED/material" >packed
    xz -dc packed | cmp - "$PREPARED/material"
    sha256sum <packed
    ;;
esac
