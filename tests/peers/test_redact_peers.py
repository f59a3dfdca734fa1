"""Secrets as others know them: keys drawn from the expressions of secret scanners, and a scanner that looks at what was masked.

The families are those of gitleaks' public rules, written down anew; `rstr` draws keys from
them. `detect-secrets` must find nothing in masked text, and finds plenty in the same text
before.
"""

import random
import sys
import tempfile
import unittest
from pathlib import Path

import rstr
from detect_secrets.core.scan import scan_file
from detect_secrets.settings import transient_settings

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support import kaizen
from test_foundation_redact import HARMLESS, IN_CONTEXT, ISSUED

KEYS_OF_EACH = 100

# family: expression of its keys.
FAMILIES = {
    "aws access key": r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}",
    "aws bedrock, long lived": r"ABSKQmVkcm9ja0FQSUtleS[A-Za-z0-9+/]{60,240}={0,2}",
    "github": r"gh[pousr]_[0-9a-zA-Z]{36}",
    "github, fine grained": r"github_pat_[0-9a-zA-Z]{22}_[0-9a-zA-Z]{59}",
    "gitlab": r"gl(?:pat|soat|agent)-[0-9a-zA-Z_-]{20}",
    "gitlab, trigger": r"glptt-[0-9a-f]{40}",
    "slack, bot": r"xoxb-[0-9]{10,13}-[0-9]{10,13}[a-zA-Z0-9-]{10,24}",
    "slack, user": r"xox[pe](?:-[0-9]{10,13}){3}-[a-zA-Z0-9-]{28,34}",
    "slack, legacy": r"xox[ar]-[0-9]-[0-9a-zA-Z]{8,48}",
    "slack, app": r"xapp-[0-9]-[A-Z0-9]{10}-[0-9]{13}-[a-z0-9]{64}",
    "slack, configuration": r"xoxe\.xox[bp]-[0-9]-[A-Z0-9]{100}[A-Z0-9]{63}",
    "google": r"AIza[0-9a-zA-Z_-]{35}",
    "npm": r"npm_[a-z0-9]{36}",
    "pypi": r"pypi-AgEIcHlwaS5vcmc[0-9a-zA-Z_-]{50,200}",
    "rubygems": r"rubygems_[a-f0-9]{48}",
    "hugging face": r"hf_[a-zA-Z]{34}",
    "openai": r"sk-[a-zA-Z0-9]{20}T3BlbkFJ[a-zA-Z0-9]{20}",
    "openai, project": r"sk-proj-[0-9a-zA-Z_-]{74}T3BlbkFJ[0-9a-zA-Z_-]{74}",
    "anthropic": r"sk-ant-(?:api|admin)[0-9]{2}-[0-9a-zA-Z_-]{93}AA",
    "perplexity": r"pplx-[a-zA-Z0-9]{48}",
    "notion": r"ntn_[0-9]{11}[A-Za-z0-9]{35}",
    "linear": r"lin_api_[a-z0-9]{40}",
    "stripe": r"(?:sk|rk)_(?:test|live|prod)_[a-zA-Z0-9]{10,99}",
    "sendgrid": r"SG\.[a-z0-9=_.-]{66}",
    "databricks": r"dapi[a-f0-9]{32}(?:-[0-9])?",
    "digitalocean": r"do[opr]_v1_[a-f0-9]{64}",
    "shopify": r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
    "vault": r"hvs\.[0-9a-zA-Z_-]{90,120}",
    "grafana": r"glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}",
    "sentry": r"sntryu_[a-f0-9]{64}",
    "doppler": r"dp\.pt\.[a-z0-9]{43}",
    "pulumi": r"pul-[a-f0-9]{40}",
    "postman": r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}",
    "age": r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}",
    "private key": r"-----BEGIN (?:RSA |EC |OPENSSH |PGP )?PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\n]{64,400}",
}


class Drawn(unittest.TestCase):
    """Keys drawn from the expressions of FAMILIES."""

    def test_every_key_vanishes_as_text_and_as_evidence(self):
        draw = rstr.Rstr(random.Random(20260101))
        for family, expression in FAMILIES.items():
            for _ in range(KEYS_OF_EACH):
                key = draw.xeger(expression)
                if family.startswith("openai") and not any(letter.isdigit() for letter in key):
                    continue
                with self.subTest(family=family):
                    shown, counts = kaizen.redact_text(f"see {key} there")
                    self.assertTrue(counts)
                    # A character or two may stay, where a key ends in what its issuers do not use there; no eight in a row.
                    rest = kaizen.MASK.sub("", shown)
                    self.assertEqual([start for start in range(len(key) - 7) if key[start : start + 8] in rest], [])
                    masked, hits = kaizen.redact_evidence({"output": [f"first\n{key}\nlast"]})
                    self.assertNotIn(key, masked["output"][0])
                    self.assertTrue(hits)


class Scanner(unittest.TestCase):
    """detect-secrets, with every detector that goes by shape or by name."""

    DETECTORS = (
        "AWSKeyDetector", "AzureStorageKeyDetector", "BasicAuthDetector", "DiscordBotTokenDetector", "GitHubTokenDetector", "GitLabTokenDetector",
        "JwtTokenDetector", "KeywordDetector", "MailchimpDetector", "NpmDetector", "OpenAIDetector", "PrivateKeyDetector", "PypiTokenDetector",
        "SendGridDetector", "SlackDetector", "SquareOAuthDetector", "StripeDetector", "TelegramBotTokenDetector", "TwilioKeyDetector",
    )
    FILTERS = ("detect_secrets.filters.heuristic.is_templated_secret",)

    def findings(self, text):
        """{(detector, line)} of what the scanner finds in *text*."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.txt"
            path.write_text(text, encoding="utf-8")
            with transient_settings({"plugins_used": [{"name": name} for name in self.DETECTORS], "filters_used": [{"path": each} for each in self.FILTERS]}):
                return {(found.type, found.line_number) for found in scan_file(str(path))}

    def test_it_finds_nothing_in_masked_text(self):
        lines = [f"see {key} there" for _, key in ISSUED] + [text.format(secret) for _, text, secret in IN_CONTEXT]
        before = self.findings("\n".join(lines))
        self.assertGreater(len({kind for kind, _ in before}), 8)
        masked = [kaizen.redact_text(line)[0] for line in lines]
        found = {line for kind, line in self.findings("\n".join(masked))}
        self.assertEqual([masked[line - 1] for line in sorted(found) if "***REDACTED:" not in masked[line - 1]], [])
        # Behind a name it takes the mask itself for a secret: what it found must be nothing else.
        for line in sorted(found):
            rest = kaizen.MASK.sub("", masked[line - 1])
            self.assertEqual(self.findings(rest), set(), masked[line - 1])

    def test_it_finds_nothing_in_what_the_redactor_leaves_alone(self):
        found = {kind for kind, _ in self.findings("\n".join(HARMLESS))}
        # It takes any value behind a name for a secret, and an AWS key that goes on after its 20 characters for one.
        self.assertLessEqual(found, {"Secret Keyword", "AWS Access Key"})


if __name__ == "__main__":
    unittest.main()
