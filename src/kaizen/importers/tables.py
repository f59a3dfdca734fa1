"""Tables of cases: CSV and JSON Lines, with a map from columns to the fields of a case."""

from collections.abc import Iterable, Iterator
from typing import Any

from kaizen.cases.case import CASE_FIELDS
from kaizen.foundation.errors import InputError, UsageError
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import JsonError, JsonObject, json_equal, parse_json, pointer_tokens, read_json_lines
from kaizen.foundation.text import did_you_mean, listed, quoted
from kaizen.importers.gathered import APPROXIMATED, DROPPED, MAPPED, Gathered, import_text, named_entries

MAPPED_FIELDS = tuple(name for name in CASE_FIELDS if name not in ("evaluators", "source"))
NESTED_FIELDS = ("input", "context", "expected", "metadata")


def table_rows(text: str, shown: str) -> Iterator[tuple[int, dict[str, str]]]:
    """(line from 1, cells by column) of each row of the CSV *text*. Raises InputError with the line."""
    import csv
    import io

    if "\0" in text:
        raise InputError(f"{shown}:{text.count(chr(10), 0, text.index(chr(0))) + 1}: holds a NUL character", "save the file as UTF-8 text")
    csv.field_size_limit(len(text) + 1)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] = []
    line = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                if not header:
                    header = checked_header(cells, shown, line)
                elif len(cells) != len(header):
                    raise InputError(
                        f"{shown}:{line}: has {len(cells)} cells, where the header has {len(header)}",
                        "put a cell that holds a comma or a line end in double quotes",
                        "invalid_file",
                    )
                else:
                    yield line, dict(zip(header, cells, strict=True))
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{shown}:{line}: is no CSV: {error}", "a quote in a cell is written twice", "invalid_file") from None


def checked_header(cells: list[str], shown: str, line: int) -> list[str]:
    """The names of the columns. Raises InputError when one is empty or comes twice."""
    names = [cell.strip() for cell in cells]
    twice = next((name for index, name in enumerate(names) if not name or name in names[:index]), None)
    if twice is not None:
        what = f"column {quoted(twice, 40)} comes twice" if twice else "a column has no name"
        hint = "the columns are separated by commas" if any(";" in name or "\t" in name for name in names) else ""
        raise InputError(f"{shown}:{line}: {what}", hint, "invalid_file")
    return names


def checked_mapping(pairs: Iterable[str]) -> dict[str, str]:
    """{'input.question': 'question', …} of texts like 'input.question=question'. Raises UsageError."""
    mapping: dict[str, str] = {}
    for pair in pairs:
        target, sign, column = pair.partition("=")
        field, _, inner = target.partition(".")
        if not sign or not target or not column:
            raise UsageError(f"--map {quoted(pair, 60)} is no FIELD=COLUMN", "for example: --map input=question expected=answer")
        if field not in MAPPED_FIELDS or (inner and field not in NESTED_FIELDS):
            raise UsageError(f"--map: a case has no field {quoted(target, 60)}", did_you_mean(field, MAPPED_FIELDS))
        if target in mapping or any(one.split(".")[0] == field and "." not in (one if inner else target) for one in mapping):
            raise UsageError(f"--map: {quoted(target, 60)} is given twice", "name parts of an object: input.question=… input.city=…")
        mapping[target] = column
    return mapping


def import_table(path: str, gathered: Gathered, pairs: Iterable[str], is_csv: bool) -> None:
    """The cases of a CSV file or of JSON Lines; columns that are called like a field need no map. Raises InputError, UsageError."""
    shown = shown_path(path)
    mapping = checked_mapping(pairs)
    rows: Iterator[tuple[int, JsonObject]]
    rows = table_rows(import_text(path), shown) if is_csv else ((line.number, line.value) for line in read_json_lines(path))
    used: set[str] = set()
    for line, row in rows:
        fields = {**{name: name for name in MAPPED_FIELDS if name in row and not is_mapped(name, mapping)}, **mapping}
        if not any(target.split(".")[0] == "input" for target in fields):
            hint = f"map it: --map input=COLUMN; columns: {listed(sorted(row), 20)}"
            raise UsageError(f"{shown}:{line}: no column is called 'input', and none is mapped to it", hint)
        case = mapped_case(row, fields, is_csv, f"{shown}:{line}")
        gathered.add({"id": gathered.name_for(text_within(case["input"])), **case}, line)
        used.update(fields.values())
        for column in row.keys() - fields.values() if not any(column.startswith("/") for column in fields.values()) else ():
            gathered.note(DROPPED, f"column {column}", f"line {line}", "is not mapped; --map metadata.NAME=COLUMN keeps it")
    for target, column in sorted(mapping.items()):
        gathered.note(MAPPED, f"column {column} -> {target}", "the map")
    compare_with_expected(gathered)


