#!/bin/sh
# node-problem-detector plugin: reports whether this node has more than its share of memory failures, from the metrics written by
# `oomdoctor triage metrics`. Exit status: 0 fine, 1 a problem, 2 unknown. 80 bytes of the output are kept:
# https://github.com/kubernetes/node-problem-detector/blob/master/docs/custom_plugin_monitor.md
figures=${OOMDOCTOR_METRICS:-/var/lib/oomdoctor/oomdoctor.prom}
node=${NODE_NAME:-$(uname -n)}

[ -r "$figures" ] || { echo "no oomdoctor metrics"; exit 2; }
failed=$(awk -v head="oomdoctor_node_memory_failures{node=\"$node\"} " 'index($0, head) == 1 { print $NF }' "$figures")
case $failed in
  '') echo "no more memory failures than elsewhere" ;;
  *[!0-9]*) echo "cannot parse the oomdoctor metrics"; exit 2 ;;
  *) echo "$failed memory failures, more than its share: check what is using its GPUs"; exit 1 ;;
esac
