# 400,000 lines sorted by their words.
set -eu
. "$COMMON"
case $1 in
prepare)
    need sort awk
    awk -v n="$(part 400000)" 'BEGIN { for (i = 0; i < n; i++) { x = (x * 1103515245 + 12345) % 2147483648; print x, i } }' >lines
    ;;
run) sort -k2 -k1n --parallel=1 "$PREPARED/lines" | sha256sum ;;
esac
