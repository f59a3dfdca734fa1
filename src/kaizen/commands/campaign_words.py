"""What the commands of a campaign share: how it is named, and what is found."""

from argparse import Namespace
from typing import NamedTuple

from kaizen.campaigns.campaign import Campaign, find_campaign
from kaizen.commands.table import Answer, Argument
from kaizen.foundation.errors import EXIT_HUMAN, RefusedError
from kaizen.lab.workspace import Workspace, find_workspace

OF_CAMPAIGN = Argument("--campaign", "C", "which campaign (the one that is open)", {"default": ""})
OF_SYSTEM = Argument("--system", "ID", "the open campaign of this system", {"default": ""})

INTEGRITY_REASONS = ("broken_chain", "contract_changed", "ledger_changed")


class Found(NamedTuple):
    """The workspace, and the campaign that was meant."""

    workspace: Workspace
    campaign: Campaign


def campaign_named(args: Namespace) -> Found:
    """The campaign that *args* name. Raises InputError (`no_campaign`) and UsageError."""
    workspace = find_workspace()
    return Found(workspace, find_campaign(workspace, args.system, args.campaign))


def integrity_answer(error: RefusedError) -> Answer:
    """That a person has to look, for the *error* of a record that was changed; any other is raised."""
    if error.reason not in INTEGRITY_REASONS:
        raise error
    data = {"action": "human", "command": [], "why": error.message, "should_continue": False, "stop": ["integrity"]}
    return Answer(EXIT_HUMAN, "integrity", f"the record cannot be trusted: {error.message}", [], data, error.hint)
