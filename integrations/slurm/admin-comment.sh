#!/bin/sh
# admin-comment.sh JOB TEXT: appends a line to a job's AdminComment. The existing text is kept; a job that already has a line from
# oomdoctor gets no second one; data from another program (Jobstats' JS1:..., JSON) is left alone, because appended text would corrupt it.
# Requires operator privileges in Slurm.
set -eu

job=$1
case $job in '' | *[!0-9]*) echo "not a job ID: $job" >&2; exit 2 ;; esac
# Quotes and commas have a special meaning in sacctmgr.
text=$(printf '%s' "$2" | LC_ALL=C tr -c '[:alnum:] .:/_-' ' ' | tr -s ' ' | cut -c 1-300)

there=$(sacct --noheader --parsable2 --allocations --jobs "$job" --format AdminComment)
case $there in
  *'oomdoctor:'* | JS1:* | '{'*) exit 0 ;;
esac
sacctmgr --immediate modify job "$job" set AdminComment="${there:+$there }oomdoctor: $text"
