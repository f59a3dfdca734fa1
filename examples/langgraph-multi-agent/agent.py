"""A help desk in LangGraph, a supervisor with a billing and a technical specialist, behind the runner protocol.

    python agent.py --prompts prompts/baseline                              a script in the model's place
    python agent.py --prompts prompts/baseline --mode openai --model MODEL  package langchain-openai, key in OPENAI_API_KEY

The graph, its tools and the hand-overs are LangGraph's in both modes. `steps_of` is the adapter: it
turns the messages of a run into the steps of an answer; docs/adapters.md says how it is done for any framework.
"""

import argparse
import contextlib
import json
import os
import sys

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

SPECIALISTS = ("billing", "technical")
HAND_TO = "hand_to_"
MOST_STEPS = 40  # of the graph


# --- The desk: its tools work on the case's context and nothing else -----------------------------------------------


def tools_for(desk):
    """{specialist: its tools}, which look up and change *desk*, a copy of the case's context."""

    def get_invoice(invoice: str) -> dict:
        """Looks an invoice up."""
        if invoice not in desk["invoices"]:
            raise ValueError(f"there is no invoice {invoice}")
        return {"invoice": invoice, "amount": desk["invoices"][invoice]}

    def request_approval(invoice: str, amount: float) -> dict:
        """Asks the manager to approve a refund."""
        return {"approved": amount <= desk["manager_approves_up_to"]}

    def issue_refund(invoice: str, amount: float) -> dict:
        """Refunds an invoice."""
        desk["refunds"][invoice] = amount
        return {"refunded": amount}

    def run_diagnostics(router: str) -> dict:
        """Says how a router is doing."""
        return {"router": router, "state": desk["routers"][router]}

    def restart_router(router: str) -> dict:
        """Restarts a router."""
        desk["routers"][router] = "online"
        return {"restarted": router}

    def open_ticket(router: str, problem: str) -> dict:
        """Opens a ticket for a technician."""
        desk["tickets"].append(router)
        return {"ticket": f"T-{len(desk['tickets'])}"}

    functions = {"billing": (get_invoice, request_approval, issue_refund), "technical": (run_diagnostics, restart_router, open_ticket)}
    return {name: [StructuredTool.from_function(function) for function in group] for name, group in functions.items()}


# --- The graph ------------------------------------------------------------------------------------------------------


def hand_over_tool(name):
    def hand_over(problem: str) -> str:
        return f"{name} has it"

    return StructuredTool.from_function(hand_over, name=HAND_TO + name, description=f"Hands a problem to {name}.")


def desk_graph(model, prompts, tools):
    """The compiled graph: the supervisor hands over until it answers; specialists call tools until they report."""

    def agent_node(name, bound):
        def node(state):
            answer = bound.invoke([SystemMessage(prompts[name]), *state["messages"]])
            return {"messages": [answer.model_copy(update={"name": name})]}

        return node

    def after_supervisor(state):
        calls = state["messages"][-1].tool_calls
        return "handover" if calls else END

    def after_handover(state):
        call = next(message for message in reversed(state["messages"]) if isinstance(message, AIMessage)).tool_calls[0]
        return call["name"].removeprefix(HAND_TO)

    handovers = [hand_over_tool(name) for name in SPECIALISTS]
    graph = StateGraph(MessagesState)
    graph.add_node("supervisor", agent_node("supervisor", model.bind_tools(handovers, parallel_tool_calls=False)))
    graph.add_node("handover", ToolNode(handovers))
    graph.add_edge(START, "supervisor")
    graph.add_conditional_edges("supervisor", after_supervisor, ["handover", END])
    graph.add_conditional_edges("handover", after_handover, list(SPECIALISTS))
    for name in SPECIALISTS:
        graph.add_node(name, agent_node(name, model.bind_tools(tools[name])))
        graph.add_node(f"{name}_tools", ToolNode(tools[name], handle_tool_errors=True))

        def after(state, name=name):
            return f"{name}_tools" if state["messages"][-1].tool_calls else "supervisor"

        graph.add_conditional_edges(name, after, [f"{name}_tools", "supervisor"])
        graph.add_edge(f"{name}_tools", name)
    return graph.compile()


# --- The adapter ----------------------------------------------------------------------------------------------------


