"""What launchers, containers, schedulers and loggers put before a line: of which rank or worker it is, and when it was printed."""

from __future__ import annotations

import re

STAMP = r"\d{4}[-/]\d\d[-/]\d\d[T |]{1,3}\d\d:\d\d:\d\d(?:[.,:]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_PREFIXES = (
    r"(?:\[\][ ])?\[?(?:rank|default)[ =]?(?P<rank>\d{1,5})\]:?[ ]?",  # copying a line often loses its first character
    r"rank ?(?P<rank2>\d{1,5}):[ ]",
    r"(?P<srun>\d{1,4}):[ ](?=[ ]{0,60}\S|[ ]{0,60}$)",
    r"\((?P<worker>[A-Za-z_][^\s()]{0,80}?)?(?:[ ]?rank=(?P<rank3>\d{1,5}))?[ ]?\bpid=(?P<pid>\d{1,8})(?:,[ ]?ip=[\w.:]{1,45})?\)[ ]?",
    r"\((?:raylet|gcs_server|autoscaler)(?:[ ,][^()]{0,60})?\)[ ]",
    r"(?!slurm|srun)(?:[a-z][a-z0-9]{0,20}(?:-[a-z0-9]{1,30}){0,6}-[a-z0-9]{0,30}"
    r"|(?:node|worker|host|dgx|hgx|gpu|server|compute|cn|gn))\d{1,5}:[ ](?!error:|[^\s]{1,40}\s*$)",
    r"[A-Za-z][\w.-]{0,60}[ ]{1,30}\|[ ](?=\S|[ ]|$)",
    r">{1,6}(?:[ ]|(?=\w))",
    r"E[ ]{3}",
    r"std(?:err|out):[ ]",
    r"\[\d{4}-\d\d-\d\d[ ]\d\d:\d\d:\d\d(?:[ ]DP\d{1,4})?[ ]TP(?P<rank4>\d{1,5})(?:[ ][A-Z]{2}\d{1,4}){0,2}\][ ]",
    rf"(?P<time>\[?{STAMP}\]?)[ ]?(?:std(?:err|out)[ ][FP][ ]|\d\d[OE][ +])?",  # the runtime of containers, GitLab
    r"(?:INFO|WARNING|WARN|ERROR|DEBUG|CRITICAL|FATAL)[ ](?P<time2>\d\d-\d\d[ ]\d\d:\d\d:\d\d)(?:[.,]\d{1,6})?[ ]",
    r"\[(?P<time3>\d\d:\d\d:\d\d)\][ ]",
    r"\[[ ]{0,8}\d{1,9}\.\d{3,6}\][ ]?",
    r"\[[^\W\d]{2,3}\.?[ ][^\W\d]{2,4}\.?[ ]{1,2}\d{1,2}[ ]\d\d:\d\d:\d\d[ ]\d{4}\][ ]?",
    r"[A-Z][a-z]{2}[ ]{1,2}\d{1,2}[ ](?P<time4>\d\d:\d\d:\d\d)[ ](?:(?:[\w.-]{1,64}[ ])?kernel:[ ]?"
    r"|[\w.-]{1,64}[ ](?=[\w./@-]{1,60}\[\d{1,8}\]:[ ]))",
    r"\[\d{2,8}\][ ](?=\[)",
    r"\d{1,8}:[A-Z][ ]\d\d[ ][A-Z][a-z]{2}[ ]\d{4}[ ]\d\d:\d\d:\d\d\.\d{3}[ ][.*#-][ ]",  # Redis
    r"\[\d{4}-\d\d-\d\d,[ ]\d\d:\d\d:\d\d[ ][A-Z]{3,4}\][ ]"
    r"(?:\{(?:subprocess|logging_mixin|pod_manager|process_utils|docker)\.py:\d{1,6}\}[ ]INFO[ ]-[ ])?",
    r"\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\][ ]",
    r"(?:\[[\w.:-]{1,60}\][ ]){0,3}(?:\[PID:\d{1,8}\][ ])?\[(?:RANK|Rank)[ :=](?P<rank5>\d{1,5})\](?:[ ]\[[A-Z]\])?[ ]",
)
"""What stands before a line; of Airflow also what it says of each line that a program printed (airflow hooks/subprocess.py and others)."""
PREFIX = re.compile(r"\s{0,8}(?:" + "|".join(f"(?P<kind{number}>{prefix})" for number, prefix in enumerate(_PREFIXES)) + ")")
