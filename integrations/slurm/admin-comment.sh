#!/bin/sh
# admin-comment.sh JOB TEXT: puts a line behind what stands in a job's AdminComment. What is there is kept; a job that has a line of
# oomdoctor gets no second one; data of another program (Jobstats' JS1:..., JSON) is left as it is, since text behind it would spoil it.
# Who runs it needs the rights of an operator in Slurm.
set -eu

job=$1
case $job in '' | *[!0-9]*) echo "not the number of a job: $job" >&2; exit 2 ;; esac
# Quotes and commas mean something to sacctmgr.
text=$(printf '%s' "$2" | LC_ALL=C tr -c '[:alnum:] .:/_-' ' ' | tr -s ' ' | cut -c 1-300)

there=$(sacct --noheader --parsable2 --allocations --jobs "$job" --format AdminComment)
case $there in
  *'oomdoctor:'* | JS1:* | '{'*) exit 0 ;;
esac
sacctmgr --immediate modify job "$job" set AdminComment="${there:+$there }oomdoctor: $text"
