"""What a secret looks like: keys, names of people and machines, addresses.

Each rule is a bounded pattern whose named group (`token`, `user`, `host`, `ip`, `mac`, `email`, `phone`, `id`) is the secret.
No rule may match a placeholder (`<host-1>`), or redacting twice would not be the same as once.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

_NAME = r"[A-Za-z0-9_][\w.-]{0,62}"
_NODES = r"[A-Za-z0-9_][\w.-]{0,62}(?:\[[\d,-]{1,60}\])?"
_IS = r"[\"']?\s{0,2}[=:]\s{0,2}[\"']?"
_NO_USERS = frozenset({"root", "shared", "public", "user", "users", "default", "git", "all users"})
_NO_HOSTS = frozenset(
    {"localhost", "none", "null", "nil", "true", "false", "unknown", "memory", "device", "cpu", "gpu", "cuda", "auto", "host", "node"}
    | {"default", "kube-system", "kube-public"}
)

_NO_VALUES = frozenset({"none", "null", "true", "false", "unset", "required", "optional", "missing", "invalid", "empty", "default"})


class SecretPattern(Struct, frozen=True):
    """A pattern that is tried where one of `needs` (in lower case) stands in the text; `holds` looks at what it found."""

    needs: tuple[str, ...]
    pattern: str
    holds: Callable[[str], bool]

    def compiled(self) -> re.Pattern[str]:
        """Return the pattern, compiled when a text first needs it."""
        return re.compile(self.pattern)


def has_digit(secret: str) -> bool:
    """Whether a name has a digit in it, as few words have."""
    return any(char.isdigit() for char in secret)


def is_user(secret: str) -> bool:
    """Whether a user's name tells anything of a person."""
    return secret.lower() not in _NO_USERS


def is_host(secret: str) -> bool:
    """Whether a word is the name of one machine."""
    return secret.lower() not in _NO_HOSTS and not secret.replace(".", "").replace(",", "").isdigit()


_LETTER_OR_DIGIT = re.compile(r"\d{1,4000}|[^\W\d_]{1,4000}")


def is_random(secret: str) -> bool:
    """Whether letters and figures take turns as they do in keys, and in few names (`Qwen2.5-7B-Instruct`)."""
    return len(secret) >= 8 and len(_LETTER_OR_DIGIT.findall(secret)) > 4


def _is_key(secret: str) -> bool:
    """`hunter22` and `9f8e...`, but not a count (`token: 4096`) or a word (`token: required`)."""
    return not secret.isdigit() and len(secret) >= 6 and has_digit(secret)


def _is_value(secret: str) -> bool:
    """Not a word that says that there is none."""
    return secret.lower().rstrip(".") not in _NO_VALUES


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


def _always(_: str) -> bool:
    return True


def _rule(needs: str, *pattern: str, holds: Callable[[str], bool] = _always) -> SecretPattern:
    return SecretPattern(tuple(needs.split("|")), "".join(pattern), holds)


_PASSWORD = r"(?:passw(?:or)?d|passphrase|\bpwd|(?-i:_PASS|_PWD))"
_SECRET = r"(?:secret|api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|credentials?)"
_NO_KEY = r"(?![\w-]{1,60}[:=]\s)"
"""What follows a key is not another key with a value of its own."""
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NOT_OF_TEXT = "".join(f"(?<!{prefix}_)" for prefix in ("pad", "eos", "bos", "unk", "sep", "cls", "new", "num", "per"))
"""Before `token`: those of a tokenizer are no secrets."""

_BODIES: dict[str, str] = {
    r"[A-Za-z0-9]": "hf_ api_org_ ghp_ gho_ ghu_ ghs_ ghr_ npm_ r8_ gsk_ xai- pplx- fw_ KGAT_ lin_api_ ntn_ NRAK- LTAI AKID rpa_",
    r"[\w-]": "sk- sk_live_ sk_test_ rk_live_ rk_test_ github_pat_ glpat- glrt- gldt- glptt- pypi- nvapi- xapp- xoxa- xoxb- xoxe- "
    "xoxp- xoxr- xoxs- "
    "hvs. hvb. hvr. wandb_v1_ ATATT3 ATBB figd_ glsa_ glc_ sntrys_ tskey- AVNS_ AIza ya29. AKLT dckr_pat_ dckr_oat_ phc_ tk-",
    r"[0-9a-f]": "dapi dop_v1_ doo_v1_ dor_v1_ shpat_ shpss_ sbp_ pul- eyr_",
}
"""What the tokens of services begin with, by what they go on with; services publish it so that scanners find them."""
_PREFIXES = [prefix for prefixes in _BODIES.values() for prefix in prefixes.split()]
_PREFIXED = "|".join(f"(?:{'|'.join(map(re.escape, prefixes.split()))}){body}{{8,4000}}" for body, prefixes in _BODIES.items())


def _is_prefixed(secret: str) -> bool:
    """Return whether what follows the prefix is no word (`hf_transfer`, `sk-learn`): long with a figure, or mixed."""
    body = secret[max(len(prefix) for prefix in _PREFIXES if secret.startswith(prefix)) :]
    return (len(body) >= 14 and has_digit(body)) or is_random(body)


