"""The redactor: every secret vanishes, everything else stays, in linear time.

No key in this file is one: each is put together when the tests run, from a prefix in two
pieces and letters drawn at random, so that nobody and no scanner takes it for a leak.
"""

import base64
import json
import random
import re
import string
import time
import unittest

import support
from support import kaizen

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALPHANUMERIC = UPPER + LOWER + DIGITS
HEX = DIGITS + "abcdef"


def drawn(length, letters=ALPHANUMERIC):
    """*length* letters that are the same in every run, a digit among them if there may be one."""
    made = "".join(random.Random(length).choices(letters, k=length))
    return made[:-1] + "7" if "7" in letters else made


def mask(family):
    return f"***REDACTED:{family}***"


def base64_of(text):
    return base64.b64encode(text.encode()).decode().rstrip("=")


def private_key(label, end="\n"):
    lines = [f"-----{'BEGIN'} {label}-----", drawn(64), drawn(64), drawn(40) + "==", f"-----{'END'} {label}-----"]
    return end.join(lines)


JWT = ".".join([base64_of('{"alg":"HS256","typ":"JWT"}'), base64_of('{"sub":"someone","iat":1}'), drawn(43)])

# family, its key: prefix in pieces, then letters at random.
ISSUED = [
    *(("aws_key", first + "IA" + drawn(16, UPPER + DIGITS)) for first in ("AK", "AS", "AB")),
    ("aws_key", "AC" + "CA" + drawn(16, UPPER + DIGITS)),
    ("aws_key", "A3" + "TX" + drawn(16, UPPER + DIGITS)),
    ("aws_bedrock_key", "AB" + "SK" + drawn(110)),
    ("aws_bedrock_key", "bedrock-" + "api-key-" + drawn(40)),
    *(("github_token", f"gh{kind}" + "_" + drawn(36)) for kind in "pousr"),
    ("github_token", "gh" + "s_" + "123456_" + JWT),
    ("github_token", "github" + "_pat_" + drawn(22) + "_" + drawn(59)),
    ("jwt", JWT),
    ("jwt", JWT + "." + drawn(30) + "." + drawn(22)),
    ("jwt", base64_of(JWT)),
    ("api_key", "sk" + "-" + drawn(48)),
    ("api_key", "sk" + "-proj-" + drawn(80, ALPHANUMERIC + "-_")),
    ("api_key", "sk" + "-ant-api03-" + drawn(93, ALPHANUMERIC + "-_")),
    ("api_key", "sk" + "-or-v1-" + drawn(64, HEX)),
    ("langfuse_key", "sk" + "-lf-" + "-".join(drawn(length, HEX) for length in (8, 4, 4, 4, 12))),
    ("stripe_key", "sk" + "_live_" + drawn(24)),
    ("stripe_key", "rk" + "_test_" + drawn(24)),
    *(("slack_token", f"xox{kind}" + "-" + drawn(12, DIGITS) + "-" + drawn(24)) for kind in "abceoprsd"),
    ("slack_token", "xa" + "pp-1-A" + drawn(10, UPPER + DIGITS) + "-" + drawn(13, DIGITS) + "-" + drawn(64, HEX)),
    ("google_key", "AI" + "za" + drawn(35, ALPHANUMERIC + "_-")),
    ("google_token", "ya" + "29." + drawn(60, ALPHANUMERIC + "_-")),
    ("google_secret", "GOC" + "SPX-" + drawn(28)),
    *(("gitlab_token", f"gl{kind}" + "-" + drawn(20)) for kind in ("pat", "ptt", "dt", "rt", "cbt", "soat", "agent")),
    ("npm_token", "np" + "m_" + drawn(36)),
    ("pypi_token", "py" + "pi-AgE" + drawn(100, ALPHANUMERIC + "_-")),
    ("rubygems_token", "ruby" + "gems_" + drawn(48, HEX)),
    ("huggingface_token", "h" + "f_" + drawn(34, UPPER + LOWER)),
    ("sendgrid_key", "S" + "G." + drawn(22) + "." + drawn(43)),
    ("linear_key", "lin" + "_api_" + drawn(40)),
    ("linear_key", "lin" + "_oauth_" + drawn(64, HEX)),
    ("langsmith_key", "lsv2" + "_pt_" + drawn(32, HEX) + "_" + drawn(10, HEX)),
    ("langsmith_key", "lsv2" + "_sk_" + drawn(32, HEX) + "_" + drawn(10, HEX)),
    ("groq_key", "gs" + "k_" + drawn(52)),
    ("xai_key", "xa" + "i-" + drawn(80)),
    ("perplexity_key", "ppl" + "x-" + drawn(48)),
    ("notion_token", "nt" + "n_" + drawn(46)),
    ("replicate_token", "r" + "8_" + drawn(37)),
    ("databricks_token", "da" + "pi" + drawn(32, HEX)),
    ("digitalocean_token", "do" + "p_v1_" + drawn(64, HEX)),
    *(("shopify_token", f"shp{kind}" + "_" + drawn(32, HEX)) for kind in ("at", "ca", "pa", "ss")),
    ("vault_token", "hv" + "s." + drawn(90)),
    ("grafana_token", "gl" + "sa_" + drawn(32) + "_" + drawn(8, HEX)),
    ("sentry_token", "sn" + "tryu_" + drawn(64, HEX)),
    ("doppler_token", "d" + "p.pt." + drawn(43)),
    ("pulumi_token", "pu" + "l-" + drawn(40, HEX)),
    ("postman_key", "PM" + "AK-" + drawn(24, HEX) + "-" + drawn(34, HEX)),
    ("tailscale_key", "ts" + "key-auth-" + drawn(12) + "-" + drawn(32)),
    ("age_key", "AGE-" + "SECRET-KEY-1" + drawn(58, UPPER + DIGITS)),
    *(("private_key", private_key(label)) for label in (
        "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "PGP PRIVATE KEY BLOCK",
    )),
    ("private_key", private_key("RSA PRIVATE KEY", "\\n")),
]

