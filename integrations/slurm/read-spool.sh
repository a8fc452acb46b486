#!/bin/sh
# Reads the tickets of epilog.sh: triages the logs of all jobs that ended, and writes a line to the AdminComment of those that died of
# memory where OOMDOCTOR_ADMIN_COMMENT names the script for it (admin-comment.sh). Run by oomdoctor-triage.timer as a user of its own.
set -eu

spool=${OOMDOCTOR_SPOOL:-/var/spool/oomdoctor}
store=${OOMDOCTOR_STORE:-/var/lib/oomdoctor}
comment=${OOMDOCTOR_ADMIN_COMMENT:-}
at_once=1000

# The path of a log is the user's choice: only plain files of the job's own user are read, by their full path.
logs_of() {
  {
    read -r uid
    while read -r path; do
      case $path in /*) ;; *) continue ;; esac
      [ -f "$path" ] && [ ! -L "$path" ] && [ "$(stat -c %u -- "$path")" = "$uid" ] && printf '%s\n' "$path"
    done
  } < "$1" | sort -u
}

comment_on() {
  logs_of "$1" | tr '\n' '\0' | {
    line=$(xargs -0 -r oomdoctor verdict --lang en -- 2> /dev/null) || true
    case $line in '' | no:* | unread:* | possible:*) ;; *) "$comment" "$(basename "$1" .ticket)" "$line" ;; esac
  }
}

taken="$spool/taken"
mkdir -p "$taken"
find "$spool" -maxdepth 1 -name '*.ticket' -exec mv -f {} "$taken" \;
for ticket in "$taken"/*.ticket; do
  [ -e "$ticket" ] || exit 0
  logs_of "$ticket"
done | tr '\n' '\0' | xargs -0 -r -n "$at_once" oomdoctor triage logs --store "$store" --jobs 1 --exit-zero --

for ticket in "$taken"/*.ticket; do
  [ -e "$ticket" ] || exit 0
  # A comment that cannot be written does not hold up the others; a ticket goes when its job was looked at.
  [ -z "$comment" ] || comment_on "$ticket" || echo "no comment for $(basename "$ticket" .ticket)" >&2
  rm -f "$ticket"
done
