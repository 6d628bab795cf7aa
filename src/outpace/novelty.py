"""Novelty: near-duplicates noticed before judging is spent on them."""

from __future__ import annotations

import hashlib
import io
import re
import tokenize
from collections.abc import Mapping
from pathlib import PurePosixPath

from outpace.candidate import Candidate

C_FAMILY = frozenset({".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".inl", ".ipp", ".tpp", ".cu", ".cuh"})
PYTHON = frozenset({".py", ".pyi"})


def near_duplicate(candidate: Candidate, others: Mapping[str, Candidate]) -> str | None:
    """The hash of the first of the others that differs in comments and white space alone, if one does."""
    if candidate.hash in others:
        return candidate.hash
    mark = fingerprint(candidate)
    return next((name for name, other in others.items() if fingerprint(other) == mark), None)


def fingerprint(candidate: Candidate) -> str:
    """Equal for candidates with the same tokens in the same files and the same flags.

    When in doubt it tells candidates apart: a duplicate judged twice costs seconds, but a new idea taken for
    an old one is lost.
    """
    files = [(name, _tokens(name, text)) for name, text in sorted(candidate.files.items())]
    # An empty flag stands for "none of this group".
    flags = [flag for flag in candidate.flags if flag]
    # ascii() quotes every token, so that no two lists share a text, and also takes what UTF-8 cannot encode.
    return hashlib.sha256(ascii((files, flags)).encode()).hexdigest()


def _tokens(name: str, text: str) -> list[str]:
    suffix = PurePosixPath(name).suffix.lower()
    if suffix in C_FAMILY:
        return _c_tokens(text)
    if suffix in PYTHON:
        return _python_tokens(text)
    # White space may mean anything in a file of unknown kind.
    return [text]


# Every repeated part can match in one way only, and no part fails after a long match: candidates are hostile
# text, and a lexer that goes back would take hours over a megabyte of quotes. A backslash joins two lines
# also with white space after it, as gcc and clang have it.
_C_TOKEN = re.compile(
    r"""
      (?P<newline>      \n )
    | (?P<space>        [\ \t\r\f\v]+ )
    | (?P<splice>       \\[\ \t\r\f\v]*\n )
    | (?P<line_comment> // [^\n\\]* (?: \\(?:[\ \t\r\f\v]*\n)? [^\n\\]* )* )
    | (?P<comment>      /\* )
    | (?P<raw>          (?:u8|[LuU])? R" (?P<fence> [^()\\\s"]{0,16} ) \( )
    | (?P<quoted>       (?:u8|[LuU])?
                        (?: " [^"\\\n]* (?: \\(?:[\ \t\r\f\v]*\n|.) [^"\\\n]* )* "?
                          | ' [^'\\\n]* (?: \\(?:[\ \t\r\f\v]*\n|.) [^'\\\n]* )* '? )
                        \w* )
    | (?P<number>       \.?\d (?: [eEpP][+-] | '\w | [\w.] )* )
    | (?P<word>         [\w$]+ )
    | (?P<punctuation>  %:%: | \.\.\. | <=> | <<= | >>= | ->\* | -> | \+\+ | -- | << | >> | && | \|\| | ::
                        | [-+*/%&|^<>=!]= | \#\# | \.\* | <: | :> | <% | %> | %: | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_SPACES = frozenset({"space", "line_comment", "comment"})


def _c_tokens(text: str) -> list[str]:
    tokens: list[str] = []
    position, directive, line_start, spaced = 0, False, True, False
    while found := _C_TOKEN.match(text, position):
        kind, token, position = found.lastgroup, found.group(), found.end()
        if kind == "comment" or kind == "raw":
            closing = "*/" if kind == "comment" else f'){found["fence"]}"'
            end = text.find(closing, position)
            if end < 0:
                # It will not compile. To go on would search to the end again at each further opening.
                tokens.append(text[found.start() :])
                break
            position = end + len(closing)
            token = text[found.start() : position]
        if kind == "newline":
            if directive:
                tokens.append("\n")
            directive, line_start = False, True
        elif kind in _SPACES or (kind == "splice" and directive):
            spaced = True
            continue
        elif kind == "splice":
            # Rare in plain code, where it may even join two halves of a word: kept, to be on the safe side.
            tokens.append(token)
        elif line_start and token in ("#", "%:"):
            # Lines mean something to the preprocessor alone.
            tokens.append("\n#")
            directive, line_start = True, False
        else:
            # `#define F(x)` takes an argument and `#define F (x)` does not.
            tokens.append(" (" if directive and spaced and token == "(" else token)
            line_start = False
        spaced = False
    if directive:
        tokens.append("\n")
    return tokens


_LAYOUT = {tokenize.NEWLINE: "\n", tokenize.INDENT: "\n>", tokenize.DEDENT: "\n<"}
_NO_CODE = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER})
# From Python 3.12 on f-strings come in pieces that have lost their white space, which `f"{x = }"` prints.
_OPENINGS = frozenset({"FSTRING_START", "TSTRING_START"})
_CLOSINGS = frozenset({"FSTRING_END", "TSTRING_END"})


def _python_tokens(text: str) -> list[str]:
    tokens: list[str] = []
    depth, opening = 0, (1, 0)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            kind = tokenize.tok_name[token.type]
            if kind in _OPENINGS:
                opening = token.start if depth == 0 else opening
                depth += 1
            elif kind in _CLOSINGS:
                depth -= 1
                if depth == 0:
                    tokens.append(_between(text, opening, token.end))
            elif token.type == tokenize.ERRORTOKEN:
                return [text]
            elif depth == 0 and token.type not in _NO_CODE:
                tokens.append(_LAYOUT.get(token.type, token.string))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return [text]
    return tokens


def _between(text: str, start: tuple[int, int], end: tuple[int, int]) -> str:
    lines = text.split("\n")[start[0] - 1 : end[0]]
    lines[-1] = lines[-1][: end[1]]
    lines[0] = lines[0][start[1] :]
    return "\n".join(lines)