WORD = drawn(12)  # a secret without a shape
LOGIN = f"ann:{WORD}"
# family, text with {} in the place of the mask, the secret in that place.
IN_CONTEXT = [
    ("slack_webhook", "POST https://hooks.slack.com/services/{} 200", f"T{drawn(8, UPPER)}/B{drawn(8, UPPER)}/{drawn(24)}"),
    ("slack_webhook", "hooks.slack.com/triggers/{}", f"E{drawn(8)}/{drawn(13, DIGITS)}/{drawn(32, HEX)}"),
    ("private_key", "key:\n{}", private_key("RSA PRIVATE KEY").rpartition("-----END")[0] + "the rest of the text"),
    ("url_credentials", "git clone https://{}@example.com/x.git", LOGIN),
    ("url_credentials", "https://{}@example.com", drawn(20)),
    ("url_credentials", "postgres://{}@db:5432/app?x=1", "app:a@" + WORD),
    ("url_credentials", r"https:\/\/{}@example.com\/x", LOGIN),
    ("url_credentials", "redirect=https%3A%2F%2F{}%40example.com%2Fx", f"ann%3A{WORD}"),
    ("authorization", "Authorization: Bearer {}\nHost: x", WORD),
    ("authorization", "POST /v1 Authorization: Basic {}", base64_of(LOGIN)),
    ("authorization", "authorization=token {}", WORD),
    ("authorization", "Proxy-Authorization: {}", WORD),
    ("authorization", '{{"Authorization": "Bearer {}", "Host": "x"}}', WORD),
    ("authorization", '{{\\"authorization\\": \\"Bearer {}\\", \\"host\\": 1}}', WORD),
    ("authorization", "curl -H 'Authorization: Bearer {}' https://x", WORD),
    ("authorization", 'Authorization: Digest {}\nnext', f'username="ann", response="{WORD}"'),
    ("authorization", "Authorization: AWS4-HMAC-SHA256 {}", f"Credential=x/20260101, SignedHeaders=host, Signature={drawn(64, HEX)}"),
    ("authorization", "HTTP_AUTHORIZATION=Bearer {}", WORD),
    ("bearer_token", "sent Bearer {} to it", WORD),
    ("bearer_token", "bearer {}.", WORD),
    ("basic_credentials", "with Basic {} sent", base64_of(LOGIN) + "=" * (-len(base64_of(LOGIN)) % 4)),
    ("cookie", "Cookie: {}\nHost: x", f"sid={WORD}; theme=dark"),
    ("cookie", 'Set-Cookie: {}', f"sid={WORD}; HttpOnly"),
    ("cookie", '{{"cookie": "{}", "n": 1}}', f"sid={WORD}"),
    ("named_secret", "password={}", WORD),
    ("named_secret", "password: {}", "hunter2"),
    ("named_secret", "PASSWORD = '{}' # note", "a b c"),
    ("named_secret", 'DB_PASSWD="{}"', WORD),
    ("named_secret", "export DEMO_API_KEY={}", WORD),
    ("named_secret", "x-api-key: {}", WORD),
    ("named_secret", "aws_secret_access_key = {}", drawn(40, ALPHANUMERIC + "/+")),
    ("named_secret", "?api_key={}&page=2", WORD),
    ("named_secret", "client.secret := {};", WORD),
    ("named_secret", "{{token => {}, n => 1}}", WORD),
    ("named_secret", "passphrase={}", WORD),
    ("named_secret", '{{"apiKey":"{}","n":1}}', WORD),
    ("named_secret", '{{"dbPassword": "{}"}}', WORD),
    ("named_secret", "accessToken: `{}`", WORD),
    ("named_secret", '{{\\"private_key\\": \\"{}\\"}}', WORD),
    ("named_secret", '{{\\\\\\"secret\\\\\\": \\\\\\"{}\\\\\\"}}', WORD),
    ("named_secret", '"secret": "{}"', 'with \\"quotes\\" inside'),
    ("named_secret", "Accountkey={}", WORD),
    ("named_secret", "**Password:** {} is new", WORD),
    ("named_secret", "run agent --api-key {} -v", WORD),
    ("named_secret", "run agent --db-password '{}' -v", WORD),
    ("named_secret", "token={}", "12ab"),
    ("named_secret", "credentials: {}", WORD),
    ("named_secret", "naïve Grüße password={}", WORD),
]