def is_mapped(field: str, mapping: dict[str, str]) -> bool:
    """True when *mapping* says where *field*, or a part of it, comes from."""
    return any(target.split(".")[0] == field for target in mapping)


def mapped_case(row: JsonObject, fields: dict[str, str], is_csv: bool, place: str) -> JsonObject:
    """The case that *fields* make of *row*; an empty cell of a CSV leaves a field out, but for the input. Raises InputError."""
    case: JsonObject = {}
    for target, column in fields.items():
        field, _, inner = target.partition(".")
        is_there, value = column_value(row, column)
        if not is_there:
            if field in ("input", "id") or is_csv:
                raise InputError(f"{place}: has no column {quoted(column, 60)}", did_you_mean(column, row), "invalid_file")
            continue
        if is_csv and value == "" and field != "input":
            continue
        value = cell_value(field, value) if is_csv else value
        if inner:
            case.setdefault(field, {})[inner] = value
        else:
            case[field] = value
    return case


def column_value(row: JsonObject, column: str) -> tuple[bool, Any]:
    """(whether it is there, the value) of a column, or of a JSON Pointer into a row."""
    if column in row or not column.startswith("/"):
        return column in row, row.get(column)
    value: Any = row
    for token in pointer_tokens(column):
        if isinstance(value, list) and token.isdigit() and int(token) < len(value):
            value = value[int(token)]
        elif isinstance(value, dict) and token in value:
            value = value[token]
        else:
            return False, None
    return True, value


def cell_value(field: str, cell: str) -> Any:
    """What a cell says in *field*: tags are split at commas, critical is true or false, all else is the text."""
    if field == "tags":
        return [tag.strip() for tag in cell.split(",") if tag.strip()]
    if field == "critical":
        return {"true": True, "false": False}.get(cell.strip().lower(), cell)
    if field == "metadata" and cell.startswith("{"):
        try:
            return parse_json(cell)
        except JsonError:
            return cell
    return cell.strip() if field in ("id", "split", "cluster", "serial_group") else cell


def text_within(value: Any) -> str:
    """The texts in *value*, one behind the other."""
    if isinstance(value, (dict, list)):
        return " ".join(filter(None, map(text_within, value.values() if isinstance(value, dict) else value)))
    return "" if value is None else str(value)


def compare_with_expected(gathered: Gathered) -> None:
    """Gives each case that has an expected value an entry that compares the whole output with it."""
    for case in gathered.cases:
        if "expected" in case:
            select = "output.text" if isinstance(case["expected"], str) else "output.json"
            add_entries(case, [("expected", {"type": "equals", "select": select, "value": {"$case": "/expected"}})])
            told = "the file does not say how answers are compared: the whole output is; change the entry where that is too strict"
            gathered.note(APPROXIMATED, "expected -> equals", "every case", told)


def add_entries(case: JsonObject, entries: Iterable[tuple[str, JsonObject]]) -> None:
    """Adds *entries*, each with a name, to the evaluators of *case*."""
    made = named_entries(entries, [entry["id"] for entry in case.get("evaluators", ())])
    if made:
        case["evaluators"] = [*case.get("evaluators", ()), *made]


def same_case(left: JsonObject, right: JsonObject) -> bool:
    """True when two cases say the same, their source, notes and owner aside."""
    return json_equal(*({key: value for key, value in case.items() if key not in ("source", "notes", "owner")} for case in (left, right)))
