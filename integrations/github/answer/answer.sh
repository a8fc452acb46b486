#!/usr/bin/env bash
# Answers the issue $OOMDOCTOR_ISSUE based on its text. Posts a single comment, identified later by a hidden marker and its author.
set -euo pipefail

mark='<!-- oomdoctor:answer -->'
comments="repos/$OOMDOCTOR_REPOSITORY/issues/$OOMDOCTOR_ISSUE/comments"

# Others can write the marker too, so only a comment by our own author is edited.
known=$(gh api --paginate "$comments" | jq --null-input --raw-output --arg author "$OOMDOCTOR_AUTHOR" --arg mark "$mark" \
  '[inputs[] | select(.user.login == $author and (.body | startswith($mark)))][0].id // empty')

status=0
reply=$(printf '%s' "$OOMDOCTOR_TEXT" | oomdoctor diagnose - --reply) || status=$?
[ "$status" -le 1 ] || exit 0
# If the text shows no memory failure, post nothing unless there is already a comment.
[ "$status" -eq 1 ] || [ -n "$known" ] || exit 0

body="$mark"$'\n'"$reply"
if [ -n "$known" ]; then
  gh api --method PATCH "repos/$OOMDOCTOR_REPOSITORY/issues/comments/$known" --raw-field body="$body" > /dev/null
else
  gh api --method POST "$comments" --raw-field body="$body" > /dev/null
fi
