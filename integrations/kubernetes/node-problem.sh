#!/bin/sh
# node-problem-detector plugin: whether this node has more memory failures than its share, from the figures that
# `oomdoctor triage metrics` wrote. 0 fine, 1 a problem, 2 nobody knows. Of the output 80 bytes are kept:
# https://github.com/kubernetes/node-problem-detector/blob/master/docs/custom_plugin_monitor.md
figures=${OOMDOCTOR_METRICS:-/var/lib/oomdoctor/oomdoctor.prom}
node=${NODE_NAME:-$(uname -n)}

[ -r "$figures" ] || { echo "no figures of oomdoctor"; exit 2; }
failed=$(awk -v head="oomdoctor_node_memory_failures{node=\"$node\"} " 'index($0, head) == 1 { print $NF }' "$figures")
case $failed in
  '') echo "no more memory failures than elsewhere" ;;
  *[!0-9]*) echo "the figures of oomdoctor cannot be read"; exit 2 ;;
  *) echo "$failed memory failures, more than its share: look at who holds its cards"; exit 1 ;;
esac