_KEYS = (
    _rule(
        "key=|sig=|signature=|token=|credential=",
        r"(?i)[?&](?:[\w-]{0,40}(?:key|token|signature|credential)|sig|AWSAccessKeyId)=(?P<token>[^\s&\"'<>]{8,4000})",
    ),
    _rule("|".join(dict.fromkeys(prefix.lower() for prefix in _PREFIXES)), rf"(?<![A-Za-z0-9])(?P<token>{_PREFIXED})", holds=_is_prefixed),
    _rule(
        "eyj|sg.|ms-|akia|asia|bce-v3|atlasv1|age-secret|ak-|as-",
        r"(?<![A-Za-z0-9])(?P<token>eyJ[\w-]{10,}(?:\.[\w-]{1,}){0,2}={0,2}|SG\.[\w-]{8,}(?:\.[\w-]{4,})?|(?:AKIA|ASIA)[A-Z0-9]{12,}",
        rf"|ms-{_UUID}|bce-v3/[\w-]{{8,}}/[0-9a-f]{{1,}}|[A-Za-z0-9]{{14}}\.atlasv1\.[\w-]{{16,}}|AGE-SECRET-KEY-1[A-Z0-9]{{16,}}",
        r"|a[ks]-[A-Za-z0-9]{22}(?![\w-]))",
        holds=has_digit,
    ),
    _rule(
        "private key",
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:\\n|\s){0,4}(?P<token>[A-Za-z0-9+/=\\\s]{15,20000}[A-Za-z0-9+/=])",
    ),
    _rule("hooks.slack.com", r"hooks\.slack\.com/\w{4,20}/(?P<token>[\w/-]{16,200})"),
    _rule("webhooks/", r"/webhooks/(?P<token>\d{5,25}/[\w-]{16,200})"),
    _rule("/hook/", r"/hook/(?P<token>[\w-]{16,200})"),
    _rule("/bot", r"/bot(?P<token>\d{6,12}:[\w-]{8,100})"),
    _rule("cookie", r"(?i)\b(?:set-)?cookie: (?P<token>[\w.-]{1,80}=[^\r\n\"'<>]{4,2000})"),
    _rule("curl", r"\bcurl\s[^\n]{0,300}?(?:-u|--user)[ =](?P<user>[^\s:<>]{1,64}):(?P<token>[^\s<>]{2,200})"),
    _rule("sshpass", r"\bsshpass\s{1,4}-p\s{0,4}[\"']?(?P<token>[^\s\"'<>]{3,200})"),
    _rule("密码|口令|密钥", r"(?:密码|口令|密钥)\s{0,2}[:：=]\s{0,2}[\"']?(?P<token>[^\s，。；,;\"'<>]{4,200})"),
    _rule(
        "authorization|bearer",
        rf"(?i)(?:Authorization{_IS}(?:Bearer|Basic|Token)|\bBearer)\s",
        r"(?P<token>[^\s\"'<>,;]{6,})",
    ),
    _rule("://", r"://(?P<user>[^\s/:@<>]{1,64})?:(?P<token>[^\s/<>]{1,200})@(?=[\w.\[<-])"),
    _rule("://", r"://(?P<token>[^\s/:@<>]{8,200})@", holds=_is_key),
    _rule("://", r"://(?:[^\s/:@<>]{1,64}:)?(?P<token>[^\s/:@<>]{4,200}\s\ {0,8}[^\s/:@<>]{4,200})@(?=[\w.\[<-])", holds=is_random),
    _rule("pass|pwd", rf"(?i){_PASSWORD}[\w-]{{0,24}}[\"']?\s{{0,2}}[=:]\s{{0,2}}([\"'])(?P<token>[^\"'\n<>]{{4,200}})\1"),
    _rule(
        "pass|secret|api|access|account|private|credential|pwd",
        # A value does not begin like a path or a key's first line; further on it may hold anything that ends no value.
        rf"(?i)(?:{_PASSWORD}|{_SECRET})[\w-]{{0,24}}{_IS}(?!-{{4}}){_NO_KEY}(?P<token>[^\s\"',;&<>(){{}}\[\]/][^\s\"',;&<>(){{}}\[\]]{{3,4000}})",
        holds=_is_value,
    ),
    _rule(
        "pass|secret|key",
        rf"(?i)(?<!\S)--?[\w.-]{{0,40}}(?:{_PASSWORD}|{_SECRET})\s{{1,4}}[\"']?(?P<token>[^\s\"'<>/-][^\s\"'<>]{{3,200}})",
    ),
    _rule("token", rf"(?i){_NOT_OF_TEXT}token(?:[_-]\w{{1,12}})?{_IS}{_NO_KEY}(?P<token>[\w.+/=-]{{8,4000}})", holds=_is_key),
    _rule("token", rf"(?i)(?<!\S)--?[\w.-]{{0,40}}{_NOT_OF_TEXT}token\s{{1,4}}[\"']?(?P<token>[\w.+/=-]{{8,200}})", holds=_is_key),
    _rule("login|key|wandb", r"(?i)(?:login|key|wandb[^\n]{0,40}?)[\s:=\"']{1,4}(?P<token>[0-9a-f]{16,64})(?![0-9a-f])", holds=is_random),
    _rule("auth", r"\"auth\"\s{0,4}:\s{0,4}\"(?P<token>[A-Za-z0-9+/=]{8,4000})"),
    _rule("-data", r"(?:client-(?:key|certificate)|certificate-authority)-data[\"']?:\s{1,4}[\"']?(?P<token>[A-Za-z0-9+/=]{16,20000})"),
    _rule("mysql", r"\bmysql\w{0,10}\s[^\n]{0,200}?(?<=\s)-p(?P<token>[^\s\"'<>-][^\s\"'<>]{3,200})"),
    _rule("/t/", r"/t/(?P<token>[\w-]{12,80})/", holds=has_digit),
)
_PEOPLE = (
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
_MACHINES = (
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
_ADDRESSES = (
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
KEYS = _KEYS
"""Those of keys, tokens and passwords alone."""
RULES = (*_KEYS, *_PEOPLE, *_MACHINES, *_ADDRESSES)