def read(text):
    """JSON where a tool's result is JSON, else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def call_step(agent, call, batch, result):
    """The step of one tool call: a hand-over, an approval (about the refund that it was asked for), or a tool."""
    step = {"kind": "tool", "name": call["name"], "args": call["args"], "agent": agent, "id": call["id"], "batch": batch}
    if result is not None:  # without one the graph ended before the tool did: its status is not known
        step["result"] = read(result.content)
        step["status"] = "error" if result.status == "error" else "ok"
    if call["name"].startswith(HAND_TO):
        step.update(kind="handoff", name=call["name"].removeprefix(HAND_TO))
    elif call["name"] == "request_approval":
        step.update(kind="approval", name="issue_refund")
        if result is not None and step["status"] == "ok" and not step["result"]["approved"]:
            step["status"] = "denied"
    return step


def steps_of(messages):
    """The steps of a run, in order: what the user and the agents said, hand-overs, approvals and tool calls with their results."""
    results = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    steps = []
    for number, message in enumerate(messages):
        if isinstance(message, HumanMessage):
            steps.append({"kind": "message", "role": "user", "text": message.text})
        elif isinstance(message, AIMessage):
            if message.text:
                steps.append({"kind": "message", "role": "assistant", "text": message.text, "agent": message.name})
            batch = f"message-{number}"
            steps += [call_step(message.name, call, batch, results.get(call["id"])) for call in message.tool_calls]
    return steps


def usage_of(messages):
    """Tokens summed up; {} when a message has none, since a part is not the sum."""
    counts = [message.usage_metadata for message in messages if isinstance(message, AIMessage)]
    if not all(counts):
        return {}
    return {"usage": {key: sum(count[key] for count in counts) for key in ("input_tokens", "output_tokens", "total_tokens")}}


def answer_to(request, model, prompts):
    """The answer of the runner protocol."""
    case = request["case"]
    desk = {**json.loads(json.dumps(case["context"])), "refunds": {}, "tickets": []}
    before = json.loads(json.dumps(desk))
    tools = tools_for(desk)
    messages, finish_reason = [], "stop"
    start = {"messages": [HumanMessage(case["input"]["message"])]}
    try:
        for state in desk_graph(model, prompts, tools).stream(start, {"recursion_limit": MOST_STEPS}, stream_mode="values"):
            messages = state["messages"]
    except GraphRecursionError:
        finish_reason = "max_steps"
    agents = list(dict.fromkeys(message.name for message in messages if isinstance(message, AIMessage)))
    offered = [convert_to_openai_tool(tool) for group in tools.values() for tool in group]
    return {
        "output": messages[-1].text if finish_reason == "stop" else "",
        "steps": steps_of(messages),
        "agents": agents,
        "state": {"before": before, "after": desk},
        "evidence": {"tools": offered},
        "finish_reason": finish_reason,
        **usage_of(messages),
    }


def error_of(error):
    """What went wrong: a service that does not answer is not the agent's doing."""
    outside = any(kind.__module__.split(".")[0] in ("openai", "httpx") for kind in type(error).__mro__)
    return {"error": {"type": type(error).__name__, "message": str(error), "class": "environment" if outside else "agent"}}


def main():
    parser = argparse.ArgumentParser(description="A LangGraph help desk that speaks the runner protocol.")
    parser.add_argument("--prompts", required=True, help="folder with supervisor.txt, billing.txt and technical.txt")
    parser.add_argument("--mode", choices=("mock", "openai"), default="mock")
    parser.add_argument("--model", default="gpt-4.1-mini", help="with --mode openai")
    options = parser.parse_args()
    prompts = {}
    for name in ("supervisor", *SPECIALISTS):
        with open(os.path.join(options.prompts, f"{name}.txt"), encoding="utf-8") as file:
            prompts[name] = file.read()
    if options.mode == "openai":
        from langchain_openai import ChatOpenAI

        model = ChatOpenAI(model=options.model, temperature=0)
    else:
        from scripted_model import ScriptedModel

        model = ScriptedModel()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        try:
            with contextlib.redirect_stdout(sys.stderr):
                found = answer_to(request, model, prompts)
        except Exception as error:
            found = error_of(error)
        print(json.dumps({"request": request.get("request"), **found}), flush=True)


if __name__ == "__main__":
    main()
