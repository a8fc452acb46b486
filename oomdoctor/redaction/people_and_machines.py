"""What names people and machines: homes, accounts, hosts, addresses of mail and of networks."""

from __future__ import annotations

from oomdoctor.redaction.secret_pattern import has_digit, is_user
from oomdoctor.redaction.secret_pattern import pattern as _rule

_NAME = r"[A-Za-z0-9_][\w.-]{0,62}"
_NODES = r"[A-Za-z0-9_][\w.-]{0,62}(?:\[[\d,-]{1,60}\])?"
_IS = r"[\"']?\s{0,2}[=:]\s{0,2}[\"']?"
_NO_HOSTS = frozenset(
    {"localhost", "none", "null", "nil", "true", "false", "unknown", "memory", "device", "cpu", "gpu", "cuda", "auto", "host", "node"}
    | {"default", "kube-system", "kube-public"}
)


def is_host(secret: str) -> bool:
    """Whether a word is the name of one machine."""
    return secret.lower() not in _NO_HOSTS and not secret.replace(".", "").replace(",", "").isdigit()


def _is_address(secret: str) -> bool:
    """Return whether a text is the IPv4 address of a machine, not of every machine, and not a version (`12.04.1.1`)."""
    octets = secret.split(".")
    return all(int(octet) <= 255 and octet == str(int(octet)) for octet in octets) and octets[0] not in ("0", "127", "255")


def _is_long_address(secret: str) -> bool:
    """Return whether a text is an IPv6 address other than `::1`, not a time (`12:30:45`)."""
    groups = secret.split(":")
    if not has_digit(secret) or any(len(group) > 4 for group in groups) or ":::" in secret:
        return False
    if "::" not in secret:
        return len(groups) == 8 and all(groups)
    return secret.count("::") == 1 and len(groups) <= 8 and len(secret) > 4


def _is_mac(secret: str) -> bool:
    """Return whether a text in groups of figures is the address of a network card, and no date or number."""
    return has_digit(secret) and any(char in "abcdefABCDEF" for char in secret)


def _is_name_of_one(secret: str) -> bool:
    """Return whether a text is a name without dots that is not one word (`gpu-node7`, not `localhost` or `vllm`)."""
    return is_host(secret) and (has_digit(secret) or "-" in secret)


