"""Answers: a policy's reply read into analysis, design and candidate, or the reason why it cannot be used."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath

from outpace import edits
from outpace.edits import EditError
from outpace.shown import shown
from outpace.task import Task
from outpace.task.candidate import Candidate, forbidden_change, in_order

MAX_FILE_BYTES = 1 << 20
MIN_ANALYSIS_CHARACTERS = 20
MIN_PARENT_CHARACTERS = 6
_MAX_REASON_CHARACTERS = 3000
_MAX_FLAGS_CHARACTERS = 4000

_ANALYSIS, _DESIGN, _CODE = "performance analysis", "algorithm design", "code implementation"
_NUMBER = re.compile(r"^\d{1,2}\s*[.):]?\s*")
_LABEL = re.compile(r"(?:#{1,6}\s*|[-*+]\s+)?[*_`]{0,3}(FILE|EDIT|FLAGS|PARENT)[*_]{0,3}\s*:(.*)", re.IGNORECASE)
_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})(.*)", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(\\|r|\n)")
# On a fence: the text spells a carriage return \r, a backslash \\, and a line without end by a last \.
_ESCAPED = "escaped"


@dataclass(frozen=True)
class Answer:
    """A reply that can be judged."""

    analysis: str
    design: str
    candidate: Candidate
    # What it started from.
    parent: Candidate


@dataclass(frozen=True)
class Unusable:
    """A reply that cannot be judged, and why; without an analysis it is worth asking once more."""

    reason: str
    analysis: str = ""
    design: str = ""
    missing_analysis: bool = False


@dataclass(frozen=True)
class _Fence:
    """A fenced block: the lines [first, last) of the reply, its fence rows among them."""

    first: int
    last: int
    info: str
    text: str
    closed: bool


@dataclass(frozen=True)
class _Block:
    kind: str
    path: str
    fences: tuple[_Fence, ...]


@dataclass(frozen=True)
class _Code:
    """What the code section holds, as written there."""

    blocks: tuple[_Block, ...]
    loose: tuple[_Fence, ...]
    flags: str | None
    parent: str | None


def parse(
    reply: str,
    task: Task,
    parents: Mapping[str, Candidate],
    default_parent: Candidate,
    *,
    require_analysis: bool = True,
) -> Answer | Unusable:
    """What a reply proposes; `parents` are the candidates it was shown, by hash. No text makes this raise."""
    # A lone surrogate is text that no file, archive or terminal takes; broken JSON escapes bring them.
    lines = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", reply).replace("\r\n", "\n").split("\n")
    fences = _fences(lines)
    sections = _sections(lines, fences)
    analysis, design = (_prose(lines, sections.get(title)) for title in (_ANALYSIS, _DESIGN))
    if require_analysis and len("".join(analysis.split())) < MIN_ANALYSIS_CHARACTERS:
        what = "is too short" if analysis else "is missing"
        reason = f"the section '## Performance Analysis' {what}: say first what makes the code slow, and why"
        return Unusable(reason, analysis, design, missing_analysis=True)
    try:
        if _CODE not in sections:
            raise EditError(_no_code_section(fences))
        code = _code(lines, fences, sections[_CODE])
        parent = _parent(code.parent, parents, default_parent)
        candidate = _candidate(code, task, parent)
    except EditError as error:
        return Unusable(_told(str(error)), analysis, design)
    if dict(candidate.files) == dict(parent.files) and candidate.flags == parent.flags:
        return Unusable("the answer changes nothing: its sources and flags are its parent's", analysis, design)
    if reason := forbidden_change(task, candidate):
        return Unusable(_told(reason), analysis, design)
    return Answer(analysis, design, candidate, parent)


def render(candidate: Candidate, parent: Candidate | None, analysis: str, design: str) -> str:
    """The reply that `parse` reads as this candidate: edits where there is a parent, else whole files.

    A line of the prose that would be read as a fence or as one of the three headings gets a backslash.
    """
    rows: list[str] = []
    if parent is not None:
        rows.append(f"PARENT: {parent.hash}\n")
    if parent is None or candidate.flags != parent.flags:
        rows.append(f"FLAGS: {shlex.join(candidate.flags)}".rstrip() + "\n")
    for name, text in candidate.files.items():
        before = parent.files.get(name) if parent is not None else None
        if text != before:
            rows.append(_written_file(name, text, before))
    return (
        f"## Performance Analysis\n\n{_guarded(analysis)}\n\n## Algorithm Design\n\n{_guarded(design)}\n\n"
        "## Code Implementation\n\n" + "\n".join(rows)
    )


def _fences(lines: Sequence[str]) -> list[_Fence]:
    fences: list[_Fence] = []
    at = 0
    while at < len(lines):
        opening = _opening(lines[at])
        if opening is None:
            at += 1
            continue
        indent, row, info = opening
        end = next((i for i in range(at + 1, len(lines)) if _closes(lines[i], row)), None)
        inside = lines[at + 1 : end]
        text = "".join(line[min(indent, len(line) - len(line.lstrip(" "))) :] + "\n" for line in inside)
        last = len(lines) if end is None else end + 1
        fences.append(_Fence(at, last, info, text, end is not None))
        at = last
    return fences


def _opening(line: str) -> tuple[int, str, str] | None:
    match = _FENCE.fullmatch(line)
    if match is None or (match[2][0] == "`" and "`" in match[3]):
        return None
    return len(match[1]), match[2], match[3].strip()


def _closes(line: str, row: str) -> bool:
    bare = line.strip(" \t")
    return len(bare) >= len(row) and bare == row[0] * len(bare) and not line.startswith(("    ", "\t"))


def _title(line: str) -> str | None:
    bare = line.strip()
    # Without a mark of a heading these words are prose. Stripped rather than matched by one pattern: with
    # marks optional on both sides of the number, that backtracks quadratically on a row of asterisks.
    if not bare or not (bare[0] in "#*_" or bare[0].isdigit()):
        return None
    words = _NUMBER.sub("", bare.strip("#*_: \t"), count=1) if len(bare) < 100 else ""
    title = " ".join(words.strip("*_ \t").lower().split())
    return title if title in (_ANALYSIS, _DESIGN, _CODE) else None


def _sections(lines: Sequence[str], fences: Sequence[_Fence]) -> dict[str, tuple[int, int]]:
    """The lines of each section; of two with one title the later, since a draft comes before the answer."""
    fenced = {at for fence in fences for at in range(fence.first, fence.last)}
    headings = [(at, title) for at, line in enumerate(lines) if at not in fenced and (title := _title(line))]
    ends = [*headings, (len(lines), "")]
    return {title: (at + 1, stop) for (at, title), (stop, _) in pairwise(ends)}


def _prose(lines: Sequence[str], section: tuple[int, int] | None) -> str:
    return "\n".join(lines[slice(*section)]).strip() if section else ""


def _no_code_section(fences: Sequence[_Fence]) -> str:
    if fences and not fences[-1].closed:
        return f"the code block that begins at line {fences[-1].first + 1} of the reply is never closed"
    return "the section '## Code Implementation' is missing; give files there after '### FILE: name'"


def _code(lines: Sequence[str], fences: Sequence[_Fence], section: tuple[int, int]) -> _Code:
    at_line = {fence.first: fence for fence in fences}
    # A block's fences are a list until the end: tuples grown one by one are quadratic in hostile replies.
    blocks: list[tuple[str, str, list[_Fence]]] = []
    loose: list[_Fence] = []
    values: dict[str, str] = {}
    at = section[0]
    while at < section[1]:
        if fence := at_line.get(at):
            at = fence.last
            if not blocks:
                loose.append(fence)
            elif not blocks[-1][2] or (blocks[-1][0] == "EDIT" and "SEARCH" in fence.text):
                blocks[-1][2].append(fence)
            continue
        if label := _label(lines[at]):
            if label[0] in ("FILE", "EDIT"):
                blocks.append((*label, []))
            else:
                values[label[0]] = label[1]
        at += 1
    named = tuple(_Block(kind, path, tuple(fences)) for kind, path, fences in blocks)
    return _Code(named, tuple(loose), values.get("FLAGS"), values.get("PARENT"))


def _label(line: str) -> tuple[str, str] | None:
    bare = line.strip()
    match = _LABEL.fullmatch(bare)
    # "Edit: I also ..." is prose; "### Edit: k.c" is not.
    if match is None or not (match[1].isupper() or bare.startswith(("#", "**"))):
        return None
    return match[1].upper(), match[2].strip(" \t*`")


def _parent(prefix: str | None, parents: Mapping[str, Candidate], default: Candidate) -> Candidate:
    if prefix is None:
        return default
    wanted = prefix.strip("<>\"'").lower()
    if len(wanted) < MIN_PARENT_CHARACTERS:
        raise EditError(f"PARENT '{wanted}' is too short; give {MIN_PARENT_CHARACTERS} characters of its hash")
    known = {default.hash: default, **parents}
    found = [key for key in known if key.startswith(wanted)]
    if len(found) != 1:
        names = ", ".join(key[:12] for key in known)
        what = f"names {len(found)} of" if found else "is not among"
        raise EditError(f"PARENT '{edits.quoted(wanted)}' {what} the candidates shown: {names}")
    return known[found[0]]


def _candidate(code: _Code, task: Task, parent: Candidate) -> Candidate:
    files = dict(parent.files)
    for (name, kind), fences in _by_file(code, task).items():
        before = parent.files.get(name, "")
        files[name] = _whole(name, fences, before) if kind == "FILE" else _edited(name, fences, before)
        size = len(files[name].encode())
        if size > MAX_FILE_BYTES:
            raise EditError(f"{name} has {size} bytes, more than the {MAX_FILE_BYTES} allowed; make it smaller")
    return Candidate(files, parent.flags if code.flags is None else in_order(task, _flags(code.flags)))


def _by_file(code: _Code, task: Task) -> dict[tuple[str, str], list[_Fence]]:
    blocks = code.blocks or _unnamed(code, task)
    given: dict[tuple[str, str], list[_Fence]] = {}
    for block in blocks:
        name = _name(block.path, task)
        if not block.fences:
            raise EditError(f"{block.kind}: {name} is not followed by a code block")
        if not block.fences[-1].closed:
            raise EditError(f"the code block of {name} is never closed; the reply seems to be cut off")
        given.setdefault((name, block.kind), []).extend(block.fences)
        if len({kind for named, kind in given if named == name}) > 1:
            raise EditError(f"{name} is given both whole and as edits; choose one")
    return given


def _unnamed(code: _Code, task: Task) -> tuple[_Block, ...]:
    if len(code.loose) == 1 and len(task.editable) == 1:
        # No source begins with this row: the EDIT line was forgotten.
        kind = "EDIT" if code.loose[0].text.lstrip().startswith("<<<<<<< SEARCH") else "FILE"
        return (_Block(kind, task.editable[0], code.loose),)
    if code.loose:
        raise EditError(
            f"the code section has {len(code.loose)} code blocks but no line '### FILE: name' or "
            f"'### EDIT: name' before them; editable are {', '.join(task.editable)}"
        )
    if code.flags is None:
        raise EditError("the code section has no code block; give files after '### FILE: name'")
    return ()


def _name(path: str, task: Task) -> str:
    bare = path.strip("\"'").removesuffix(":")
    pure = PurePosixPath(bare)
    if not bare:
        raise EditError(f"a file is given without its name; editable are {', '.join(task.editable)}")
    if pure.is_absolute() or ".." in pure.parts:
        raise EditError(f"the path '{edits.quoted(bare)}' leaves the task's folder; name files from there")
    editable = {PurePosixPath(name).as_posix(): name for name in task.editable}
    if pure.as_posix() not in editable:
        raise EditError(f"{edits.quoted(bare)} may not be edited; editable are {', '.join(task.editable)}")
    return editable[pure.as_posix()]


def _whole(name: str, fences: Sequence[_Fence], before: str) -> str:
    texts = {_unescaped(f.text) if _ESCAPED in f.info.split() else _kept(f.text, before) for f in fences}
    if len(texts) > 1:
        raise EditError(f"{name} is given {len(fences)} times with different texts; give it once")
    return texts.pop()


def _edited(name: str, fences: Sequence[_Fence], before: str) -> str:
    try:
        found = [edit for fence in fences for edit in edits.read(fence.text)]
        if not found:
            raise EditError("the code block after EDIT holds no '<<<<<<< SEARCH' row; for a whole file write FILE")
        return edits.apply(before, found)
    except EditError as error:
        raise EditError(f"{name}: {error}") from None


def _flags(text: str) -> tuple[str, ...]:
    if len(text) > _MAX_FLAGS_CHARACTERS:
        raise EditError(f"FLAGS has {len(text)} characters, more than the {_MAX_FLAGS_CHARACTERS} allowed")
    try:
        return tuple(flag for flag in shlex.split(text) if flag)
    except ValueError as error:
        raise EditError(f"FLAGS '{edits.quoted(text)}' cannot be split: {error}") from None


def _kept(text: str, before: str) -> str:
    """A plain fence cannot tell CRLF or a missing last newline; text that differs so alone is unchanged."""
    return before if text == _plain(before) else text


def _plain(text: str) -> str:
    unix = text.replace("\r\n", "\n")
    return unix if unix.endswith("\n") or not unix else unix + "\n"


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: {"\\": "\\", "r": "\r", "\n": ""}[match[1]], text)


def _written_file(name: str, text: str, before: str | None) -> str:
    if before is not None and (found := edits.between(before, text)):
        body = edits.write(found)
        if "\r\n" not in body:
            return f"### EDIT: {name}\n{_fenced('', body)}"
    suffix = PurePosixPath(name).suffix[1:]
    language = suffix if suffix.isalnum() else "text"
    if text == _plain(text) and (before is None or text != _plain(before)):
        return f"### FILE: {name}\n{_fenced(language, text)}"
    escaped = text.replace("\\", "\\\\").replace("\r", "\\r") + ("" if text.endswith("\n") or not text else "\\\n")
    return f"### FILE: {name}\n{_fenced(f'{language} {_ESCAPED}', escaped)}"


def _fenced(info: str, text: str) -> str:
    row = "`" * (max([2, *map(len, re.findall("`+", text))]) + 1)
    return f"{row}{info}\n{text}{row}\n"


def _guarded(prose: str) -> str:
    lines = prose.replace("\r\n", "\n").split("\n")
    return "\n".join("\\" + line.lstrip() if _title(line) or _opening(line) else line for line in lines)


def _told(reason: str) -> str:
    clean = shown(reason).replace("\t", " ")
    return clean if len(clean) <= _MAX_REASON_CHARACTERS else clean[:_MAX_REASON_CHARACTERS] + "..."
