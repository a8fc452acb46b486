#!/bin/sh
# with-verdict.sh COMMAND...: runs a container's command and, where it fails, leaves one line about its memory as the termination
# message. It ends with the status of the command; with OOMDOCTOR_EXIT_CODES=job with 42 where the same failure would come again, for
# podFailurePolicy. The message is cut at 2,048 bytes; Kubernetes keeps 4,096 of a container and 12 KiB of a pod
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
# A signal ends the wait, not the command.
while kill -0 "$child" 2> /dev/null; do
  wait "$child"
  status=$?
done
# A process that the command left behind can hold the pipe open: it is not waited for.
for _ in 1 2 3 4 5; do
  kill -0 "$copy" 2> /dev/null || break
  sleep 1
done

if [ "$status" -ne 0 ]; then
  line=$(oomdoctor verdict "$log" --lang en --exit-codes "$codes" 2> /dev/null)
  verdict=$?
  # What went wrong here must not hide what went wrong there.
  printf '%s' "$line" | LC_ALL=C tr -c '[:print:]' ' ' | head -c 2048 2> /dev/null > "$message"
  [ "$codes" = job ] && [ "$verdict" -eq "$restart_code" ] && status=$restart_code
fi
rm -rf "$folder"
exit "$status"