# What looks like a secret and is none.
HARMLESS = [
    f"sha1 {drawn(40, HEX)} sha256:{drawn(64, HEX)}",
    f"sha512-{base64.b64encode(drawn(64).encode()).decode()}",
    "123e4567-e89b-12d3-a456-426614174000 trace 0af7651916cd43dd8448eb211c80319c span b7ad6b7169203331",
    "git@github.com:owner/repo.git ssh://git@github.com/owner/repo.git git+ssh://me@host/x ann@example.com",
    "@scope/pkg@1.2.3 https://registry.example/@scope/pkg https://medium.com/@user https://x.example/?email=a@b.c",
    "http://[2001:db8::1]:8080/x http://localhost:8080/a@b mailto:ann@example.com",
    "total_tokens=123 input_tokens: 5 max_tokens=4096 token_count=7 token: 128 tokenizer=fast",
    "Unexpected token } in JSON at position 1; Unexpected token: }",
    "sk-learn-is-a-very-long-name-without-digits disk-0123456789abcdefghij task-0123456789abcdefghijklmn",
    f"-----{'BEGIN'} CERTIFICATE-----\n{drawn(64)}\n-----{'END'} CERTIFICATE-----",
    f"-----{'BEGIN'} PUBLIC KEY-----\n{drawn(64)}\n-----{'END'} PUBLIC KEY-----",
    f"data:image/png;base64,{drawn(200)} 2026-01-02T03:04:05.678Z",
    "Basic usage, Basic authentication, basic information, Basic subscription",
    "bearer of bad news, Bearer token-based, the Bearer authentication scheme",
    "passwordless login, secretary: Ann, secretive, the secret of it, tokens: many",
    "Authorization: Basic authentication is needed; authorization: none",
    "Authorization: The manager approved the refund.",
    "cookie: yes please, cookies: 3, cookiecutter",
    "api_key=null password: none secret=true token: undefined password = false",
    "password: the user forgot it; token: your session; secret: to be kept",
    "token = get_token() token=self.token api_key=os.environ['X'] password: str, secret: Optional[str]",
    'api_key="$API_KEY" password: "${DB_PASSWORD}" token=<your-token> secret="{{ secret }}" key=%API_KEY%',
    "monkey=1 keyboard: qwerty key: value key=abc public_key=abc primary_key: 17 cache_key=abc idempotency_key=abc",
    "pwd=/home/ann/project PWD: ~/x, oldpwd=/tmp",
    "password=******** token=... secret: -",
    f"pk-lf-{drawn(32, HEX)} pk_live_{drawn(24)}",
    "eyJhbGciOiJIUzI1NiJ9 and eyJhbGciOiJIUzI1NiJ9. No dot part follows.",
    "AKIA AKIASHORT akiaiosfodnn7example " + "AK" + "IA" + drawn(17, UPPER + DIGITS),
    "npm_config_registry github_patch hf_hub_download lin_api xai-sdk gsk_test r8_x",
    "fantasia asia 3a 2f %40 50% off @ noon // -- --token",
    "2 raisins per cookie = 27/3/4=2.25 batches; arn:aws:secretsmanager:eu-west-1:123456789012:secret:app AWS::X::Secret: x1",
    r"^https?://[-a-zA-Z0-9()@:%._\+~#=]{1,256} [a-z_.://=+-@]+ {input_token: nextToken} password=%(password)s token = self.x1 key2",
    "authorization = self.headers.get('x') token = base64.b64decode(x) secret=process.env.SECRET_2",
    "config says key-id= and token_type=bearer&expires_in=3600",
]


