"""The `optimization` block: the texts that an optimizer may propose anew.

    {"components": [{"name": "system_prompt", "file": "../../prompts/system.txt"}], "maximum_candidates": 3}
"""

import os
import re

from kaizen.cases.dataset import is_inside, repository_root
from kaizen.cases.improvement import Improvement
from kaizen.foundation.files import read_text
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.shapes import OBJECT, POSITIVE_COUNT, TEXT, Report, check_fields, check_no_others, list_of
from kaizen.foundation.text import quoted

COMPONENT_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
OPTIMIZATION_FIELDS = {"components": list_of(OBJECT, "objects"), "maximum_candidates": POSITIVE_COUNT}
COMPONENT_FIELDS = {"name": TEXT, "file": TEXT}
DEFAULT_CANDIDATES = 3


def check_optimization(improvement: Improvement, block: JsonObject, report: Report) -> None:
    """Reports what is wrong with the `optimization` *block* of evaluation.json, and files that cannot be components."""
    check_no_others(block, OPTIMIZATION_FIELDS, "/optimization", report)
    check_fields(block, OPTIMIZATION_FIELDS, "/optimization", report, ("components",))
    components, seen = block.get("components"), set()
    for index, component in enumerate(components if isinstance(components, list) else []):
        if not isinstance(component, dict):
            continue
        place = f"/optimization/components/{index}"
        check_no_others(component, COMPONENT_FIELDS, place, report)
        check_fields(component, COMPONENT_FIELDS, place, report, COMPONENT_FIELDS)
        name, file = component.get("name"), component.get("file")
        if isinstance(name, str) and not COMPONENT_NAME.match(name):
            report(f"{place}/name", f"component {quoted(name)} has other characters than letters, digits, '-', '_'", "")
        elif isinstance(name, str) and name in seen:
            report(f"{place}/name", f"component {quoted(name)} comes twice", "give each a name of its own")
        seen.add(name if isinstance(name, str) else "")
        if isinstance(file, str) and file:
            path = os.path.normpath(improvement.path(file))
            if os.path.isabs(file) or not is_inside(repository_root(improvement), path):
                report(f"{place}/file", f"file {quoted(file)} lies outside the repository", "write the path from the improvement's folder")
            elif not os.path.isfile(path):
                report(f"{place}/file", f"file {quoted(file)} does not exist", "")


def component_texts(improvement: Improvement, block: JsonObject) -> dict[str, str]:
    """{name: text} of the checked `optimization` *block*. Raises InputError for a file that cannot be read."""
    return {component["name"]: read_text(os.path.normpath(improvement.path(component["file"]))) for component in block["components"]}
