"""What the commands of a campaign share: how it is named, and what is found."""

from argparse import Namespace
from typing import NamedTuple

from kaizen.campaigns.campaign import Campaign, find_campaign
from kaizen.commands.table import Argument
from kaizen.lab.workspace import Workspace, find_workspace

OF_CAMPAIGN = Argument("--campaign", "C", "which campaign (the one that is open)", {"default": ""})
OF_SYSTEM = Argument("--system", "ID", "the open campaign of this system", {"default": ""})


class Found(NamedTuple):
    """The workspace, and the campaign that was meant."""

    workspace: Workspace
    campaign: Campaign


def campaign_named(args: Namespace) -> Found:
    """The campaign that *args* name. Raises InputError (`no_campaign`) and UsageError."""
    workspace = find_workspace()
    return Found(workspace, find_campaign(workspace, args.system, args.campaign))