class Redactor(support.StrictTestCase):
    """`redact_text`: the value layer."""

    def check(self, text, expected, families):
        self.assertEqual(kaizen.redact_text(text), (expected, families))
        self.assertEqual(kaizen.redact_text(expected), (expected, {}), "masked twice")

    def test_keys_of_known_issuers_vanish_and_what_stands_around_them_stays(self):
        for family, key in ISSUED:
            for text in ("{}", "see {} there", "({}),", "<{}>", "x={}\ny", "a\\n{} b", "\x1b[31m{}\x1b[0m", "é{}é"):
                with self.subTest(family=family, text=text, length=len(key)):
                    self.check(text.format(key), text.format(mask(family)), {family: 1})

    def test_secrets_behind_a_name_or_a_scheme_vanish_and_the_name_stays(self):
        for family, text, secret in IN_CONTEXT:
            with self.subTest(text=text):
                self.check(text.format(secret), text.format(mask(family)), {family: 1})

    def test_what_is_no_secret_stays_byte_for_byte(self):
        for text in HARMLESS:
            with self.subTest(text=text[:60]):
                self.assertEqual(kaizen.redact_text(text), (text, {}))

    def test_secrets_are_found_in_json_inside_a_string_inside_a_string(self):
        for family, key in ISSUED:
            if "\\n" in key or "\n" in key:
                continue
            with self.subTest(family=family):
                nested = json.dumps(json.dumps(json.dumps({"log": f"first line\n{key}\nlast"})))
                self.check(nested, nested.replace(key, mask(family)), {family: 1})

    def test_several_secrets_are_counted_by_family(self):
        key, other = dict(ISSUED)["github_token"], dict(ISSUED)["npm_token"]
        self.check(f"{key} {key}\npassword={WORD}", f"{mask('github_token')} {mask('github_token')}\npassword={mask('named_secret')}",
                   {"github_token": 2, "named_secret": 1})
        self.check(f"{key}, {other}", f"{mask('github_token')}, {mask('npm_token')}", {"github_token": 1, "npm_token": 1})

    def test_a_mask_is_no_secret_whatever_stands_around_it(self):
        for text in ("{}", "password={}", "Authorization: Bearer {}", "https://{}@host/", 'token: "{}"', "Cookie: {}", "--api-key {}", "**token:** {}"):
            with self.subTest(text=text):
                shown = text.format(mask("aws_key"))
                self.assertEqual(kaizen.redact_text(shown), (shown, {}))

    def test_exact_values_are_masked_wherever_they_stand(self):
        text, counts = kaizen.redact_text(f"a{WORD}b password={WORD}", [WORD])
        self.assertEqual((text, counts), (f"a{mask('environment')}b password={mask('environment')}", {"environment": 2}))

    def test_lone_surrogates_and_nul_are_no_trouble(self):
        self.check(f"\ud800\0password={WORD}\udfff", f"\ud800\0password={mask('named_secret')}", {"named_secret": 1})


