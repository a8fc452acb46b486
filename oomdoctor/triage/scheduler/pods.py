"""Kubernetes records: pods from `kubectl get pods -o json`, as one object per line or as a list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Union

from msgspec import DecodeError, Struct, ValidationError, field
from msgspec.json import Decoder

from oomdoctor.triage.scheduler.record import JobRecord, seconds

_OWNER_LABELS = (
    "training.kubeflow.org/job-name",
    "jobset.sigs.k8s.io/jobset-name",
    "leaderworkerset.sigs.k8s.io/name",
    "volcano.sh/job-name",
    "batch.kubernetes.io/job-name",
)
"""Labels of Kubeflow training-operator, JobSet, LeaderWorkerSet, Volcano and Kubernetes Job that name the job of a pod."""
_INDEX_LABELS = ("training.kubeflow.org/replica-index", "batch.kubernetes.io/job-completion-index")
_ROLE = re.compile(r"-(?:master|chief|launcher)-0$|-worker-(\d{1,6})$|-node-\d{1,6}-(\d{1,6})(?:-[a-z0-9]{5})?$")
_KILLED = "OOMKilled"


class _Ended(Struct):
    reason: str | None = None
    exit_code: int | None = field(default=None, name="exitCode")
    started: str | None = field(default=None, name="startedAt")
    finished: str | None = field(default=None, name="finishedAt")


class _ContainerState(Struct):
    terminated: _Ended | None = None


class _Container(Struct):
    state: _ContainerState | None = None
    last: _ContainerState | None = field(default=None, name="lastState")


class _Status(Struct):
    phase: str | None = None
    reason: str | None = None
    containers: list[_Container] = field(default_factory=list, name="containerStatuses")


class _Meta(Struct):
    name: str = ""
    namespace: str = ""
    uid: str | None = None
    labels: dict[str, str] = {}


class _Spec(Struct):
    node: str | None = field(default=None, name="nodeName")


class _Pod(Struct):
    kind: str = ""
    metadata: _Meta = field(default_factory=_Meta)
    spec: _Spec = field(default_factory=_Spec)
    status: _Status = field(default_factory=_Status)
    items: list[_Pod] = field(default_factory=list)


_DECODER = Decoder(Union[_Pod, list[_Pod]])


def read_pods(text: bytes) -> Iterator[JobRecord]:
    """Yield the pods in an object or a list of objects; other kinds are ignored. Raise ValueError if the text is not such JSON."""
    try:
        read = _DECODER.decode(text)
    except (DecodeError, ValidationError, RecursionError) as why:
        raise ValueError(str(why)) from why
    listed = read if isinstance(read, list) else read.items or [read]
    yield from (_record(pod) for pod in listed if pod.kind == "Pod")


def _record(pod: _Pod) -> JobRecord:
    meta, role = pod.metadata, _ROLE.search(pod.metadata.name)
    owner = next((meta.labels[label] for label in _OWNER_LABELS if label in meta.labels), None)
    states = (state for container in pod.status.containers for state in (container.state, container.last))
    ends = [state.terminated for state in states if state is not None and state.terminated is not None]
    killed = [end for end in ends if end.reason == _KILLED]
    last = next(iter(killed or ends), _Ended())
    return JobRecord(
        source="pod",
        job=f"{meta.namespace}/{owner or (meta.name[: role.start()] if role else meta.name)}",
        user=meta.labels.get("user"),
        state=last.reason or pod.status.reason or pod.status.phase,
        exit_code=last.exit_code,
        started=seconds(last.started),
        ended=seconds(last.finished),
        nodes=() if pod.spec.node is None else (pod.spec.node,),
        rank=_rank(pod, role),
        uid=meta.uid,
        out_of_memory=bool(killed),
    )


def _rank(pod: _Pod, role: re.Match[str] | None) -> int | None:
    """Return the rank of a pod: a worker's number is counted after the master, an index is the rank."""
    if role is not None and role[1] is not None:
        return int(role[1]) + 1
    index = next(
        (pod.metadata.labels[label] for label in _INDEX_LABELS if label in pod.metadata.labels), role[2] if role is not None else None
    )
    return int(index) if index is not None and index.isdigit() else None
