#!/bin/sh
# Reads the tickets written by epilog.sh and triages the logs of all finished jobs. If OOMDOCTOR_ADMIN_COMMENT names a script for it
# (admin-comment.sh), adds a line to the AdminComment of each job that ran out of memory. Run by oomdoctor-triage.timer as a dedicated user.
set -eu

spool=${OOMDOCTOR_SPOOL:-/var/spool/oomdoctor}
store=${OOMDOCTOR_STORE:-/var/lib/oomdoctor}
comment=${OOMDOCTOR_ADMIN_COMMENT:-}
at_once=1000

# Users choose the path of a log, so only regular files owned by the job's user are read, by absolute path.
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
  # A comment that cannot be written does not block the others; a ticket is deleted once its job has been examined.
  [ -z "$comment" ] || comment_on "$ticket" || echo "no comment for $(basename "$ticket" .ticket)" >&2
  rm -f "$ticket"
done
