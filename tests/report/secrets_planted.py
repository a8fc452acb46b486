"""Secrets and personal data in the public form of each service, with made-up values, and texts in which they come.

Values are put together from pieces, so that no scanner of repositories takes them for real ones.
"""

from __future__ import annotations

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
ALL = [*TOKENS, *PASSWORDS, *PEOPLE, *MACHINES]
