#!/bin/bash
# Programs that nobody wrote for this project, each plain and under the preload library: status, output
# and messages have to be the same.
#
#   xtask/strangers/run.sh [PROGRAM...]      all, or these; DIRECTORY=target/release holds the libraries
#
# Every program runs plain, on the library, and with statistics. What is not installed is named; with REQUIRED=1 that is a failure. Debian's packages:
#   apt-get install nginx-light memcached lua5.4 ruby perl php-cli ffmpeg imagemagick nodejs
#       default-jdk-headless ocaml-nox guile-3.0 r-base-core jq python3
# Each case is a file beside this one; it prints what has to be the same every time, and nothing else. It runs
# in an empty directory, and starts what is to be tested by "$UNDER", which sets the libraries.
set -u
here=$(cd "$(dirname "$0")" && pwd)
libraries=$(cd "${DIRECTORY:-$here/../../target/release}" && pwd) || exit 2
small=$libraries/libcachewise_preload.so
counting=$libraries/libcachewise_preload_stats.so
for library in "$small" "$counting"; do
    [ -f "$library" ] || { echo "$library is not there: cargo build --release -p cachewise-preload -p cachewise-preload-stats"; exit 2; }
done
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

# The variables of a mode, as words for env.
mode() {
    case $1 in
    plain) ;;
    library) echo "LD_PRELOAD=$small" ;;
    statistics) echo "LD_PRELOAD=$counting CACHEWISE_STATS=$work/counts" ;;
    esac
}

[ $# -gt 0 ] || set -- $(cd "$here" && ls *.case | sed 's/\.case$//')
failed=0
ran=0
for name in "$@"; do
    missing=
    for program in $(sed -n 's/^# needs //p' "$here/$name.case"); do
        command -v "$program" >/dev/null || missing="$missing $program"
    done
    if [ -n "$missing" ]; then
        echo "$name: not installed:$missing"
        [ -z "${REQUIRED:-}" ] || failed=1
        continue
    fi
    line="$name:"
    for mode in plain library statistics; do
        mkdir "$work/in"
        printf '#!/bin/sh\nexec env %s "$@"\n' "$(mode $mode)" >"$work/under"
        chmod +x "$work/under"
        (cd "$work/in" && UNDER=$work/under timeout "${LIMIT:-120}" bash "$here/$name.case") \
            >"$work/out" 2>"$work/err"
        echo "status $?" >>"$work/out"
        rm -rf "$work/in"
        if [ $mode = plain ]; then
            mv "$work/out" "$work/expected" && mv "$work/err" "$work/told"
            if ! grep -q '^status 0$' "$work/expected"; then
                line="$line fails by itself"
                cat "$work/expected" "$work/told"
                failed=1
                break
            fi
        elif cmp -s "$work/out" "$work/expected" && cmp -s "$work/err" "$work/told"; then
            line="$line $mode"
        else
            line="$line $mode OTHER"
            diff "$work/expected" "$work/out" | head -20
            diff "$work/told" "$work/err" | head -20
            failed=1
        fi
    done
    echo "$line ($(grep -vc '^status' "$work/expected") lines)"
    ran=$((ran + 1))
done
echo "$ran programs; $([ $failed = 0 ] && echo 'the same in every mode' || echo 'NOT all the same')"
exit $failed