class RandomTexts(support.StrictTestCase):
    """Texts put together at random from what rules begin and end with."""

    PIECES = (
        "token secret password pwd key api access Token dbPassword authorization cookie basic Basic QTpi a=b null 123 x1 A z n t".split(),
        '_ - . = : " \' ` \\ @ / -- , ; ( ) { } [ ] < > ** => := *** $X é ſ \u212a \u0130'.split(),
        [" ", "\n", "\\n", "\\t", "\x1b[31m", "\\u0007", "\x07", "://", "%3A%2F%2F", "%40", "Authorization: ", "Bearer ", "Cookie: ", "--token "],
        ["gh" + "p_", "sk" + "-", "AK" + "IA", "ey" + "J", "np" + "m_", "h" + "f_", "xo" + "xb-", "0123456789", "REDACTED:", mask("aws_key")],
        [key for _, key in ISSUED[::4]],
        [f"-----{'BEGIN'} PRIVATE KEY-----", f"-----{'END'} PRIVATE KEY-----", "hooks.slack.com/services/", 'token: "', "api_key="],
    )

    @classmethod
    def setUpClass(cls):
        chance = random.Random(20260101)
        flat = [piece for pieces in cls.PIECES for piece in pieces]
        cls.texts = ["".join(chance.choice(flat) for _ in range(chance.randint(1, 14))) for _ in range(1500)]

    def test_masking_twice_changes_nothing(self):
        for text in self.texts:
            once = kaizen.redact_text(text)[0]
            self.assertEqual(kaizen.redact_text(once), (once, {}), repr(text))

    def test_the_pass_over_the_bytes_leaves_out_no_rule_that_would_find_something(self):
        rules = kaizen.redaction_plan().rules
        for text in self.texts:
            shown, before = text, None
            while shown != before:
                before = shown
                for rule in rules:
                    shown = kaizen.masked_by(rule, shown, {})
            self.assertEqual(kaizen.redact_text(text)[0], shown, repr(text))

    def test_evidence_is_masked_as_its_strings_are(self):
        for text in self.texts:
            self.assertEqual(kaizen.redact_evidence({"a": [text, 1]})[0]["a"][0], kaizen.redact_text(text)[0], repr(text))


