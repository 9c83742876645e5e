#!/usr/bin/env bash
# Builds BASE (a commit, in a worktree of its own) and the checkout in which it runs by BUILD, and compares COMMAND in both.
# Ends with 3 where the head is slower; "cannot tell" (4) is a warning. Set FIGURES and OPTIONS as in action.yml.
set -euo pipefail
base="$(mktemp -d)/base"
git worktree add --quiet --detach "$base" "$BASE"
trap 'git worktree remove --force "$base"' EXIT
for side in "$base" "$PWD"; do
    (cd "$side" && bash -c "$BUILD") || { echo "::error::the build failed in $side: $BUILD"; exit 1; }
done
summary="$(mktemp)"
# OPTIONS is split at spaces.
# shellcheck disable=SC2086
options=(--directory-old "$base" --directory-new "$PWD" --markdown "$summary" ${FIGURES:+--figures "$FIGURES"} ${OPTIONS:-})
status=0
cachewise compare "${options[@]}" "$COMMAND" "$COMMAND" || status=$?
cat "$summary"
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$summary" >>"$GITHUB_STEP_SUMMARY"
case "$status" in
    3) echo "::error::the head is slower than $BASE" ;;
    4) echo "::warning::cachewise cannot tell the two apart"; status=0 ;;
esac
exit "$status"
