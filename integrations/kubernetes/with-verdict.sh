#!/bin/sh
# with-verdict.sh COMMAND...: runs a container's command and, if it fails, writes one line about its memory as the termination
# message. It exits with the command's status or, with OOMDOCTOR_EXIT_CODES=job, with 42 if the same failure would recur, for
# podFailurePolicy. The message is truncated to 2,048 bytes; Kubernetes keeps 4,096 per container and 12 KiB per pod
# (https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/).

message=${OOMDOCTOR_TERMINATION_LOG:-/dev/termination-log}
codes=${OOMDOCTOR_EXIT_CODES:-plain}
restart_code=42
folder=$(mktemp -d) || exec "$@"
log="$folder/log"
mkfifo "$folder/pipe" || exec "$@"

tee "$log" < "$folder/pipe" &
copy=$!
"$@" > "$folder/pipe" 2>&1 &
child=$!
trap 'kill -TERM "$child" 2> /dev/null' TERM
trap 'kill -INT "$child" 2> /dev/null' INT
wait "$child"
status=$?
# A signal interrupts the wait, not the command.
while kill -0 "$child" 2> /dev/null; do
  wait "$child"
  status=$?
done
# A process left behind by the command can keep the pipe open; do not wait for it.
for _ in 1 2 3 4 5; do
  kill -0 "$copy" 2> /dev/null || break
  sleep 1
done

if [ "$status" -ne 0 ]; then
  line=$(oomdoctor verdict "$log" --lang en --exit-codes "$codes" 2> /dev/null)
  verdict=$?
  # An error in this script must not hide the error of the command.
  printf '%s' "$line" | LC_ALL=C tr -c '[:print:]' ' ' | head -c 2048 2> /dev/null > "$message"
  [ "$codes" = job ] && [ "$verdict" -eq "$restart_code" ] && status=$restart_code
fi
rm -rf "$folder"
exit "$status"
