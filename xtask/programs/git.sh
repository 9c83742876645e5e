# Clone, gc and fsck of a repository, this project's where it is one.
set -eu
. "$COMMON"
case $1 in
prepare)
    need git
    # Of a smaller input, the last commits.
    set --
    if [ "${PERCENT:-100}" != 100 ] && commits=$(git -C "$REPOSITORY" rev-list --count HEAD 2>/dev/null); then
        set -- --depth "$(part "$commits")"
    fi
    if ! git clone -q --bare "$@" "file://$REPOSITORY" source.git 2>/dev/null; then
        git init -q --bare source.git
        awk -v commits="$(part 60)" 'BEGIN {
            for (commit = 1; commit <= commits; commit++) {
                printf "commit refs/heads/main\ncommitter A <a@b> %d +0000\ndata 1\n%d\n",
                    1000000000 + commit, commit % 10
                for (file = commit % 7; file < 200; file += 7) {
                    text = ""
                    for (line = 0; line < 200; line++)
                        text = text "line " line " of file " file " as of " commit * (line % 9 == 0) "\n"
                    printf "M 644 inline file%d\ndata %d\n%s\n", file, length(text), text
                }
            }
        }' | git --git-dir=source.git fast-import --quiet
        git --git-dir=source.git symbolic-ref HEAD refs/heads/main
    fi
    ;;
run)
    export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
    git clone -q "file://$PREPARED/source.git" work
    cd work
    git -c pack.threads=1 -c gc.aggressiveWindow=60 -c gc.auto=0 gc -q --aggressive --prune=now
    git fsck --full --strict 2>&1 | grep -v -i 'checking\|notice' || true
    git rev-parse HEAD
    git archive HEAD | sha256sum
    git log -p --stat | sha256sum
    git verify-pack -v .git/objects/pack/*.idx | sha256sum
    ;;
esac
