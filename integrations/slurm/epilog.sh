#!/bin/sh
# Slurm epilog (Epilog= in slurm.conf): drops a ticket with the job's log files into a spool folder, and nothing else.
# It ends with 0 whatever happens, since any other status drains the node, and it calls no Slurm command and waits for nothing:
# https://slurm.schedmd.com/prolog_epilog.html. slurmd runs it as root, without a PATH, on every node of the job.
# Put the spool folder where all nodes see it: then a job has one ticket, however many nodes it had.

PATH=/usr/bin:/bin
spool=${OOMDOCTOR_SPOOL:-/var/spool/oomdoctor}

drop_ticket() {
  case $SLURM_JOB_ID in '' | *[!0-9]*) return ;; esac
  [ -d "$spool" ] || return
  new="$spool/.$SLURM_JOB_ID.$$"
  # A name ends where its line does: a path with a line break in it is left out by who reads the ticket.
  printf '%s\n' "$SLURM_JOB_UID" "$SLURM_JOB_STDOUT" "$SLURM_JOB_STDERR" > "$new" && mv -f "$new" "$spool/$SLURM_JOB_ID.ticket"
}

drop_ticket > /dev/null 2>&1
exit 0
