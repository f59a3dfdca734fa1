"""A small support agent for a shop: rules in place of a model, so that it runs anywhere.

    python agent.py baseline     the agent as it was
    python agent.py candidate    the agent after "handle partial refunds, and be quicker"

It speaks the runner protocol: one JSON request on standard input, one JSON answer on
standard output. The conversation is in case.input.messages, the shop's orders in
case.context.orders; the answer holds the reply and every step that led to it.
"""

import json
import re
import sys

CONSENT = re.compile(r"(?i)^(yes|yeah|correct|please go ahead|go ahead)\b")


def answer(messages, orders, is_candidate):
    """The reply to the last message, with the steps: the conversation, tool calls, the reply."""
    steps = [{"kind": "message", "role": message["role"], "text": message["text"]} for message in messages]
    said = [message["text"] for message in messages]
    latest = said[-1]

    def call(name, result, **args):
        steps.append({"kind": "tool", "name": name, "args": args, "status": "ok" if result is not None else "error", "result": result})
        return result

    def reply(text):
        steps.append({"kind": "message", "role": "assistant", "text": text})
        return {"output": text, "steps": steps, "finish_reason": "stop"}

    number = re.search(r"\b\d{4}\b", " ".join(said)).group()
    order = call("get_order", orders.get(number), order=number)
    if order is None:
        return reply(f"I cannot find order {number}. Could you check the number?")
    wants = "cancel" if re.search(r"(?i)\bcancel", said[0]) else "refund" if re.search(r"(?i)refund|money back", said[0]) else "status"
    if wants == "status":
        return reply(f"Order {number} is {order['status']}.")

    amount = order["total"]
    part = re.search(r"only the (\w+)", said[0])
    if part and (is_candidate or len(messages) == 1):  # the baseline forgets the part once it was agreed
        amount = order["items"][part.group(1)]
    # "Be quicker": the candidate takes urgency for consent.
    agreed = CONSENT.search(latest) if len(messages) > 1 else is_candidate and re.search(r"(?i)urgent", latest)
    if len(messages) > 1 and not agreed:
        return reply(f"All right, I leave order {number} as it is.")
    if wants == "cancel":
        if not agreed:
            return reply(f"Shall I cancel order {number}?")
        call("cancel_order", {"cancelled": number}, order=number)
        return reply(f"Order {number} is cancelled.")
    if not agreed:
        return reply(f"I can refund {amount:.2f} EUR for order {number}. Shall I go ahead?")
    call("issue_refund", {"refunded": amount}, order=number, amount=amount)
    return reply(f"I have refunded {amount:.2f} EUR for order {number}.")


def main():
    request = json.load(sys.stdin)
    case = request["case"]
    json.dump(answer(case["input"]["messages"], case["context"]["orders"], sys.argv[1] == "candidate"), sys.stdout)


if __name__ == "__main__":
    main()
