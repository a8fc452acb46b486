"""Keys and passwords that their place shows: addresses, queries, headers, command lines, netrc, files of keys."""

from __future__ import annotations

from oomdoctor.redaction.secret_pattern import SecretPattern, has_digit, is_random, pattern


def _is_key(secret: str) -> bool:
    """`hunter22` and `9f8e...`, but not a number, nor a short word."""
    return not secret.isdigit() and (has_digit(secret) or len(secret) >= 20)


_IN_QUERY = "key|token|signature|credential|secret|password|passwd|pwd"

WHOLE_PLACES: tuple[SecretPattern, ...] = (
    pattern(
        "=",
        rf"(?i)[?&](?:[\w-]{{0,40}}(?:{_IN_QUERY})|sig|AWSAccessKeyId|access_key_id)=(?P<token>[^\s&\"'`<>]{{4,4000}})",
    ),
    pattern(
        "private key",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:\\r|\\n|\s){0,4}",
        r"(?:[ \t+]{0,20}[A-Z][\w-]{1,40}: [^\n\\]{1,200}(?:\\n|\s){1,4}){0,6}",
        r"(?P<token>[A-Za-z0-9+/=\\\s]{15,20000}[A-Za-z0-9+/=])",
    ),
    pattern("cookie", r"(?i)\b(?:set-)?cookie[\"']?\s{0,3}[:=,]\s{0,3}[\"']?(?P<token>[\w.-]{1,80}=[^\r\n\"'<>]{4,2000})"),
)
"""Places whose end is known: what stands there goes whole, before anything in it is looked at."""
PLACES: tuple[SecretPattern, ...] = (
    pattern("hooks.slack.com", r"hooks\.slack\.com/\w{4,20}/(?P<token>[\w/-]{16,200})"),
    pattern("webhooks/", r"/webhooks/(?P<token>\d{5,25}/[\w-]{16,200})"),
    pattern("webhook.office.com", r"webhook\.office\.com/webhookb2/(?P<token>[\w@/-]{16,400})"),
    pattern("/hook/", r"/hook/(?P<token>[\w-]{16,200})"),
    pattern("/bot", r"/bot(?P<token>\d{6,12}:[\w-]{8,100})"),
    pattern("curl", r"\bcurl\s[^\n]{0,300}?(?:-u|--user)[ =][\"']?(?P<user>[^\s:<>\"']{1,64}):(?P<token>[^\s<>\"']{2,200})"),
    pattern(
        "login",
        r"\b(?:docker|podman|helm|az|oc|nerdctl)\s[^\n]{0,80}?\blogin\s[^\n]{0,200}?(?<=\s)-p[ =]{0,2}[\"']?(?P<token>[^\s\"'<>]{3,400})",
    ),
    pattern("redis-cli", r"\bredis-cli\s[^\n]{0,200}?(?<=\s)-a\s{1,4}[\"']?(?P<token>[^\s\"'<>]{3,400})"),
    pattern("login(", r"\blogin\(\s{0,4}(?:key\s{0,2}=\s{0,2})?[\"'](?P<token>[^\"'\n<]{6,400})"),
    pattern("sshpass", r"\bsshpass\s{1,4}-p\s{0,4}[\"']?(?P<token>[^\s\"'<>]{3,200})"),
    pattern("mysql", r"\bmysql\w{0,10}\s[^\n]{0,200}?(?<=\s)-p(?P<token>[^\s\"'<>-][^\s\"'<>]{3,200})"),
    pattern(
        "password",  # netrc: three words and their values, on one line or on three
        r"\b(?:machine|login|account)\s{1,20}[^\s]{1,200}\s{1,20}password\s{1,20}(?P<token>[^\s<][^\s]{0,4000})",
    ),
    pattern("password", r"(?m)^[ \t+]{0,20}password[ \t]{1,20}(?P<token>[^\s<=:][^\s]{2,4000})[ \t]{0,20}$", holds=has_digit),
    pattern("密码|口令|密钥|令牌", r"(?:密码|口令|密钥|令牌)\s{0,2}[:：=是为]\s{0,2}[\"']?(?P<token>[^\s，。；,;\"'<>]{4,200})"),
    pattern("bearer", r"(?i)\bBearer\s(?P<token>[^\s\"'<>,;]{6,4000})", holds=_is_key),
    pattern("://", r"://(?P<user>[^\s/:@<>]{1,64})?:(?P<token>[^\s/<>]{1,200})@(?=[\w.\[<-])"),
    pattern("://", r"://(?P<token>[^\s/:@<>]{8,4000})@", holds=_is_key),
    pattern("://", r"://(?:[^\s/:@<>]{1,64}:)?(?P<token>[^\s/:@<>]{4,200}\s\ {0,8}[^\s/:@<>]{4,200})@(?=[\w.\[<-])", holds=is_random),
    pattern("login|key|wandb", r"(?i)(?:login|key|wandb[^\n]{0,40}?)[\s:=\"']{1,4}(?P<token>[0-9a-f]{16,64})(?![0-9a-f])", holds=is_random),
    pattern("auth", r"\"auth\"\s{0,4}:\s{0,4}\"(?P<token>[A-Za-z0-9+/=]{8,4000})", holds=_is_key),
    pattern("_auth", r"\b_auth\s{0,4}[=:]\s{0,4}[\"']?(?P<token>[A-Za-z0-9+/=]{6,4000})"),
    pattern("-data", r"(?:client-(?:key|certificate)|certificate-authority)-data[\"']?:\s{1,4}[\"']?(?P<token>[A-Za-z0-9+/=]{16,20000})"),
    pattern("/t/", r"/t/(?P<token>[\w-]{12,80})/", holds=has_digit),
    pattern("bce-v3", r"(?P<token>bce-v3/[\w-]{8,100}/[0-9a-f]{1,100})"),
)
"""What a maker's own form does not show: services publish no form of these, or there is none."""
