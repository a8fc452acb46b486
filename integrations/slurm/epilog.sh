#!/bin/sh
# Slurm epilog (Epilog= in slurm.conf): writes a ticket with the job's log files to a spool folder, and nothing else.
# It always exits with 0, because any other status drains the node, calls no Slurm command, and waits for nothing:
# https://slurm.schedmd.com/prolog_epilog.html. slurmd runs it as root, without a PATH, on every node of the job.
# The spool folder must be visible to all nodes, so that each job has one ticket regardless of its number of nodes.

PATH=/usr/bin:/bin
spool=${OOMDOCTOR_SPOOL:-/var/spool/oomdoctor}

drop_ticket() {
  case $SLURM_JOB_ID in '' | *[!0-9]*) return ;; esac
  [ -d "$spool" ] || return
  new="$spool/.$SLURM_JOB_ID.$$"
  # One name per line: a path containing a line break is ignored by the reader of the ticket.
  printf '%s\n' "$SLURM_JOB_UID" "$SLURM_JOB_STDOUT" "$SLURM_JOB_STDERR" > "$new" && mv -f "$new" "$spool/$SLURM_JOB_ID.ticket"
}

drop_ticket > /dev/null 2>&1
exit 0