PEOPLE = (
    _rule(
        "@",
        r"(?<![\w.+/-])(?P<email>[\w.+-]{1,64}@[^\W_](?:[\w-]{0,62}\.){1,7}[^\W\d_]{2,24})(?![\w@-])",
    ),
    _rule("/users/", r"/Users/(?P<user>[^\W\d_][\w.'-]{0,30}(?: [^\W\da-z_][\w.'-]{0,30}){1,3})(?=/)", holds=is_user),
    _rule("\\home\\", r"(?i)\\home\\{1,2}(?P<user>[^\\/\s:;,\"'<>|*?]{1,64})(?=\\)", holds=is_user),
    _rule("~", r"(?<![\w/~.\\])~(?P<user>[a-z_][\w.-]{1,31})(?=/)", holds=is_user),
    _rule("/home/|/users/", r"(?i)/(?:home|users)/(?P<user>[^/\\\s:;,\"'<>()\[\]{}|*?]{1,64})", holds=is_user),
    _rule(
        "\\users\\",
        r"(?i)[A-Z]:\\{1,2}Users\\{1,2}",
        r"(?P<user>[^\\/:;,\"'<>|*?\n]{1,64}(?=\\)|[^\\/\s:;,\"'<>|*?]{1,64})",
        holds=is_user,
    ),
    _rule(
        "author:|-by:|committer:|tagger:",
        r"\b(?:Author|Committer|Tagger|(?:Signed-off|Co-authored|Reviewed|Acked|Tested|Reported)-by):\s{1,4}(?P<user>[^<\n]{2,60}?)\s{0,2}<",
    ),
    _rule("qq|微信|wechat", r"(?i)(?:\bQQ号?|微信号?|\bwechat(?:[ _]id)?)\s{0,2}[:：]\s{0,2}(?P<id>[\w-]{5,20})", holds=has_digit),
    _rule("userid=|uid=", rf"\b(?:UserId=|uid=\d{{1,10}}\()(?P<user>{_NAME})(?=[()])", holds=is_user),
    _rule(
        "phone|mobile|tel|手机|电话|联系方式",
        r"(?i)(?:\b(?:tele)?phone|\bmobile|\btel|手机号?码?|电话(?:号码)?|联系方式)(?:[ _-]?(?:number|no))?\.?[\"']?\s{0,2}[:：=]",
        r"\s{0,2}[\"']?(?P<phone>\+?\d[\d ()-]{5,20}\d)",
    ),
    _rule(
        "身份证|id_card|id card|idcard|passport|identity",
        r"(?i)(?:身份证号?码?|\bid[_ -]?card|\bpassport|\bidentity)(?:[ _-]?(?:number|no))?\.?[\"']?\s{0,2}[:：=]",
        r"\s{0,2}[\"']?(?P<id>[A-Z]{0,2}\d[\d-]{4,20}[\dX])",
    ),
    _rule("logged in as", rf"(?i)logged in as:?\s(?P<user>{_NAME})", holds=is_user),
    _rule("user|logname", rf"(?<![A-Za-z])(?:USER|LOGNAME|USERNAME|user(?:name)?)=[\"']?(?P<user>{_NAME})", holds=is_user),
    _rule("@", r"(?<![\w./+@-])(?:root|(?P<user>[a-z_][\w-]{0,31}))@(?P<host>[A-Za-z][\w-]{0,62})(?=[:\s\]]|$)", holds=is_host),
)
MACHINES = (
    _rule("host", rf"(?im)^[\s\[\]]{{0,12}}host\s{{1,10}}:\s(?P<host>{_NODES})", holds=is_host),
    _rule(
        "host|node|addr|endpoint",
        r"(?i)\b(?:MASTER_ADDR|HOSTNAME|NODENAME|SLURMD_NODENAME|SLURM_(?:JOB_)?NODELIST|node_?list|rdzv[_-]endpoint)",
        rf"{_IS}(?P<host>{_NODES})",
        holds=is_host,
    ),
    _rule(
        "--",
        rf"(?<![\w-])--(?:master[_-]addr|rdzv[_-]endpoint|head[_-]node|node[_-]?name|hostname|host)[ =](?P<host>{_NODES})",
        holds=is_host,
    ),
    _rule("[|nccl", r"(?<![\w.-])(?P<host>[A-Za-z][\w.-]{0,62}):\d{1,8}:\d{1,8} (?:\[|NCCL)", holds=is_host),
    _rule("slurmstepd-", rf"slurmstepd-(?P<host>{_NAME}):", holds=is_host),
    _rule("srun: error: ", rf"srun: error: (?P<host>{_NODES}): ", holds=is_host),
    _rule(" on ", rf"(?:\*\*\* (?:STEP|JOB) [\d.+_]{{1,40}} ON|[Kk]illed on node|running on node) (?P<host>{_NODES})", holds=is_host),
    _rule(" kernel: ", rf"\d\d:\d\d:\d\d(?:\.\d{{1,9}})?(?:Z|[+-]\d\d:?\d\d)? (?P<host>{_NAME}) kernel: ", holds=is_host),
    _rule("tcp://|nccl://", r"(?:tcp|nccl)://(?P<host>[A-Za-z][\w.-]{0,62})", holds=is_host),
    _rule("pod/|pods/", rf"\bpods?/(?P<host>{_NAME})", holds=is_host),
    _rule(
        "kubectl",
        r"\bkubectl\s(?:logs|exec|attach|(?:describe|get|delete) pods?)\s(?:-{1,2}\w{1,12}\s){0,4}",
        r"(?P<host>[a-z0-9][a-z0-9.-]{0,62})",
        holds=is_host,
    ),
    _rule("namespace|pod|nodename", rf"(?i)\b(?:pod_?)?(?:namespace|node_?name|pod_?name){_IS}(?P<host>{_NAME})", holds=is_host),
    _rule("-n |--namespace", rf"\bkubectl\s[^\n]{{0,200}}?(?:-n|--namespace)[ =](?P<host>{_NAME})", holds=is_host),
    _rule("unc\\", r"(?i)\\\\\?\\UNC\\(?P<host>[A-Za-z][\w.-]{1,62})\\", holds=is_host),
    _rule("\\\\", r"(?<![\\\w:])\\\\(?P<host>[A-Za-z][\w.-]{1,62})\\(?=[\w$])", holds=is_host),
    _rule(
        "://",
        r"(?i)://(?:[^\s/@<>]{0,80}@)?(?P<host>[A-Za-z0-9][\w-]{0,62}(?:\.[\w-]{1,62}){0,5}\.(?:internal|local|lan|corp|intranet|localdomain))(?![\w.-])",
    ),
    _rule("://", r"://(?:[^\s/@<>]{0,80}@)?(?P<host>[A-Za-z][\w-]{1,62})(?=[:/\s\"']|$)", holds=_is_name_of_one),
    _rule(
        ".internal|.local|.lan|.corp|.intranet",
        r"(?<![\w./@-])(?P<host>[A-Za-z0-9][\w-]{0,62}(?:\.[\w-]{1,62}){0,5}\.(?:internal|local|lan|corp|intranet|localdomain))(?![\w.(\[=-])",
        holds=_is_name_of_one,
    ),
    _rule("ip-", r"(?<![\w-])(?P<host>ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}(?:\.[\w.-]{1,60})?)"),
)
ADDRESSES = (
    _rule("gpu-|mig-", r"\b(?:GPU|MIG)-(?P<id>[0-9a-f]{8}(?:-[0-9a-f]{1,12}){1,4})"),
    _rule("serial", r"(?i)\bserial(?:[ _](?:number|no))?\.?\s{0,40}[:=]\s{0,4}(?P<id>[A-Z0-9-]{6,30})", holds=has_digit),
    _rule(":", r"(?<![\w:-])(?P<mac>[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5})(?![\w:])"),
    _rule("-", r"(?<![\w:-])(?P<mac>[0-9A-Fa-f]{2}(?:-[0-9A-Fa-f]{2}){5})(?![\w-])", holds=_is_mac),
    _rule(".", r"(?<![\w.])(?P<mac>[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4})(?![\w.])", holds=_is_mac),
    _rule(":", r"(?<![\w:.])(?P<ip>[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:]{2,40}[0-9A-Fa-f])(?![\w:])", holds=_is_long_address),
    _rule(
        ".0|.1|.2|.3|.4|.5|.6|.7|.8|.9",
        # Four numbers after the name of a library are its version.
        r"(?i)(?:(?:version|driver|cuda|cudnn|cublas|nccl|nvidia|torch|release|rev)[\"']?[\s:=v]{0,4}|==|>=|<=|\.so\.)\d{1,3}(?:\.\d{1,3}){3}",
        r"|(?<![\w.-])(?P<ip>\d{1,3}(?:\.\d{1,3}){3})(?!\w|\.\d|[-+]\w)",
        holds=_is_address,
    ),
)
