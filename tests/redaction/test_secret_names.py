"""Which names mean a secret, and which values behind one are none."""

from __future__ import annotations

import pytest

from oomdoctor.redaction.redact_secrets import redact_secrets, redact_secrets_in
from oomdoctor.redaction.secret_names import names_secret

SECRET = """password passwd PGPASSWORD db_password DB_PASS smtpPass MYSQL_PWD redis.requirepass passphrase client_secret SECRET secret_value
token hub_token HF_TOKEN hubToken authToken _authToken HUGGING_FACE_HUB_TOKEN token_prod hub_token_2 NPM_TOKEN X-Vault-Token csrf-token
api_key apikey apiKey API-KEY OPENAI_API_KEY X-Api-Key WANDB_API_KEY aws_secret_access_key AccountKey private-key ENCRYPTION_KEY
credential credentials Authorization Proxy-Authorization session_cookie accessKey SSH_KEY LANGFUSE_SECRET_KEY"""
NO_SECRET = """max_token max_tokens num_tokens tokenizer tokenizer_mode token_type_ids pad_token eos_token bos_token pad_token_id image_token
next_token stop_token new_token per_token special_token mask_token lm_head_token_count tokens_per_second token_dropping first_token
sort_keys key key_value primary_key cache_key partition_key key_states past_key_values keyboard monkey KeyError foreign_key dataset_key
forward_pass first_pass num_pass bypass passed compass passthrough password_file secretName secretKeyRef password_min_length
PWD OLDPWD author authority authorization_url api_key_env token_file tokenization detokenize secretary"""


@pytest.mark.parametrize("name", SECRET.split())
def test_means_a_secret(name: str) -> None:
    assert names_secret(name)


@pytest.mark.parametrize("name", NO_SECRET.split())
def test_means_none(name: str) -> None:
    assert not names_secret(name)


GOES = [
    ("password: correcthorse", "password: <token-1>", "a password of letters alone"),
    ("--hub_token abcdefgh --bf16", "--hub_token <token-1> --bf16", "an option's value that is a word"),
    ("DB_PASSWORD=12345678", "DB_PASSWORD=<token-1>", "a password of figures alone"),
    ("password='a b c' next", "password='<token-1>' next", "a value with blanks in quotes"),
    ("api_key: 'it\\'s'", "api_key: '<token-1>'", "a quote that is escaped in a value"),
    ("export PASSWORD=a,b;c", "export PASSWORD=<token-1>", "signs in a value"),
    ("f(token='abcdefgh')", "f(token='<token-1>')", "a bracket behind a value stays"),
    ("(password=abcdefgh)", "(password=<token-1>)", "a bracket without quotes stays"),
    ("x=1, password=abcdefgh, y=2", "x=1, password=<token-1>, y=2", "what comes behind a comma stays"),
    ("?token=abcdefgh&page=2", "?token=<token-1>&page=2", "the next part of a query stays"),
    ("- name: DB_PASSWORD\n  value: abc", "- name: DB_PASSWORD\n  value: <token-1>", "a variable of a container"),
    ("password = 'abcdef", "password = '<token-1>", "a quote that a cut has taken away"),
    ("lr          0.1\nhub_token   abcdefgh", "lr          0.1\nhub_token   <token-1>", "columns"),
    ("login with hf_ab…", "login with <token-1>…", "what is left of a token that was cut"),
    ("Authorization: Basic abcdefgh", "Authorization: Basic <token-1>", "a scheme stays"),
]  # fmt: skip
STAYS = [
    ("token: Unexpected end", "a word after token"),
    ("image_token=151655 pad_token: 151643", "numbers of a vocabulary"),
    ("HF_TOKEN=$HF_TOKEN password=${PASSWORD} token={token}", "references"),
    ("api_key: required, password: none, token: ***", "words that there is none"),
    ("f(token=get_token(), api_key=args.api_key, password=password)", "code"),
    ("--use_auth_token --bf16", "an option without a value"),
    ("usage: x [--api-key API_KEY]", "a usage line"),
    ("credentials: /run/secrets/aws.json private_key=/root/.ssh/id", "paths"),
    ("def f(token: str, api_key: Optional[str] = None)", "types"),
    ("name: DB_HOST\nvalue: db", "another variable"),
    ("['token', 'labels', 'key']", "names in a list"),
]


@pytest.mark.parametrize(("text", "safe"), [pytest.param(text, safe, id=why) for text, safe, why in GOES])
def test_goes(text: str, safe: str) -> None:
    assert redact_secrets(text) == safe
    assert redact_secrets(safe) == safe


@pytest.mark.parametrize("text", [pytest.param(text, id=why) for text, why in STAYS])
def test_stays(text: str) -> None:
    assert redact_secrets(text) == text


def test_a_tree_is_judged_by_its_keys_options_and_names() -> None:
    tree = {
        "hub_token": "abcdefgh",
        "argv": ["train.py", "--api-key", "correct", "--bf16", "yes"],
        "env": [{"name": "DB_PASSWORD", "value": "horse"}, {"name": "DB_HOST", "value": "db"}],
        "note": "password=battery",
        "steps": 3,
    }
    assert redact_secrets_in(tree) == {
        "hub_token": "<token-1>",
        "argv": ["train.py", "--api-key", "<token-2>", "--bf16", "yes"],
        "env": [{"name": "DB_PASSWORD", "value": "<token-3>"}, {"name": "DB_HOST", "value": "db"}],
        "note": "password=<token-4>",
        "steps": 3,
    }


def test_a_text_of_any_length_is_redacted_to_its_end() -> None:
    line = "word " * 30_000 + "password=abcdefgh\n"
    assert redact_secrets(line * 3) == ("word " * 30_000 + "password=<token-1>\n") * 3


def test_a_key_of_many_lines_is_not_cut_where_pieces_end() -> None:
    begin, end = (f"-----{word} PRIVATE KEY-----" for word in ("BEGIN", "END"))
    body = "\n".join("Ab3+" * 16 for _ in range(25))
    text = f"{'word ' * 13_000}\n{begin}\n{body}\n{end}\n"
    assert "Ab3+" not in redact_secrets(text)