class Evidence(support.StrictTestCase):
    """`redact_evidence`: strings and keys of a JSON value."""

    def test_the_pointer_leads_to_what_was_masked(self):
        aws = dict(ISSUED)["aws_key"]
        value = {"output": f"key-id={aws}", "steps": [{"args": {"a/b~c": [0, f"password={WORD} {aws}"]}}], "n": 1}
        masked, hits = kaizen.redact_evidence(value)
        self.assertEqual(hits, [
            {"pointer": "/output", "family": "aws_key", "count": 1},
            {"pointer": "/steps/0/args/a~1b~0c/1", "family": "aws_key", "count": 1},
            {"pointer": "/steps/0/args/a~1b~0c/1", "family": "named_secret", "count": 1},
        ])
        for hit in hits:
            found, at = kaizen.follow_pointer(masked, kaizen.pointer_tokens(hit["pointer"]))
            self.assertTrue(found)
            self.assertIn(mask(hit["family"]), at)
        self.assertEqual(masked["output"], f"key-id={mask('aws_key')}")
        self.assertEqual(kaizen.redact_evidence(masked), (masked, []))

    def test_names_of_fields_say_nothing(self):
        value = {"idempotency_key": WORD, "next_token": WORD, "password": WORD, "authorization": "Bearer"}
        self.assertEqual(kaizen.redact_evidence(value), (value, []))

    def test_a_secret_that_is_a_key_is_masked_and_no_member_is_lost(self):
        first, second = [key for family, key in ISSUED if family == "slack_token"][:2]
        masked, hits = kaizen.redact_evidence({first: 1, "x": 2, second: [f"token={WORD}"]})
        name = mask("slack_token")
        self.assertEqual(masked, {name: 1, "x": 2, f"{name} (3)": [f"token={mask('named_secret')}"]})
        self.assertEqual([(hit["pointer"], hit["family"]) for hit in hits],
                         [(f"/{name}", "slack_token"), (f"/{name} (3)", "slack_token"), (f"/{name} (3)/0", "named_secret")])
        self.assertEqual(kaizen.redact_evidence(masked), (masked, []))

    def test_what_holds_no_secret_is_the_same_object(self):
        aws = dict(ISSUED)["aws_key"]
        value = {"a": ["clean", {"b": "about a password"}], "c": [aws], "d": {"e": "clean"}}
        masked, _ = kaizen.redact_evidence(value)
        self.assertIs(masked["a"], value["a"])
        self.assertIs(masked["d"], value["d"])
        self.assertEqual(value["c"], [aws])
        clean = {"a": value["a"], "d": value["d"]}
        self.assertIs(kaizen.redact_evidence(clean)[0], clean)
        for scalar in (None, True, 1, 1.5, "", []):
            self.assertIs(kaizen.redact_evidence(scalar)[0], scalar)

    def test_a_value_of_the_environment_is_found_with_the_escapes_of_json(self):
        secret = 'x"\\\n' + WORD
        masked, hits = kaizen.redact_evidence({"a": f"<{secret}>"}, [secret])
        self.assertEqual((masked["a"], hits), (f"<{mask('environment')}>", [{"pointer": "/a", "family": "environment", "count": 1}]))

    def test_ordinary_evidence_is_not_walked_through(self):
        steps = [{"kind": "tool", "name": "lookup_order", "args": {"id": 7}, "status": "ok", "result": "found\nit"}] * 3
        document = {"output": "Your refund of 29.00 EUR is on its way.", "steps": steps, "usage": {"input_tokens": 10, "total_tokens": 13}}
        self.assertEqual(kaizen.rules_for(kaizen.encode_compact(document).encode()), [])

    def test_evidence_may_be_nested_as_deep_as_json_may_be(self):
        value, masked = f"password={WORD}", f"password={mask('named_secret')}"
        for _ in range(kaizen.MAX_DEPTH // 2):
            value, masked = {"a": [value]}, {"a": [masked]}
        self.assertEqual(kaizen.redact_evidence(value)[0], masked)
        self.assertEqual(kaizen.redact_all_layers(value), masked)

    def test_secrets_are_found_at_every_place_of_a_long_text(self):
        key = dict(ISSUED)["github_token"]
        block = kaizen.SCAN_BLOCK
        for before in (0, 1, *range(block - 60, block + 3, 7), 3 * block - 5):
            text = f"{'.' * before}\n{key} end"
            self.assertEqual(kaizen.redact_evidence([text])[0][0], f"{'.' * before}\n{mask('github_token')} end", before)


class KeyLayer(support.StrictTestCase):
    """Names that tell a secret, in logs, headers and command lines."""

    SECRET = (
        "token password secret passwd pwd passphrase authorization proxy_authorization cookie set_cookie api_key apikey x_api_key credential "
        "credentials auth dsn connection_string database_url private_key client_secret accessToken X-Auth-Token apiKey APIKey X-API-Key "
        "member_key cache.key Set-Cookie DB_PASSWORD basic_auth user.credential"
    ).split()
    NONE = "tokens input_tokens total_tokens token_count tokenizer monkey keyboard author key keys trace_id passwordless secretary cookies".split()

    def test_the_lists_of_names(self):
        for name in self.SECRET:
            self.assertTrue(kaizen.is_secret_name(name), name)
        for name in self.NONE:
            self.assertFalse(kaizen.is_secret_name(name), name)

    def test_a_field_with_such_a_name_is_masked_whole_unless_it_is_null(self):
        key = dict(ISSUED)["npm_token"]
        value = {"password": "x", "token": ["a", {"b": 1}], "secret": None, "auth": 7, "n": [key, b"password=x1", ("a", {"c"})], "api_key": mask("aws_key")}
        self.assertEqual(kaizen.redact_all_layers(value), {
            "password": mask("named_secret"), "token": mask("named_secret"), "secret": None, "auth": mask("named_secret"),
            "n": [mask("npm_token"), f"password={mask('named_secret')}", ["a", ["c"]]], "api_key": mask("aws_key"),
        })

    def test_command_lines(self):
        named, login = mask("named_secret"), mask("basic_credentials")
        table = [
            (["agent", "--api-key", WORD, "-v"], ["agent", "--api-key", named, "-v"]),
            (["agent", f"--token={WORD}"], ["agent", f"--token={named}"]),
            (["agent", "--token", "--verbose"], ["agent", "--token", "--verbose"]),
            (["agent", "--signing-key", WORD], ["agent", "--signing-key", named]),
            (["agent", "--max-tokens", "500", "--seed=7"], ["agent", "--max-tokens", "500", "--seed=7"]),
            (["curl", "-H", f"Authorization: Bearer {WORD}"], ["curl", "-H", f"Authorization: Bearer {mask('authorization')}"]),
            (["curl", "-H", f"X-Auth-Token: {WORD}"], ["curl", "-H", f"X-Auth-Token: {named}"]),
            (["curl", f"--header=Cookie: sid={WORD}"], ["curl", f"--header=Cookie: {mask('cookie')}"]),
            (["curl", "-u", f"ann:{WORD}", "x"], ["curl", "-u", f"ann:{login}", "x"]),
            (["docker", "run", "-u", "1000:1000"], ["docker", "run", "-u", "1000:1000"]),
            (["env", f"DEMO_API_KEY={WORD}", "LANG=C"], ["env", f"DEMO_API_KEY={named}", "LANG=C"]),
            (["env", f"DEMO_KEY=a\n{WORD}"], ["env", f"DEMO_KEY={named}"]),
            (["sh", "-c", f"agent --password {WORD}"], ["sh", "-c", f"agent --password {named}"]),
            (["agent", f"https://ann:{WORD}@host/x"], ["agent", f"https://{mask('url_credentials')}@host/x"]),
            (["agent", f'{{"password": "{WORD}"}}'], ["agent", f'{{"password": "{named}"}}']),
        ]
        for argv, expected in table:
            with self.subTest(argv=argv[:2]):
                self.assertEqual(kaizen.redact_arguments(argv), expected)
                self.assertEqual(kaizen.redact_arguments(expected), expected)

    def test_secrets_of_the_environment(self):
        environ = {
            "DEMO_API_KEY": WORD, "OTHER_TOKEN": WORD + "longer", "SHORT_KEY": "1234567", "PWD": "/home/ann/work", "HOME": "/home/ann",
            "PGPASSWORD": "postgres", "DB_PASSWORD": "postgres", "MY_SECRET": "correcthorsebatterystaple", "ODD_KEY": "***REDACTED:aws_key***",
        }
        self.assertEqual(kaizen.environment_secrets(environ), ["correcthorsebatterystaple", WORD + "longer", WORD])
        self.assertEqual(kaizen.redact_arguments(["a", f"--name={WORD}"], [WORD]), ["a", f"--name={mask('environment')}"])


class LinearTime(support.StrictTestCase):
    """No text takes longer than its length allows."""

    UNITS = (
        *sorted({re.match(r"[A-Za-z0-9_-]*", row.split()[2])[0] for row in kaizen.TOKEN_SHAPES.strip().split("\n")} - {""}),
        "token=", 'token="', 'token=\\"', "token=\"\\", "token=!", "token=1", "password: ", "api_key=", "authorization:", 'authorization:"a"',
        "authorization: a b ", "Authorization: Digest ", "cookie:", "cookie: a=", "bearer aaaaaaaa ", "Basic QTpi ", "://", "://a", "://a@", ":\\/\\/a",
        "%3a%2f%2fa%40", "%3a%2f%2fa,", "-----BEGIN ", "-----BEGIN A PRIVATE KEY", "-----BEGIN RSA PRIVATE KEY-----\n", "--a", "--token ",
        "--a-token x ", "-", "\\", '\\"', "\"'", "***REDACTED:", mask("token"), "token=" + mask("x"), "\x1b[31mtoken", "\\u001b[", "[12;", "a", "é",
        "aaaaaaaaaaaaaaaaaaaaaaaaatoken=", "secret => ", "credential:`", "@",
    )
    EVERY_RULE = "bearer private github @ cookie basic sk token key "  # words that have the more costly rules tried

    def seconds(self, text):
        started = time.process_time()
        kaizen.redact_text(text)
        return time.process_time() - started

    def test_twice_the_text_takes_less_than_2_6_times_as_long_and_a_megabyte_less_than_2_seconds(self):
        size = 30_000
        for rule in kaizen.redaction_plan().rules:
            kaizen.compiled(rule.pattern)
        for unit in self.UNITS:
            for before in (self.EVERY_RULE, 'authorization: "', 'password="'):
                short, long = (before + (unit * (length // len(unit)))[:length] for length in (size, 2 * size))
                for _ in range(4):  # another program may have had the processor
                    once, twice = self.seconds(short), self.seconds(long)
                    if twice < max(2.6 * once, 0.004) and twice < 2 * len(long) / 1e6:
                        break
                else:
                    self.fail(f"{unit!r} behind {before!r}: {once:.4f} s, twice as much {twice:.4f} s")


if __name__ == "__main__":
    unittest.main()
