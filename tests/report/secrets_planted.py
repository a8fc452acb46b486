"""Secrets and personal data in the public form of each service, with made-up values, and texts in which they come.

Values are put together from pieces, so that no scanner of repositories takes them for real ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from msgspec import Struct

LOW = "k3v9q2x7m4b8w1z6"
MIX = "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zC"
HEX = "9f3a7c1e5b2d8064"


class Planted(Struct, frozen=True):
    """A text, and the part of it that must not leave."""

    kind: str
    text: str
    secret: str


def _of(kind: str, text: str, secret: str) -> Planted:
    return Planted(kind, text.replace("§", secret), secret)


def _uuid(first: str) -> str:
    return f"{first}{HEX[:4]}-{HEX[4:8]}-4{HEX[8:11]}-8{HEX[11:14]}-{HEX[:12]}"


TOKENS = [
    _of("Hugging Face token", "HF_TOKEN=§", "hf_" + MIX + "Lq"),
    _of("Hugging Face token of an organisation", "login with §", "api_org_" + MIX + "Lq"),
    _of("OpenAI key", "OPENAI_API_KEY=§", "sk-" + MIX + LOW),
    _of("OpenAI project key", "key § was refused", "sk-proj-" + MIX + "_" + LOW),
    _of("Anthropic key", "x-api-key: §", "sk-ant-api03-" + MIX + "-" + LOW),
    _of("GitHub token", "git clone with §", "ghp_" + MIX + "abcd"),
    _of("GitHub fine-grained token", "GH_TOKEN=§", "github_pat_11" + MIX + "_" + MIX),
    _of("GitLab token", "PRIVATE-TOKEN: §", "glpat-" + MIX[:20]),
    _of("Slack bot token", "slack §", "xoxb-" + "1234567890-" + MIX[:24]),
    _of("Slack webhook", "notify https://hooks.slack.com/services/§", "T0" + LOW[:7].upper() + "/B0" + LOW[:7].upper() + "/" + MIX[:24]),
    _of("Discord webhook", "notify https://discord.com/api/webhooks/112233445566778899/§", MIX + MIX),
    _of("Feishu webhook", "notify https://open.feishu.cn/open-apis/bot/v2/hook/§", _uuid("1a2b")),
    _of("WeCom webhook", "notify https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=§", _uuid("2b3c")),
    _of("DingTalk webhook", "notify https://oapi.dingtalk.com/robot/send?access_token=§", HEX * 4),
    _of("Telegram bot token", "https://api.telegram.org/bot§/sendMessage", "712345678:" + "AA" + MIX + "w"),
    _of("AWS access key id", "AWS_ACCESS_KEY_ID=§", "AKIA" + "Q3X7M4B8W1Z6K9V2"),
    _of("AWS secret key", "AWS_SECRET_ACCESS_KEY=§", "wJ/" + MIX[:20] + "+x/" + MIX[:14]),
    _of("AWS session token", "aws_session_token = §", "IQoJb3JpZ2luX2VjE" + MIX + "//" + MIX + "=="),
    _of("Google API key", "maps §", "AIza" + "Sy" + MIX + "q"),
    _of("Google OAuth token", "gcloud §", "ya29." + MIX + LOW),
    _of("Azure storage key", "AccountName=models;AccountKey=§;EndpointSuffix=core", MIX + MIX + "+/ab12=="),
    _of("Azure shared signature", "https://models.blob.core.windows.net/c/f?sv=2024-01-01&sig=§", MIX + "%2Bab%3D"),
    _of("Aliyun key id", "oss §", "LTAI" + "5t" + MIX[:18]),
    _of("Tencent key id", "cos §", "AKID" + MIX + "wx12"),
    _of("Volcengine key id", "tos §", "AKLT" + MIX + "Mzk0"),
    _of("ModelScope token", "MODELSCOPE_API_TOKEN=§", "ms-" + _uuid("3c4d")),
    _of("wandb key", "wandb login §", HEX * 2 + HEX[:8]),
    _of("wandb key in a variable", "WANDB_API_KEY=§", HEX[::-1] * 2 + HEX[:8]),
    _of("Comet or neptune key", "NEPTUNE_API_TOKEN=§", "eyJhcGlfYWRkcmVzcyI6" + MIX + "=="),
    _of("JSON web token", "cookie §", "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiI" + LOW + "." + MIX),
    _of("npm token", "npm §", "npm_" + MIX + "abcd"),
    _of("PyPI token", "twine §", "pypi-AgEIcHlwaS5vcmc" + MIX),
    _of("Docker Hub token", "docker login §", "dckr_pat_" + MIX[:27]),
    _of("Stripe key", "pay §", "sk_live_" + MIX[:24]),
    _of("SendGrid key", "mail §", "SG." + MIX[:22] + "." + MIX + "abcdefghijk"),
    _of("Replicate token", "run §", "r8_" + MIX + "abcde"),
    _of("Groq key", "run §", "gsk_" + MIX + LOW + "abcd"),
    _of("NVIDIA key", "docker login nvcr.io with §", "nvapi-" + MIX + "_" + MIX),
    _of("Databricks token", "cluster §", "dapi" + HEX * 2),
    _of("xAI key", "run §", "xai-" + MIX + MIX),
    _of("Perplexity key", "run §", "pplx-" + MIX + LOW),
    _of("DigitalOcean token", "run §", "dop_v1_" + HEX * 4),
    _of("Vault token", "vault §", "hvs." + MIX + LOW),
    _of("first line of a private key", "-----BEGIN RSA PRIVATE KEY----- §", "MIIEowIBAAKCAQEA" + MIX),
    _of("SSH private key", "-----BEGIN OPENSSH PRIVATE KEY-----\n§\n-----END OPENSSH PRIVATE KEY-----", "b3BlbnNzaC1rZXktdjEAAAAA" + MIX),
    _of("private key in JSON", '{"private_key": "-----BEGIN PRIVATE KEY-----\\n§\\n-----END PRIVATE KEY-----"}', "MIIEvgIBADANBgkq" + MIX),
]
PASSWORDS = [
    _of("password in an address", "https://bob:§@models.example.com/x", "hunter22x"),
    _of("password with signs in an address", "postgresql://app:§@db/train", "p%40ss-w0rd!x"),
    _of("password without a user", "redis://:§@cache:6379/0", "s3cr3tRedis"),
    _of("proxy with a password", "https_proxy=http://carol:§@proxy.example.com:3128", "Pr0xyPass9"),
    _of("bearer header", "Authorization: Bearer §", "abc.def-" + LOW),
    _of("basic header", "Authorization: Basic §", "Ym9iOmh1bnRlcjIy"),
    _of("header in a command", "curl -H 'X-Api-Key: §' https://example.com", LOW),
    _of("cookie", "Cookie: sessionid=§", LOW + "ab"),
    _of("cookie that is set", "Set-Cookie: sid=§; Path=/", MIX[:24]),
    _of("password option", "mysql --password § -e x", "Tr0ub4dor"),
    _of("password of sshpass", "sshpass -p § ssh gpu", "Tr0ub4dor3"),
    _of("curl user", "curl -u dave:§ https://example.com", "Tr0ub4dor4"),
    _of("token option", "python train.py --hub_token §", LOW + "99"),
    _of("key option with a blank", "swift sft --api-key §", LOW + "98"),
    _of("password with a blank in quotes", 'password: "§"', "correct horse 7"),
    _of("Chinese password", "密码：§", "Mima123456"),
    _of("client secret", "client_secret: §", "8Q~" + MIX[:30]),
    _of("connection string", "Server=db;Uid=sa;Pwd=§;", "Str0ngPwd9"),
    _of("SMTP variable", "SMTP_PASS=§", "mailpass77"),
]
PEOPLE = [
    _of("home on Linux", "/home/§/run/train.py", "mwagner"),
    _of("home on a network file system", "/nfs/home/§/run/train.py", "mwagner2"),
    _of("home on a cluster", "/gpfs/users/§/run", "mwagner3"),
    _of("home on a Mac", "/Users/§/run", "mwagner4"),
    _of("home on Windows", "C:\\Users\\§\\run", "mwagner5"),
    _of("home on Windows, in WSL", "/mnt/c/Users/§/run", "mwagner6"),
    _of("home with a Chinese name", "/home/§/run", "王小明"),
    _of("home with a blank", "C:\\Users\\§\\run", "Max Wagner"),
    _of("user variable", "USER=§", "mwagner7"),
    _of("user of Slurm", "SLURM_JOB_USER=§", "mwagner8"),
    _of("user in scontrol", "UserId=§(1012) GroupId=lab(1000)", "mwagner9"),
    _of("user in id", "uid=1012(§) gid=1000(lab)", "mwagnera"),
    _of("login line", "wandb: Currently logged in as: §", "mwagnerb"),
    _of("mail address", "mail to §", "max.wagner+gpu@uni-example.de"),
    _of("phone number", "phone: §", "+86 138-1234-5678"),
    _of("mobile number in Chinese", "手机号：§", "13812345678"),
    _of("identity number in Chinese", "身份证号：§", "11010519491231002X"),
    _of("identity number", "id_card=§", "110105194912310021"),
    _of("author of a commit", "Author: § <m@uni-example.de>", "Max Wagner"),
]
MACHINES = [
    _of("IPv4 address", "connect to §:29500", "10.12.0.55"),
    _of("public IPv4 address", "connect to §", "203.0.113.77"),
    _of("IPv6 address", "connect to [§]:29500", "2001:db8:12::8a2e:370:7334"),
    _of("MAC address", "link § up", "3c:ec:ef:1a:2b:77"),
    _of("host of the rendezvous", "MASTER_ADDR=§", "gpunode-a17"),
    _of("host in a prompt", "max@§:~/run$ python", "gpunode-a18"),
    _of("host of ssh", "ssh max@§", "login3.hpc-example.edu"),
    _of("host variable", "HOSTNAME=§", "gpunode-a19"),
    _of("nodes of Slurm", "SLURM_JOB_NODELIST=§", "gpunode[01-04]"),
    _of("node in srun", "srun: error: §: task 3: Killed", "gpunode-a20"),
    _of("node of a step", "slurmstepd: error: *** STEP 77.0 ON § CANCELLED", "gpunode-a21"),
    _of("host before an NCCL line", "§:4102:4137 [3] NCCL WARN x", "gpunode-a22"),
    _of("host in a kernel line", "Nov 20 10:22:33 § kernel: oom", "gpunode-a23"),
    _of("pod", "pod/§ OOMKilled", "trainer-mwagner-0"),
    _of("pod in a log of kubectl", "kubectl logs § -n research", "trainer-mwagner-1"),
    _of("namespace", "namespace: §", "team-wagner"),
    _of("node of Kubernetes", "nodeName: §", "gpunode-a24"),
    _of("share on Windows", "\\\\§\\models\\x", "fileserver7"),
    _of("host of a store", "tcp://§:29500", "gpunode-a25"),
    _of("host of AWS", "from §", "ip-10-3-4-5.ec2.internal"),
    _of("internal name", "http://§:8000/v1", "gpu07.corp.internal"),
    _of("UUID of a card", "GPU 0: NVIDIA L40S (UUID: §)", "GPU-" + _uuid("4d5e")),
    _of("serial number of a card", "Serial Number : §", "1324021049817"),
]
MORE = [
    _of("wandb key of the new form", "wandb login §", "wandb_v1_" + MIX + "_" + LOW),
    _of("Fireworks key", "run §", "fw_" + MIX[:24]),
    _of("OpenRouter key", "run §", "sk-or-v1-" + HEX * 4),
    _of("RunPod key", "run §", "rpa_" + MIX.upper() + LOW),
    _of("Zhipu key", "ZHIPUAI_API_KEY=§", HEX * 2 + "." + MIX[:16]),
    _of("Baidu key", "run §", "bce-v3/ALTAK-" + MIX[:21] + "/" + HEX * 2 + HEX[:8]),
    _of("Kaggle token", "run §", "KGAT_" + HEX * 2),
    _of("Kaggle file", '{"username":"max","key":"§"}', HEX * 2),
    _of("conda token", "https://conda.anaconda.org/t/§/lab/linux-64", "tk-" + MIX[:12] + "-" + MIX[:8]),
    _of("GitLab runner token", "run §", "glrt-" + MIX[:20]),
    _of("GitLab deploy token", "run §", "gldt-" + MIX[:20]),
    _of("Atlassian token", "run §", "ATATT3xFfGF0" + MIX + MIX),
    _of("Slack app token", "run §", "xapp-1-A0" + LOW[:9].upper() + "-" + "1234567890123-" + HEX * 2),
    _of("Linear key", "run §", "lin_api_" + MIX + "abcdefgh"),
    _of("Notion token", "run §", "ntn_" + "12345678901" + MIX),
    _of("Figma token", "run §", "figd_" + MIX + "-" + LOW),
    _of("Grafana token", "run §", "glsa_" + MIX + "_" + HEX[:8]),
    _of("Sentry address", "https://§@o123.ingest.sentry.io/456", HEX * 2),
    _of("New Relic key", "run §", "NRAK-" + MIX.upper()[:27]),
    _of("Supabase token", "run §", "sbp_" + HEX * 2 + HEX[:8]),
    _of("Terraform token", "run §", MIX[:14] + ".atlasv1." + MIX + MIX),
    _of("Pulumi token", "run §", "pul-" + HEX * 2 + HEX[:8]),
    _of("age key", "run §", "AGE-SECRET-KEY-1" + (MIX + LOW).upper()[:48]),
    _of("Tailscale key", "run §", "tskey-auth-" + MIX[:12] + "CNTRL-" + MIX),
    _of("Shopify token", "run §", "shpat_" + HEX * 2),
    _of("Modal token", "modal token set --token-id ak-" + MIX[:22] + " --token-secret §", "as-" + MIX[:22]),
    _of("ModelScope token of git", "git clone http://oauth2:§@www.modelscope.cn/a/b.git", MIX[:20] + LOW),
    _of("Jupyter address", "http://127.0.0.1:8888/lab?token=§", HEX * 3),
    _of("OAuth answer", '{"access_token": "§", "token_type": "bearer"}', MIX + LOW),
    _of("OAuth refresh token", "refresh_token=§", "1//0g" + MIX + LOW),
    _of("signed address of S3", "https://b.s3.amazonaws.com/k?X-Amz-Expires=900&X-Amz-Signature=§", HEX * 4),
    _of(
        "credential of S3",
        "https://b.s3.amazonaws.com/k?X-Amz-Credential=§&X-Amz-Date=1",
        "AKIAQ3X7M4B8W1Z6K9V2%2F20261122%2Fus-east-1%2Fs3%2Faws4_request",
    ),
    _of("session of S3", "https://b.s3.amazonaws.com/k?X-Amz-Security-Token=§", "IQoJb3JpZ2luX2Vj" + MIX + "%2F" + MIX),
    _of("signed address of GCS", "https://storage.googleapis.com/b/k?X-Goog-Signature=§", HEX * 6),
    _of("signed address of OSS", "https://b.oss-cn-beijing.aliyuncs.com/k?OSSAccessKeyId=x&Expires=1&Signature=§", MIX[:26] + "%3D"),
    _of("password of MongoDB", "mongodb+srv://app:§@cluster0.abcde.mongodb.net/train", "M0ngoPass-9"),
    _of("password of RabbitMQ", "amqp://worker:§@mq:5672//", "R4bbit!pass"),
    _of("password of Redis with a user", "rediss://default:§@cache.example.com:6380", "AVNS_" + MIX[:12]),
    _of("line of netrc", "machine api.wandb.ai login user password §", HEX * 2 + HEX[:8]),
    _of("auth of Docker", '{"auths": {"nvcr.io": {"auth": "§"}}}', "JG9hdXRodG9rZW46" + MIX),
    _of("key of a kubeconfig", "client-key-data: §", "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVk" + MIX),
    _of("token of a kubeconfig", "    token: §", "eyJhbGciOiJSUzI1NiIsImtpZCI6" + MIX + "." + MIX + "." + MIX),
    _of("proxy header", "Proxy-Authorization: Basic §", "Y2Fyb2w6UHIweHlQYXNzOQ=="),
    _of("header of a token", "X-Auth-Token: §", MIX[:24]),
    _of("header of Vault", "X-Vault-Token: §", "s." + MIX[:24]),
    _of("authorisation of GitHub", "Authorization: token §", MIX + "ab12"),
    _of("password of Postgres", "PGPASSWORD=§ psql -h db", "pg-Pass-77x"),
    _of("password glued to mysql's option", "mysql -u root -p§ train", "Tr0ub4dor9x"),
    _of("password in a query", "jdbc:mysql://db/train?user=sa&password=§", "Tr0ub4dor8"),
    _of("variable of PowerShell", '$env:HF_TOKEN = "§"', "abcDEF123456" + LOW),
    _of("password of MLflow", "MLFLOW_TRACKING_PASSWORD=§", "ml-flow-pass-7"),
    _of("key of Comet", "COMET_API_KEY=§", MIX[:25]),
    _of("key of ClearML", "api.credentials.secret_key = §", MIX + LOW),
    _of("key of SwanLab", "swanlab login --api-key §", MIX[:21]),
    _of("PGP private key", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n§\n-----END PGP PRIVATE KEY BLOCK-----", "lQOYBGJ" + MIX),
    _of("home of a Mac with first and last name", "/Users/§/run/train.py", "Max Wagner"),
    _of("home by a tilde", "~§/run/train.py", "mwagnerc"),
    _of("home in a URL", "file:///home/§/run/train.py", "mwagnerd"),
    _of("home in a percent-encoded path", "path=%2Fhome%2F§%2Frun%2Ftrain.py", "mwagnere"),
    _of("home in lower-case percent", "path=%2fhome%2f§%2frun", "mwagnerf"),
    _of("home on Windows in percent", "C%3A%5CUsers%5C§%5Crun", "mwagnerg"),
    _of("home in JSON with escaped slashes", '"\\/home\\/§\\/run"', "mwagnerh"),
    _of("home on Windows escaped twice", "C:\\\\Users\\\\§\\\\run", "mwagneri"),
    _of("home on Windows with slashes", "C:/Users/§/run", "mwagnerj"),
    _of("home of a WSL share", "\\\\wsl.localhost\\Ubuntu\\home\\§\\run", "mwagnerk"),
    _of("home of Git Bash", "/c/Users/§/run", "mwagnerl"),
    _of("home under an export", "/export/home/§/run", "mwagnerm"),
    _of("home of a cache", "/mnt/cache/users/§/run", "mwagnern"),
    _of("mail address with a Chinese domain", "mail to §", "wang@例子.公司"),
    _of("mail address with a Chinese name", "mail to §", "王小明@example.com"),
    _of("mail address in an address", "mailto:§", "max.wagner@uni-example.de"),
    _of("mail address in percent", "login_hint=§", "max.wagner%40uni-example.de"),
    _of("mail address in an entity", "mail to §", "max.wagner&#64;uni-example.de"),
    _of("signature of a commit", "Signed-off-by: § <m@uni-example.de>", "Max Wagner"),
    _of("MAC address with dashes", "link § up", "3C-EC-EF-1A-2B-77"),
    _of("MAC address with dots", "link § up", "3cec.ef1a.2b77"),
    _of("IPv6 address with its zone", "connect to §", "fe80::3eec:efff:fe1a:2b77%eth0"),
    _of("IPv4 address in IPv6", "connect to §", "::ffff:10.12.0.56"),
    _of("IPv4 address in a URL", "http://§:8000/v1", "10.12.0.57"),
    _of("UNC share doubled", "\\\\\\\\§\\\\models\\\\x", "fileserver8"),
    _of("UNC share long", "\\\\?\\UNC\\§\\models\\x", "fileserver9"),
    _of("share of SMB", "smb://§/models", "fileserver10"),
    _of("host of scp", "scp out.pt max@§:/data", "gpunode-b17"),
    _of("host of ssh with an option", "ssh -p 2222 mwagnero@§ nvidia-smi", "gpunode-b18.lab.example.edu"),
    _of("host in a rendezvous option", "torchrun --rdzv-endpoint=§:29500 t.py", "gpunode-b19"),
    _of("host with an option", "--master_addr §", "gpunode-b20"),
    _of("internal name alone", "lost connection to §", "gpu08.corp.internal"),
    _of("QQ number", "QQ：§", "1234567890"),
    _of("WeChat name", "微信号：§", "wx_mwagner88"),
]
ALL = [*TOKENS, *PASSWORDS, *PEOPLE, *MACHINES, *MORE]


def _percent(text: str, *, upper: bool) -> str:
    """Return a text with every sign that is no letter or digit as %XX, as forms and logs of proxies have it."""
    return "".join(
        char if char.isalnum() and char.isascii() else "".join(f"%{byte:02{'X' if upper else 'x'}}" for byte in char.encode())
        for char in text
    )


_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;", "/": "&#x2F;", "@": "&#64;", "=": "&#61;"}


def _split(secret: str, between: str) -> str:
    return secret[: len(secret) // 2] + between + secret[len(secret) // 2 :]


FORMS: dict[str, Callable[[Planted], str]] = {
    "plain": lambda planted: planted.text,
    "joiner": lambda planted: planted.text.replace(planted.secret, _split(planted.secret, "\u200d")),
    "soft hyphen": lambda planted: planted.text.replace(planted.secret, _split(planted.secret, "\u00ad")),
    "colour": lambda planted: planted.text.replace(planted.secret, _split(planted.secret, "\x1b[0m\x1b[31m")),
    "percent": lambda planted: _percent(planted.text, upper=False),
    "upper percent": lambda planted: _percent(planted.text, upper=True),
    "JSON": lambda planted: json.dumps({"line": planted.text}),
    "JSON of JSON": lambda planted: json.dumps(json.dumps({"line": planted.text})),
    "entities": lambda planted: "".join(_ENTITIES.get(char, char) for char in planted.text),
}
"""In how many forms a text with a secret comes."""


def wrapped(planted: Planted) -> str | None:
    """Return the text with a long secret cut at the edge of a terminal; None for what no terminal cuts so."""
    if len(planted.secret) < 32 or "\n" in planted.text or any(sign in planted.secret for sign in " %"):
        return None
    return planted.text.replace(planted.secret, _split(planted.secret, "\n"))
