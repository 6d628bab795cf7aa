"""Novelty: layout and comments make no new candidate, anything that could change the program does."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outpace.candidate import Candidate
from outpace.novelty import fingerprint, near_duplicate


def of(text: str, name: str = "kernel.cpp", flags: tuple[str, ...] = ()) -> Candidate:
    return Candidate({name: text}, flags)


def same(one: str, other: str, name: str) -> bool:
    return fingerprint(of(one, name)) == fingerprint(of(other, name))


C_SAME = {
    "line comment": ("int x; // why\nint y;", "int x;\nint y;"),
    "block comment": ("int/* a */x;", "int x;"),
    "comment over lines": ("int x; /* a\n b\n*/ int y;", "int x; int y;"),
    "layout": ("for(int i=0;i<n;++i){s+=a[i];}", "for (int i = 0; i < n; ++i)\n{\n\ts += a[i];\n}\n"),
    "line ends": ("int x;\r\n#define A 1\r\nint y;\r\n", "int x;\n#define A 1\nint y;"),
    "comment goes on after a backslash": ("int x; // a \\\nint y;\nint z;", "int x; int z;"),
    "comment goes on after a backslash and a space": ("int x; // a \\ \nint y;\nint z;", "int x; int z;"),
    "directive that goes on after a space": ("#define A 1 \\ \n + 2\nx", "#define A 1 + 2\nx"),
    "directive layout": ("#  define  F(x)  \\\n  ((x) + 1)\nint y;", "#define F(x) ((x)+1)\n\n\nint y;"),
    "comment in a directive": ("#define A /* one */ 1 // one\nint y;", "#define A 1\nint y;"),
    "comment before a directive": ("/* a\n*/ #define A 1\n", "#define A 1"),
    "directive on the last line": ("int y;\n#pragma once", "int y;\n#pragma once\n"),
    "digit separators": ("int x = 1'000; // it's\nint y;", "int x = 1'000;\nint y;"),
    "quotes in comments": ("int x; // \"\nint y; /* ' */", "int x; int y;"),
}
C_DIFFERENT = {
    "space in a string": ('f("a b");', 'f("a  b");'),
    "comment in a string": ('f("a // b");', 'f("a");'),
    "block comment in a string": ('f("/*", "*/");', "f();"),
    "escaped quote": (r'f("\" // x");', r'f("\" // y");'),
    "space in a character": ("c = ' ';", "c = '\t';"),
    "quote character": ("c = '\"'; // x\"", "c = '\"'; d = '\"';"),
    "raw string": ('f(R"(a // b)");', 'f(R"(a )");'),
    "raw string with a fence": ('f(R"x(a )" // b)x");', 'f(R"x(a )" // c)x");'),
    "spaces in a raw string": ('f(R"(a\n b)");', 'f(R"(a\n  b)");'),
    "prefix of a string": ('f(L "a");', 'f(L"a");'),
    "operators": ("x = a + +b;", "x = a++b;"),
    "minus": ("x = a - -b;", "x = a-- b;"),
    "arrow": ("x = a->b;", "x = a - >b;"),
    "division by a pointer": ("x = a / *b;", "x = a /*b;*/;"),
    "words": ("int x;", "intx;"),
    "numbers": ("x = 1 0;", "x = 10;"),
    "exponent": ("x = 0x1e+3;", "x = 0x1e +3;"),
    "macro with an argument": ("#define F(x) 1\n", "#define F (x) 1\n"),
    "end of a directive": ("#define A 1\nint x;", "#define A 1 int x;"),
    "start of a directive": ("int x;\n#define A\n", "int x; #define A\n"),
    "constant": ("x = 4;", "x = 8;"),
    "pragma": ("#pragma unroll\nf();", "f();"),
    "line joined with a space after the backslash": ("#define A 1 \\ \nint x;\n", "#define A 1 \\ int x;\n"),
    "string joined with a space after the backslash": ('f("a \\ \n // b");', 'f("a \\ \n // c");'),
    "directive after a joined line": ("x\n\\\n#define A\ny", "x\\\n#define A\ny"),
    "splice inside a token": ("x = a +\\\n+ b;", "x = a + + b;"),
    "unclosed comment": ("int x; /* a", "int x;"),
    "unclosed string": ('f("a  b', 'f("a b'),
}


@pytest.mark.parametrize("case", C_SAME)
def test_comments_and_white_space_make_no_new_c_candidate(case: str) -> None:
    assert same(*C_SAME[case], "a.cpp")


@pytest.mark.parametrize("case", C_DIFFERENT)
def test_what_could_change_a_c_program_makes_a_new_candidate(case: str) -> None:
    assert not same(*C_DIFFERENT[case], "a.cpp")


PYTHON_SAME = {
    "comment": ("x = 1  # one\n", "x = 1\n"),
    "blank lines": ("x = 1\n\n\n# two\ny = 2\n", "x = 1\ny = 2"),
    "indentation width": ("def f():\n    if x:\n        return 1\n", "def f():\n\tif x:\n\t\treturn 1\n"),
    "comment at another depth": ("def f():\n    a()\n# out\n    b()\n", "def f():\n    a()\n    b()\n"),
    "spaces": ("x=[1,2]\n", "x = [ 1, 2 ]\n"),
    "lines in brackets": ("f(\n    1,  # one\n    2)\n", "f(1, 2)\n"),
    "backslash": ("x = 1 + \\\n    2\n", "x = 1 + 2\n"),
    "line ends": ("x = 1\r\ny = 2\r\n", "x = 1\ny = 2\n"),
}
PYTHON_DIFFERENT = {
    "depth": ("if x:\n    a()\n    b()\n", "if x:\n    a()\nb()\n"),
    "statement split": ("a\nb\n", "a; b\n"),
    "string": ("x = 'a # b'\n", "x = 'a'\n"),
    "spaces in a string": ("x = 'a  b'\n", "x = 'a b'\n"),
    "lines in a string": ('x = """a\n  b"""\n', 'x = """a\nb"""\n'),
    "format string": ("x = f'{a}  {b}'\n", "x = f'{a} {b}'\n"),
    "format string that prints its source": ("x = f'{a=}'\n", "x = f'{a = }'\n"),
    "format string over lines": ("x = f'''{a}\n  {b}'''\n", "x = f'''{a}\n{b}'''\n"),
    "format string with doubled braces": ("x = f'{{a}}'\n", "x = f'{a}'\n"),
    "constant": ("x = 1\n", "x = 2\n"),
    "names": ("notx\n", "not x\n"),
    "does not tokenize": ("x = (1\n", "x = ( 1\n"),
    "bad indentation": ("if x:\n    a()\n  b()\n", "if x:\n    a()\n b()\n"),
    "unclosed quote": ("x = 'a  b\n", "x = 'a b\n"),
}


@pytest.mark.parametrize("case", PYTHON_SAME)
def test_comments_and_layout_make_no_new_python_candidate(case: str) -> None:
    one, other = PYTHON_SAME[case]
    assert same(one, other, "a.py")
    assert ast.dump(ast.parse(one)) == ast.dump(ast.parse(other))


@pytest.mark.parametrize("case", PYTHON_DIFFERENT)
def test_what_could_change_a_python_program_makes_a_new_candidate(case: str) -> None:
    assert not same(*PYTHON_DIFFERENT[case], "a.py")


PLAIN = ["int", "x", "u8", "R", "L", "0", "1.5e+3", "0x1p-2", "(", ")", "#", "."]
SIGNS = ["+", "++", "-", "->", "/", "*", "<", "<<=", "&&", "%", ":", "::"]
QUOTED = ['"a /* b"', r'"\""', "'//'", r"'\''", 'R"(// " )"', 'u8R"-(\n)")-"', "'\"'"]
C_TOKENS = st.lists(st.sampled_from([*PLAIN, *SIGNS, *QUOTED]), max_size=12)
GAPS = st.lists(st.sampled_from([" ", "\t", "\r\n", "/* ' */", '/*\n"*/', "// \"x' \n", "/**/", "//\\\n#\n"]))


@settings(deadline=None)
@given(C_TOKENS, C_TOKENS, st.data())
def test_c_tokens_are_told_apart_by_what_they_are_and_not_by_what_is_between(
    tokens: list[str], others: list[str], data: st.DataObject
) -> None:
    def spread(words: list[str]) -> str:
        # No gap starts a line before '#', which would make it a directive, and none joins a '/' before it.
        return "x " + "".join(f"{word} {'' if '#' in words else ''.join(data.draw(GAPS))}" for word in words)

    assert same(spread(tokens), spread(tokens), "a.cpp")
    assert same(spread(tokens), spread(others), "a.cpp") == (tokens == others)


SNIPPETS = st.sampled_from(
    [
        "x = 1",
        "x  =  1",
        "if x:",
        "else:",
        "y = 'a # b'",
        "y = 'a'",
        "# c",
        "",
        "pass",
        "return",
        "f(",
        ")",
        "z",
    ]
)
LINES = st.lists(st.tuples(st.sampled_from(["", "  ", "    ", "\t"]), SNIPPETS), max_size=6)
SOURCES = LINES.map(lambda lines: "".join(f"{indent}{line}\n" for indent, line in lines))


@settings(deadline=None)
@given(SOURCES, SOURCES)
def test_python_candidates_taken_for_one_have_one_syntax_tree(one: str, other: str) -> None:
    if one != other and same(one, other, "a.py"):
        assert tree(one) == tree(other)


def tree(source: str) -> str:
    try:
        return ast.dump(ast.parse(source))
    except SyntaxError:
        return "not Python"


HOSTILE = st.text(alphabet=st.sampled_from("\"'/*\\\n\r #()R{}fx0\t\0é\ud800"), max_size=60) | st.text()


@settings(deadline=None)
@given(HOSTILE, st.sampled_from(["a.c", "a.cu", "a.py", "Makefile"]))
def test_any_text_has_a_fingerprint(text: str, name: str) -> None:
    assert fingerprint(of(text, name)) == fingerprint(of(text, name))


@settings(deadline=None)
@given(HOSTILE)
def test_a_word_more_is_never_overlooked_in_front_of_any_text(text: str) -> None:
    for name in ("a.c", "a.py"):
        assert not same(text, f"extra_word\n{text}", name)


def test_a_file_of_unknown_kind_is_compared_as_it_stands() -> None:
    assert not same("all:\n\tcc a.c # x\n", "all:\n\tcc a.c\n", "Makefile")
    assert not same("a  b", "a b", "run.sh")


def test_flags_are_part_of_a_candidate_and_an_empty_one_is_none() -> None:
    assert fingerprint(of("x;", flags=("-O2",))) != fingerprint(of("x;", flags=("-O3",)))
    assert fingerprint(of("x;", flags=("-O2", ""))) == fingerprint(of("x;", flags=("-O2",)))
    assert fingerprint(of("x;", flags=("-a", "-b"))) != fingerprint(of("x;", flags=("-a -b",)))


def test_code_moved_to_another_file_is_another_candidate() -> None:
    one = Candidate({"a.c": "int x;", "b.c": "int y;"})
    other = Candidate({"a.c": "int x; int y;", "b.c": ""})
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) == fingerprint(Candidate({"b.c": "int  y;", "a.c": "int  x;"}))


def test_a_near_duplicate_is_named_by_the_first_hash_that_matches() -> None:
    known = [of("int y;"), of("int x; // first"), of("int x; // second")]
    others = {each.hash: each for each in known}
    assert near_duplicate(of("int x;"), others) == known[1].hash
    assert near_duplicate(known[2], others) == known[2].hash
    assert near_duplicate(of("int z;"), others) is None
    assert near_duplicate(of("int x;", flags=("-O3",)), others) is None
    assert near_duplicate(of("int x;"), {}) is None
