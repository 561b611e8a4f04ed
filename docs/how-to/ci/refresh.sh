#!/bin/sh
# One refresh, from a clone to a pushed branch and a bundle: for the CronJob and the timer in this folder.
# The working folder is a clone with manifests/, landfall.lock and sent.lock. The exit code is that of landfall: a partly
# failed run fails, but what it did is pushed.
set -eu
: "${BUNDLES:=bundles}"
: "${BRANCH:=refresh}"
mkdir -p "$BUNDLES"
git fetch --quiet origin
git switch --quiet --force -C "$BRANCH" origin/HEAD
# keep the first-seen times of a branch that nobody merged
if git cat-file -e "origin/$BRANCH:landfall.lock.seen" 2>/dev/null; then
    git show "origin/$BRANCH:landfall.lock.seen" >> landfall.lock.seen
fi
code=0
landfall refresh -f manifests --digests --since sent.lock -o "$BUNDLES/delta.bundle" --report "$BUNDLES/refresh.json" || code=$?
landfall diff sent.lock landfall.lock --output markdown > "$BUNDLES/body.md"
git add manifests landfall.lock*
if ! git diff --cached --quiet; then
    git commit --quiet -m "Refresh: newer versions" -m "$(cat "$BUNDLES/body.md")"
    git push --quiet --force origin "$BRANCH"
fi
exit "$code"
