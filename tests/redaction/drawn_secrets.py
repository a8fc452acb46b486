"""Tokens drawn by the form that their makers publish, passwords, and the places in which people and programs write them.

None stands in a file: each run draws its own.
"""

from __future__ import annotations

import re
import string
from random import Random

from oomdoctor.knowledge.tables.csv_table import Row, table

MAKERS: tuple[Row, ...] = table("token_forms")
_SIGNS = string.ascii_letters + string.digits + string.punctuation
_MORE = 40
"""How much longer than its least a token without a greatest length is drawn at most."""

BY_FORM = {
    "alone": "§",
    "in a sentence": "the server refused § with 401",
    "behind a process": "Killing subprocess 12 §",
    "user of an address": "git clone https://§@models.example.com/x",
}
"""Places in which only the form of a token says what it is."""
BY_PLACE = {
    "shell": "export HF_TOKEN=§",
    "shell, quoted": "DB_PASSWORD='§' python train.py",
    "csh": "setenv WANDB_API_KEY §",
    "fish": "set -x OPENAI_API_KEY §",
    "PowerShell": '$env:HF_TOKEN = "§"',
    "Dockerfile": "ENV HUB_TOKEN §",
    "Python": "hub_token = '§'",
    "Python, environment": 'os.environ["HF_TOKEN"] = "§"',
    "Python, call": "login(token='§', add_to_git_credential=True)",
    "Python, setdefault": "os.environ.setdefault('HF_TOKEN', '§')",
    "YAML": "hub_token: §",
    "YAML, block": "hub_token: >-\n  §\nstage: sft",
    "JSON": '{"hub_token": "§", "stage": "sft"}',
    "JSON in JSON": '{"line": "{\\"api_key\\": \\"§\\", \\"x\\": 1}"}',
    "TOML": '[hub]\napiToken = "§"',
    "ini": "[hub]\napi_key=§",
    "flag with a blank": "python train.py --hub_token § --bf16",
    "flag with =": "python train.py --hub-token=§ --bf16",
    "flag, quoted": 'python train.py --api-key "§" --bf16',
    "flag on the next line": "python train.py --api-key \\\n  § \\\n  --bf16",
    "list of Python": "['python', 'train.py', '--api-key', '§', '--bf16']",
    "list of JSON": '{"args": ["--hub_token", "§"]}',
    "list of JSON, in lines": '"args": [\n  "--hub_token",\n  "§"\n]',
    "list of YAML": "args:\n  - --hub_token\n  - §\n  - --bf16",
    "list of YAML, quoted": 'args:\n  - "--hub_token"\n  - "§"',
    "list of YAML, inline": "args: [--hub_token, §, --bf16]",
    "Kubernetes": "env:\n  - name: DB_PASSWORD\n    value: §\n  - name: A\n    value: b",
    "Kubernetes, quoted": 'env:\n  - name: "DB_PASSWORD"\n    value: "§"',
    "Kubernetes, the other order": "env:\n  - value: §\n    name: DB_PASSWORD",
    "Kubernetes, inline": 'env: [{"name": "DB_PASSWORD", "value": "§"}]',
    "Kubernetes, inline, the other order": 'env: [{"value": "§", "name": "DB_PASSWORD"}]',
    "Namespace": "Namespace(lr=0.1, hub_token='§', bf16=True)",
    "dict": "{'lr': 0.1, 'hub_token': '§', 'bf16': True}",
    "environ": "environ({'HOME': '/x', 'WANDB_API_KEY': '§', 'A': 'b'})",
    "items of environ": "[('HOME', '/x'), ('WANDB_API_KEY', '§')]",
    "quoted command": "bash -c \"HF_TOKEN='§' python train.py\"",
    "escaped command": "bash -c 'export HF_TOKEN=\\'§\\' && python train.py'",
    "password of an address": "postgresql://app:§@db.example.com/train",
    "query": "https://api.example.com/v1?access_token=§&page=2",
    "Authorization": "Authorization: Bearer §",
    "Authorization without a scheme": "authorization: §",
    "header in a dict": "{'Authorization': 'Bearer §', 'Accept': '*/*'}",
    "X-Api-Key": "curl -H 'X-Api-Key: §' https://api.example.com",
    "Cookie": "Cookie: session=§; theme=dark",
    "netrc": "machine api.wandb.ai login user password §",
    "netrc, in lines": "machine api.wandb.ai\n  login user\n  password §",
    "headers of bytes": "[(b'host', b'x'), (b'authorization', b'Bearer §')]",
    "list of arguments": "  hub_token ...................................... §\n  lr ............ 1",
    "table": "| lr | 0.1 |\n| hub_token | § |",
    "table of a terminal": "│ hub_token   │ §   │",
    "shell, dollar quotes": "DB_PASSWORD=$'§' python train.py",
    "compose": "environment:\n  - HF_TOKEN=§",
    "helm": "helm install x --set auth.password=§",
    "option of Java": "java -Ddb.password=§ -jar x.jar",
    "override of Hydra": "python train.py +hub.token=§ lr=0.1",
    "element with attributes": '<add key="DbPassword" value="§"/>',
    "login of a library": "wandb.login(key='§')",
    "XML": "<password>§</password>",
    "login of Docker": "docker login -u max -p § nvcr.io",
}
"""Places that say by themselves that there is a secret."""
_PART = re.compile(r"(?P<one>\[[^\]]+\]|\\?.)(?:\{(?P<least>\d+)(?:,(?P<most>\d+))?\})?")


def drawn_token(row: Row, random: Random) -> str:
    """Draw a token of a maker."""
    least, _, most = row["length"].rstrip("+").partition("-")
    longest = most or (int(least) + _MORE if row["length"].endswith("+") else least)
    body = f"[{row['alphabet']}]{{{least},{longest}}}"
    return _drawn(row["before"], random) + random.choice(row["begins"].split("|")) + _drawn(body, random)


def drawn_password(random: Random) -> str:
    """Draw what a person takes for a password: letters alone, figures alone, or with signs that end no value."""
    alphabet = random.choice(
        (string.ascii_lowercase, string.ascii_letters, string.digits, string.ascii_letters + string.digits + "!#%*+-=?^_~.")
    )
    return random.choice(string.ascii_letters) + "".join(random.choices(alphabet, k=random.randint(7, 24)))


def _drawn(form: str, random: Random) -> str:
    """Draw a text of a form: classes of signs and single signs, each with how often it comes."""
    parts = []
    for part in _PART.finditer(form):
        signs = [sign for sign in _SIGNS if re.fullmatch(part["one"], sign)]
        least = int(part["least"] or 1)
        parts += random.choices(signs, k=random.randint(least, int(part["most"] or least)))
    return "".join(parts)
