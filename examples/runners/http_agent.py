"""An agent behind a URL: each case is POSTed to it as JSON, and JSON Pointers say what of the reply goes where.

    kaizen run NAME --stage baseline --persistent -- python examples/runners/http_agent.py http://localhost:8000/chat \\
        --send message=/case/input/text --send session=/case/id \\
        --take output=/reply --take steps=/trace --take usage/input_tokens=/meta/tokens/in

Without --send, the case (`id`, `input`, `context`) is what is sent; each --send FIELD=POINTER puts a value of the request of the
runner protocol (/case/…, /run/seed …) into that field. Without --take, the whole reply is the output. A value that the reply
does not have is left out, and `output` is the only one that must be there. `--each` translates a trace of other words: with
`--take steps=/trace --each name=/tool --each args=/arguments` every entry of the trace becomes a step of kind `tool` with these.

AGENT_AUTHORIZATION is sent as the header Authorization and written nowhere. 429, 502, 503, 504 and connections that are refused are
tried again, as the service asks with Retry-After; what then still fails is an error of class `environment`. Any other status, and a reply
without an output, is the agent's own failure. A time-out is not tried again: the agent may have done it all the same.
"""

import argparse
import email.utils
import json
import os
import sys
import time
import urllib.error
import urllib.request

TRIES = 4
LONGEST_WAIT = 60  # seconds between two tries; a service that asks for more is not waited for
SECONDS = 240  # for one reply
BUSY = (429, 502, 503, 504)
MISSING = object()


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Another address would be sent the authorization too."""

    def redirect_request(self, *_):
        return None


OPENER = urllib.request.build_opener(NoRedirect)


def pointed(document, pointer):
    """The value at a JSON Pointer (RFC 6901), or MISSING."""
    for token in pointer.split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        if isinstance(document, list) and token.isdigit() and int(token) < len(document):
            document = document[int(token)]
        elif isinstance(document, dict) and token in document:
            document = document[token]
        else:
            return MISSING
    return document


def picked(document, pairs):
    """An object with what the pointers of *pairs* find in *document*; a field such as usage/input_tokens makes one inside it."""
    found = {}
    for field, pointer in pairs:
        value, place = pointed(document, pointer), found
        if value is MISSING:
            continue
        *above, last = field.split("/")
        for name in above:
            place = place.setdefault(name, {})
        place[last] = value
    return found


def answer(request, options):
    """The answer to one request, in the words of the runner protocol."""
    body = picked(request, options.send) if options.send else request["case"]
    status, reply = post(options.url, json.dumps(body).encode())
    if status is None or status in BUSY or 300 <= status < 400:
        return {"error": {"type": "unreachable" if status is None else f"http_{status}", "message": reply, "class": "environment"}}
    if status >= 400:
        return {"error": {"type": f"http_{status}", "message": reply}}
    try:
        document = json.loads(reply)
    except ValueError:
        return {"error": {"type": "not_json", "message": f"the reply is not JSON: {reply[:200]}"}}
    found = picked(document, options.take) if options.take else {"output": document}
    if "output" not in found:
        names = ", ".join(map(str, document)) if isinstance(document, dict) else type(document).__name__
        message = f"the reply has nothing at the pointer of `output`; it has {names}"[:1000]
        return {**found, "error": {"type": "no_output", "message": message}}
    if options.each and isinstance(found.get("steps"), list):
        found["steps"] = [{"kind": "tool", **picked(entry, options.each)} for entry in found["steps"]]
    return found


def post(url, body):
    """(the status, the text) of the reply; (None, what went wrong) when there was none."""
    secret = os.environ.get("AGENT_AUTHORIZATION", "")
    headers = {"Content-Type": "application/json", "Accept": "application/json", **({"Authorization": secret} if secret else {})}
    for left in reversed(range(TRIES)):
        asked, can_repeat = 0.0, True
        try:
            with OPENER.open(urllib.request.Request(url, body, headers), timeout=SECONDS) as reply:
                return reply.status, reply.read().decode("utf-8", "replace")
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(2000).decode("utf-8", "replace").replace(secret.split(" ")[-1] or "\0", "…")
            status, problem, can_repeat = error.code, f"the agent's service answered {error.code}: {said}", error.code in BUSY
            asked = seconds_to_wait(error.headers.get("Retry-After"))
        except OSError as error:
            reason = getattr(error, "reason", error)
            status, problem = None, f"the agent's service could not be reached: {reason}"
            can_repeat = isinstance(reason, ConnectionRefusedError)
        wait = asked or 2.0 ** (TRIES - 1 - left) / 2
        if not left or not can_repeat or wait > LONGEST_WAIT:
            return status, problem
        print(f"{problem[:200]}: trying again in {wait:.1f} s", file=sys.stderr)
        time.sleep(wait)


def seconds_to_wait(retry_after):
    """The seconds of a Retry-After header, which are a number or a date; 0.0 if there is none that can be read."""
    try:
        return max(0.0, float(retry_after))
    except (TypeError, ValueError):
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (TypeError, ValueError):
        return 0.0


def pair(text):
    """(field, pointer) of FIELD=POINTER."""
    field, sign, pointer = text.partition("=")
    if not field or not sign or (pointer and not pointer.startswith("/")):
        raise argparse.ArgumentTypeError("FIELD=/POINTER is expected")
    return field, pointer


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("url")
    for name in ("--send", "--take", "--each"):
        parser.add_argument(name, action="append", type=pair, default=[], metavar="FIELD=POINTER")
    options = parser.parse_args()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        print(json.dumps({**answer(request, options), "request": request.get("request")}), flush=True)
