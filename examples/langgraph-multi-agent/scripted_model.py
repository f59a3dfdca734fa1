"""A chat model without a model: a script that LangGraph takes for one. It is what --mode mock runs.

It knows the three roles by the first line of the system prompt, and heeds two of its sentences to the letter: `until every
problem` (the supervisor hands over again) and `above 50 EUR` (billing requests approval). All else is fixed.
"""

import json
import re

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

PROBLEMS = {"billing": r"(?i)invoice|charged|refund", "technical": r"(?i)router|slow|offline"}


class ScriptedModel(BaseChatModel):
    """Answers by rules; every call and its order come from the same messages that a model would get."""

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **_):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **_):
        prompt, asked = messages[0].content, next(message.content for message in messages if isinstance(message, HumanMessage))
        role = re.match(r"You are the (\w+)", prompt).group(1)
        results = {message.name: message for message in messages if isinstance(message, ToolMessage)}
        answers = [message for message in messages if isinstance(message, AIMessage) and message.name != "supervisor"]
        said = [message.content for message in answers if message.content]
        found = {"supervisor": supervisor, "billing": billing, "technical": technical}[role](prompt, asked, results, said)
        if isinstance(found, str):
            message = AIMessage(found)
        else:
            name, args = found
            call = {"name": name, "args": args, "id": f"call-{len(messages)}", "type": "tool_call"}
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


def supervisor(prompt, asked, results, said):
    places = {name: re.search(pattern, asked) for name, pattern in PROBLEMS.items()}
    problems = sorted((match.start(), name) for name, match in places.items() if match)
    left = [name for _, name in problems if f"hand_to_{name}" not in results]
    if left and ("until every problem" in prompt or len(left) == len(problems)):
        return f"hand_to_{left[0]}", {"problem": asked}
    return " ".join(said) or "We are open from 9 to 17 o'clock, Monday to Friday."


def billing(prompt, asked, results, said):
    number = re.search(r"\b7\d{3}\b", asked).group()
    if "get_invoice" not in results:
        return "get_invoice", {"invoice": number}
    invoice = results["get_invoice"]
    if invoice.status == "error":
        return f"I cannot find invoice {number}; no refund was made."
    amount = json.loads(invoice.content)["amount"]
    if not re.search(r"(?i)refund|charged", asked):
        return f"Invoice {number} amounts to {amount:.2f} EUR."
    refund = {"invoice": number, "amount": amount}
    if amount > 50 and "above 50 EUR" in prompt:
        if "request_approval" not in results:
            return "request_approval", refund
        if not json.loads(results["request_approval"].content)["approved"]:
            return f"A refund of {amount:.2f} EUR for invoice {number} was not approved, so no refund was made."
    if "issue_refund" not in results:
        return "issue_refund", refund
    return f"I have refunded {amount:.2f} EUR for invoice {number}."


def technical(prompt, asked, results, said):
    router = re.search(r"\bR-\d+\b", asked).group()
    if "run_diagnostics" not in results:
        return "run_diagnostics", {"router": router}
    if json.loads(results["run_diagnostics"].content)["state"] == "offline":
        return f"I have restarted router {router}." if "restart_router" in results else ("restart_router", {"router": router})
    if "open_ticket" not in results:
        return "open_ticket", {"router": router, "problem": "slow line"}
    return f"I have opened ticket {json.loads(results['open_ticket'].content)['ticket']} for router {router}."
