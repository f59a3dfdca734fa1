"""`kaizen status`: what is at work, what can be gone on with, what stands in the way."""

import os
from argparse import Namespace

from kaizen.campaigns.campaign import campaign_ids, load_campaign
from kaizen.commands.table import Answer, command
from kaizen.foundation.errors import EXIT_DONE, EXIT_HUMAN, EXIT_NO, KaizenError
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, listed, visible
from kaizen.lab.preflight import SIGNS, tree_document
from kaizen.lab.reading import UNREADABLE, live_runs, read_runs, resumable_runs
from kaizen.lab.runfolder import run_store
from kaizen.lab.runstore import DONE, RunStore
from kaizen.lab.system import load_system, system_ids
from kaizen.lab.workspace import Workspace, find_workspace

PATHS_SHOWN = 10
RESUMABLE_SHOWN = 5


@command(
    "status",
    "Says what is at work, what can be resumed and what stands in the way; exits 0 to go on, 1 to stop, 3 when a person is needed.",
    [],
    "kaizen status --json",
    group="lab",
)
def command_status(args: Namespace) -> Answer:
    """Reads only."""
    workspace = find_workspace()
    store = run_store(workspace)
    documents = read_runs(store)
    tree = tree_document(workspace)
    live = live_runs(store, documents)
    resumable = resumable_runs(documents, tree["head"])
    campaigns, broken = campaigns_at_hand(workspace)
    problems = broken + integrity_problems(store, documents, [each["id"] for each in resumable])
    problems += [each["problem"] for each in live if each["problem"]]
    signs = [name for name, *_ in SIGNS if os.path.lexists(os.path.join(workspace.store_folder, name))]
    code, reason, message, following = standing(workspace, signs, problems, live, resumable, tree)
    data: JsonObject = {
        "workspace": shown_path(workspace.path("kaizen")),
        "should_continue": code == EXIT_DONE,
        "tree": tree,
        "systems": [system_document(workspace, name, documents) for name in system_ids(workspace)],
        "campaigns": campaigns,
        "live": live,
        "resumable": resumable,
        "signs": signs,
        "problems": problems,
    }
    lines = [visible(line, None) for line in status_lines(message, data)]
    if campaigns and reason == "ready":
        following = "kaizen next --json" if len(campaigns) == 1 else f"kaizen next --campaign {campaigns[0]['id']}"
    return Answer(code, reason, message, lines, data, following)


def campaigns_at_hand(workspace: Workspace) -> tuple[list[JsonObject], list[str]]:
    """({id, system} of each open campaign, what is wrong with those that cannot be read)."""
    found, problems = [], []
    for name in campaign_ids(workspace):
        try:
            campaign = load_campaign(workspace, name)
        except KaizenError as error:
            problems.append(f"campaign {name}: {error.message}")
            continue
        found += [] if campaign.is_closed() else [{"id": campaign.id, "system": campaign.system}]
    return found, problems


def standing(
    workspace: Workspace, signs: list[str], problems: list[str], live: list[JsonObject], resumable: list[JsonObject], tree: JsonObject
) -> tuple[int, str, str, str]:
    """(exit code, reason code, sentence, next step): the first of these that holds decides."""
    here = [each for each in resumable if each["is_here"]]
    if problems:
        return EXIT_HUMAN, "integrity", f"the record cannot be trusted: {visible(problems[0])}", "a person looks at what happened to it"
    for name, reason, sentence, hint in SIGNS:
        if name in signs:
            path = shown_path(os.path.join(workspace.store_folder, name))
            return (EXIT_NO if name == "STOP" else EXIT_HUMAN), reason, sentence, hint.format(path)
    if live:
        return EXIT_DONE, "live_run", f"{listed([run_progress(each) for each in live])} at work", "wait until it has ended"
    if tree["obstacle"]:
        return EXIT_DONE, tree["obstacle"]["reason"], tree["obstacle"]["message"], tree["obstacle"]["hint"]
    if tree["dirty"]:
        paths = listed([visible(each["path"], 80) for each in tree["dirty"]], 3)
        return (
            EXIT_DONE,
            "dirty_tree",
            f"{counted(len(tree['dirty']), 'path')} not as committed: {paths}",
            "commit what belongs to the variant",
        )
    if here:
        state = here[0]["state"].replace("_", " ")
        return EXIT_DONE, "resumable", f"{here[0]['id']} is {state} and can be gone on with here", here[0]["command"]
    return EXIT_DONE, "ready", "nothing is at work, and the tree is a commit", ""


def run_progress(run: JsonObject) -> str:
    """'r0007 (37 of 100, pid 123)'."""
    process = f", pid {run['pid']['pid']}" if run["pid"] else ""
    answered = "?" if run["answered"] is None else f"{run['answered']:,}"
    return f"{run['id']} ({answered} of {run['planned']:,}{process})"


def integrity_problems(store: RunStore, documents: list[JsonObject], resumable: list[str]) -> list[str]:
    """What is wrong with the records: runs that cannot be read, broken chains of the newest run and of those that can be resumed."""
    found = [f"{each['id']}: {each['message']}" for each in documents if each["state"] == UNREADABLE]
    readable = [each["id"] for each in documents if each["state"] != UNREADABLE]
    for run in dict.fromkeys(readable[-1:] + resumable):
        try:
            store.events(run)
        except KaizenError as error:
            found.append(error.message)
    return found


def system_document(workspace: Workspace, name: str, documents: list[JsonObject]) -> JsonObject:
    """{id, best_run, runs, completed, last, problem} of a system."""
    own = [each for each in documents if each["system"] == name]
    best, problem = None, None
    try:
        best = load_system(workspace, name).best_run or None
    except KaizenError as error:
        problem = error.message
    last = own[-1]["id"] if own else None
    return {
        "id": name,
        "best_run": best,
        "runs": len(own),
        "completed": sum(each["state"] == DONE for each in own),
        "last": last,
        "problem": problem,
    }


def status_lines(message: str, data: JsonObject) -> list[str]:
    """The same for people."""
    tree = data["tree"]
    lines = [message]
    if tree["head"]:
        lines.append(f"  commit {tree['head'][:12]}" + (f" on {visible(tree['branch'], 60)}" if tree["branch"] else ", HEAD detached"))
    lines += [f"  not as committed: {each['path']} ({each['kind']})" for each in tree["dirty"][:PATHS_SHOWN]]
    lines += [f"  and {len(tree['dirty']) - PATHS_SHOWN} more paths"] if len(tree["dirty"]) > PATHS_SHOWN else []
    for each in data["systems"]:
        best = f", best run {visible(each['best_run'], 20)}" if each["best_run"] else ""
        what = f"; {visible(each['problem'])}" if each["problem"] else ""
        lines.append(f"  system {each['id']}: {counted(each['runs'], 'run')}, {each['completed']} completed{best}{what}")
    lines += [f"  campaign {each['id']} of {each['system']} is open: kaizen next" for each in data["campaigns"]]
    lines += [f"  at work: {run_progress(each)}, variant {visible(each['variant'], 60)}" for each in data["live"]]
    for each in data["resumable"][:RESUMABLE_SHOWN]:
        where = "" if each["is_here"] else f", at commit {str(each['commit'])[:12]}"
        lines.append(f"  {each['id']} is {each['state'].replace('_', ' ')}{where}: {each['command']}")
    more = len(data["resumable"]) - RESUMABLE_SHOWN
    lines += [f"  and {more} more that can be resumed"] if more > 0 else []
    return lines + [f"  cannot be trusted: {visible(each, 300)}" for each in data["problems"]]
