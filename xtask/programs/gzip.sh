# 32 MB of programs packed and unpacked.
set -eu
case $1 in
prepare)
    command -v gzip >/dev/null || { echo "gzip not installed"; exit 77; }
    cat /usr/bin/[a-g]* /lib/*-linux-gnu/libc.so.6 2>/dev/null | head -c 32000000 >material
    ;;
run)
    gzip -6 -n -c "$PREPARED/material" >packed
    gzip -dc packed | cmp - "$PREPARED/material"
    sha256sum <packed
    ;;
esac
