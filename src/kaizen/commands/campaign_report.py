"""`kaizen campaign report`: the story of a campaign, as a page and as Markdown."""

import os
from argparse import Namespace

from kaizen.campaigns.campaign import find_campaign
from kaizen.campaigns.state import campaign_state
from kaizen.campaigns.story import campaign_story
from kaizen.commands.table import Answer, Argument, command
from kaizen.foundation.errors import EXIT_HUMAN, UsageError
from kaizen.foundation.files import make_folder, shown_path, write_file
from kaizen.foundation.text import visible
from kaizen.lab.workspace import find_workspace
from kaizen.web.campaign_markdown import campaign_markdown
from kaizen.web.campaign_report import campaign_page
from kaizen.web.campaign_words import story_headline

REPORT_HTML, REPORT_MARKDOWN = "report.html", "report.md"


@command(
    "campaign report",
    "Writes report.html and report.md: what is claimed, what is only a bet, every variant, the luck line, what is not known.",
    [
        Argument("--campaign", "C", "which campaign (the open one, else the last)", {"default": ""}),
        Argument("--system", "ID", "the open campaign of this system", {"default": ""}),
        Argument("--output", "FOLDER", "where to write (the campaign's folder in the store)", {"default": ""}),
    ],
    "kaizen campaign report\nkaizen campaign report --campaign c1 --output reports",
    group="campaigns",
)
def command_campaign_report(args: Namespace) -> Answer:
    """Writes both files. Exit 3 when the record was broken: a person has to look."""
    workspace = find_workspace()
    campaign = find_campaign(workspace, args.system, args.campaign, or_last=True)
    story = campaign_story(campaign, campaign_state(campaign))
    folder = args.output or campaign.folder
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise UsageError(f"--output {shown_path(folder)}: is no folder")
    make_folder(folder)
    html, markdown = os.path.join(folder, REPORT_HTML), os.path.join(folder, REPORT_MARKDOWN)
    write_file(html, campaign_page(story))
    write_file(markdown, campaign_markdown(story))
    headline = story_headline(story)
    code, reason = (EXIT_HUMAN, "integrity") if story["unsettled"] else (0, "claimed" if story["claims"] else "nothing_claimed")
    lines = [visible(headline.sentence, 300), f"  {visible(headline.lead, 600)}", *[f"  {visible(each, 300)}" for each in story["unknown"]]]
    lines += [f"page: {shown_path(html)}", f"text: {shown_path(markdown)}"]
    data = {"files": {"html": shown_path(html), "markdown": shown_path(markdown)}, "story": story}
    return Answer(code, reason, headline.sentence, lines, data, f"open {shown_path(html)}")
