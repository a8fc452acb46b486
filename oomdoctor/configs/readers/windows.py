"""Scripts of Windows, batch files and PowerShell, written as a shell's script of the same length, so that places stay."""

from __future__ import annotations

import re

BATCH, POWERSHELL = (".bat", ".cmd"), (".ps1",)
JOINER = "\x01"
"""Stands for a blank in the value of `set NAME=a b`, which has no quotes: a reader takes it for a part of the word."""
_SET = re.compile(r"(?im)^([ \t@]*set[ \t]+)(\"?)([A-Za-z_]\w{0,100})=([^\r\n\"]*)")
_REFERENCE = re.compile(r"%([A-Za-z_]\w{0,100})%")
_AT = re.compile(r"(?m)^[ \t]*@")
_COMMENT = re.compile(r"(?im)^[ \t@]*(?:rem\b|::)[^\r\n]*")
_STARTS = re.compile(r"(?im)^[ \t@]*(?:call|start[ \t]+\"[^\"\r\n]*\"(?:[ \t]{1,8}/\w{1,32}){0,8})(?=[ \t])")
_ASSIGNS = re.compile(r"(?m)^([ \t]*)\$(?:env:)?([A-Za-z_]\w{0,100})[ \t]*(\+?=)[ \t]*(@(?=\())?", re.IGNORECASE)
_USES = re.compile(r"\$(?:env:)?([A-Za-z_]\w{0,100})", re.IGNORECASE)
_SPLAT = re.compile(r"(?<=[ \t])@(?=[A-Za-z_])")
_ARRAY = re.compile(r"@\([^()]{0,20000}\)")
_COMMA = re.compile(r",(?=[ \t\r\n)])")


def as_shell(file: str, text: str) -> str:
    """Return the text of a script as a shell would be given it; that of any other file stays as it is.

    Names of variables are in capitals: in Windows their case does not count. A path has `/` for `\\`.
    """
    name = file.lower()
    if name.endswith(BATCH):
        return _batch(text)
    return _powershell(text) if name.endswith(POWERSHELL) else text


def _batch(text: str) -> str:
    text = _COMMENT.sub(lambda match: "#" + " " * (len(match[0]) - 1), text.replace("\\", "/"))
    text = _AT.sub(lambda match: " " * len(match[0]), _STARTS.sub(lambda match: " " * len(match[0]), text))
    text = _SET.sub(lambda match: f"{match[1].lower()}{match[2]}{match[3].upper()}={_joined(match[4])}", text)
    return _REFERENCE.sub(lambda match: match[0].upper(), text)


def _joined(value: str) -> str:
    bare = value.rstrip()
    return bare.replace(" ", JOINER) + value[len(bare) :]


def _powershell(text: str) -> str:
    text = text.replace("\\", "/")
    text = _ARRAY.sub(lambda match: _COMMA.sub(" ", match[0]), text)
    text = _ASSIGNS.sub(_assigned, text)
    text = _SPLAT.sub("$", text)
    return _USES.sub(lambda match: match[0][0] + match[0][1:].replace(match[1], match[1].upper()), text)


def _assigned(match: re.Match[str]) -> str:
    """Return `   NAME=` for `$name = `, as long as that is."""
    shell = f"{match[2].upper()}{match[3]}"
    return " " * (len(match[0]) - len(shell)) + shell
