#!/usr/bin/env bash
# Writes the diagnosis of $OOMDOCTOR_LOGS to the job summary; it never fails the calling job.
set -uo pipefail

mapfile -t logs < <(grep -v '^[[:space:]]*$' <<< "$OOMDOCTOR_LOGS")
oomdoctor diagnose --lang "${OOMDOCTOR_LANG:-en}" --format markdown --env none -- "${logs[@]}" >> "$GITHUB_STEP_SUMMARY"
case $? in
  0) failed=no ;;
  1) failed=yes ;;
  *) failed=unknown ;;
esac
echo "memory-failure=$failed" >> "$GITHUB_OUTPUT"
