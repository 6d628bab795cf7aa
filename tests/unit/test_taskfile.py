"""Task files: what is understood, and errors that name the key to mend."""

import itertools
from pathlib import Path

import pytest

from outpace.domains.recipe import recipe
from outpace.errors import TaskError
from outpace.task.candidate import Candidate, fixed_text, forbidden_change, in_order, reference
from outpace.task.file import load_task, make_task

GOOD = 'name = "a"\neditable = ["a.c"]\n[entry]\nkind = "c"\nfunction = "int f(int x)"\n'
FILES = {"a.c": b"int f(int x) { return x; }\n", "judge.py": b"def make_input(rng):\n    return {'x': 1}\n"}


def task(toml: str, **files: bytes):  # type: ignore[no-untyped-def]
    return make_task(Path("folder"), {"task.toml": toml.encode(), **FILES, **files})


def test_a_short_task_file_gets_sensible_defaults() -> None:
    made = task(GOOD)
    assert (made.build.compiler, made.build.flags, made.build.sources) == ("cc", ("-O2",), ("a.c",))
    assert made.limits.threads == 1 and made.timing.margin == 1.01


def test_agreement_is_told_in_words() -> None:
    assert task(GOOD).checking.agreement == ""
    assert task(GOOD + "[checking]\ntolerance = 1e-6\n").checking.agreement == "a relative 1e-06"
    both = task(GOOD + "[checking]\ntolerance = 1e-6\nfloor = 1e-9\n").checking
    assert both.agreement == "a relative 1e-06 plus an absolute 1e-09" and both.floor == 1e-9


def test_equal_content_has_an_equal_hash_wherever_it_lies() -> None:
    files = {"task.toml": GOOD.encode(), **FILES}
    assert make_task(Path("here"), files).hash == make_task(Path("there"), files).hash
    assert task(GOOD).hash != task(GOOD, extra=b"x").hash


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        (GOOD.replace('"a"', '"a b"'), "name 'a b'"),
        (GOOD.replace('["a.c"]', "[]"), "editable names no file"),
        (GOOD.replace('["a.c"]', '["b.c"]'), "'b.c' is not in the folder"),
        (GOOD.replace('"c"\n', '"rust"\n'), "rust"),
        (GOOD.replace("int f(int x)", "struct a f(void)"), "return type"),
        (GOOD.replace('"c"\n', '"c"\nalign = 24\n'), "align = 24 must be one of 1, 2, 4, 8, 16, 32, 64, or 0"),
        (GOOD + "[limits]\nsecond = 3\n", r"task.toml:7: \[limits\] second is no key; it may have seconds"),
        (GOOD + "[limits]\nthreads = 0\n", "threads = 0"),
        (GOOD + "[limits]\nprocesses = 4\n", "processes"),
        (GOOD + "[timing]\nmargin = 5.0\n", "margin"),
        (GOOD + "[checking]\ntolerance = -1.0\n", "tolerance"),
        (GOOD + "[checking]\ntolerance = 1.0\n", "tolerance = 1.0 must be from 0 to below 1"),
        (GOOD + "[checking]\nfloor = -1.0\n", "floor = -1.0"),
        (GOOD + "[checking]\nfloor = inf\n", "floor = inf"),
        (GOOD + "[entry]\n", "entry"),
        (GOOD + "colour = 3\n", "colour"),
        ("name = ", "Invalid value"),
        (
            'name = "a"\neditable = ["a.c"]\n[entry]\nkind = "python"\nmodule = "b.py"\nfunction = "f"\n',
            "module 'b.py'",
        ),
        ('name = "a"\neditable = ["a.c"]\n[entry]\nkind = "command"\n', "command is empty"),
    ],
)
def test_a_mistake_is_named(toml: str, words: str) -> None:
    with pytest.raises(TaskError, match="(?s)" + words.replace("(", r"\(")):
        task(toml)


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        (GOOD + '[limits]\n\nseconds = "5"\n', ":8: [limits] seconds must be a number, not text in quotes"),
        (GOOD + "[limits]\nthreads = 1.5\n", ":7: [limits] threads must be a whole number, not a number"),
        (GOOD + "[limits]\nthreads = 0\n", ":7: [limits] threads = 0 must be above 0"),
        (GOOD + '[build]\nflags = "-O2"\n', ":7: [build] flags must be a list in square brackets, not text in quotes"),
        (
            GOOD + '[build]\nflag_choices = ["-O2", "-O3"]\n',
            ":7: [build] flag_choices holds a wrong element: each must be a list in square brackets",
        ),
        (GOOD.replace('"a"', "5"), ":1: name must be text in quotes, not a whole number"),
        (GOOD.replace('["a.c"]', '"a.c"'), ":2: editable must be a list in square brackets, not text in quotes"),
        (GOOD.replace("[entry]", "[[entry]]"), ":3: [entry] must be a table, not a list in square brackets"),
        (GOOD.replace('"c"', '"rust"'), ":4: [entry] kind = 'rust' must be one of c, python, command"),
        (GOOD.replace('kind = "c"\n', ""), ":3: [entry] kind is missing"),
        (GOOD.replace('name = "a"\n', ""), ": name is missing"),
        (GOOD + "[limit]\n", ":6: 'limit' is neither a key nor a section of a task.toml"),
        (GOOD.replace("int x", "foo x"), ":5: [entry] function = 'int f(foo x)': the type of 'foo x' is not among"),
        (GOOD.replace("int x", "foo x").replace("[entry]\n", "[ entry ]\n"), ":5: [entry] function = "),
    ],
)
def test_a_value_of_a_wrong_type_is_told_with_its_line_and_section(toml: str, words: str) -> None:
    with pytest.raises(TaskError) as told:
        task(toml)
    assert str(told.value).startswith(f"folder/task.toml{words}")


def test_a_folder_without_a_task_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="outpace init"):
        load_task(tmp_path)


def test_a_file_in_place_of_a_folder_says_what_makes_a_task_of_it(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int f(int x) { return x; }\n")
    with pytest.raises(TaskError, match="is a file, and a task is a folder: `outpace init"):
        load_task(tmp_path / "a.c")


def test_a_region_that_never_ends_is_an_error() -> None:
    with pytest.raises(TaskError, match="needs an"):
        task(GOOD, **{"a.c": b"// outpace: begin\nint f(int x) { return x; }\n"})


def test_marks_of_alternatives_do_not_end_a_region() -> None:
    text = (
        "// outpace: begin\n// outpace: alternatives\nint a;\n// outpace: end alternatives\n// outpace: end\nint b;\n"
    )
    assert fixed_text(text) == ("// outpace: begin", "// outpace: end", "int b;")


def test_choices_of_flags_are_kept_to() -> None:
    made = task(GOOD + '[build]\nflags = ["-O2", "-g"]\nflag_choices = [["-O2", "-O3"], ["", "-march=native"]]\n')
    files = reference(made).files
    assert forbidden_change(made, Candidate(files, ("-g", "-O3", "-march=native"))) == ""
    half = {name: text + "\ud800" for name, text in files.items()}
    assert "half a letter" in forbidden_change(made, Candidate(half, ("-g", "-O3")))
    assert "must stay" in forbidden_change(made, Candidate(files, ("-O3",)))
    assert "leave it out" in forbidden_change(made, Candidate(files, ("-g", "-O3", "")))
    assert "exclude" in forbidden_change(made, Candidate(files, ("-g", "-O2", "-O3")))
    assert "not among" in forbidden_change(made, Candidate(files, ("-g", "-O2", "-fplugin=/tmp/x.so")))


def test_flags_have_one_order_so_that_it_cannot_be_chosen() -> None:
    made = task(GOOD + '[build]\nflags = ["-g", "-O2", "-I", "a", "-I", "b"]\n'
                'flag_choices = [["", "-ffast-math"], ["-O2", "-O3"], ["", "-fno-associative-math"]]\n')  # fmt: skip
    wanted = ("-g", "-O3", "-I", "a", "-I", "b", "-ffast-math", "-fno-associative-math")
    for flags in itertools.permutations(("-g", "-O3", "-ffast-math", "-fno-associative-math")):
        assert in_order(made, flags) == wanted
        commands = recipe(made, Candidate(reference(made).files, flags), "").commands
        assert all(" ".join(wanted) in " ".join(command) for command in commands) and commands
    assert in_order(made, made.build.flags) == made.build.flags
    # Whoever refuses them has to see them.
    assert in_order(made, ("-O3", "-O2", "-fplugin=x")) == (
        "-g", "-O3", "-O2", "-I", "a", "-I", "b", "-fplugin=x")  # fmt: skip


def test_files_that_are_not_editable_or_missing_are_refused() -> None:
    made = task(GOOD)
    assert "may not be edited" in forbidden_change(made, Candidate({"a.c": "", "judge.py": ""}, ("-O2",)))
    assert "missing" in forbidden_change(made, Candidate({}, ("-O2",)))


def test_the_hash_covers_every_byte_and_flag_and_nothing_else() -> None:
    files = {"a.c": "int a;\n", "b.c": "int b;\n"}
    one = Candidate(files, ("-O2", "-g"))
    assert Candidate(dict(reversed(files.items())), ("-O2", "-g")).hash == one.hash
    others = [
        Candidate(files, ("-g", "-O2")),
        Candidate(files, ("-O2 -g",)),
        Candidate(files, ("-O2",)),
        Candidate({**files, "a.c": "int a; \n"}, one.flags),
        Candidate({**files, "a.c": "int a;\r\n"}, one.flags),
        Candidate({**files, "a.c": "int a;"}, one.flags),
        Candidate({"a.c": "int b;\n", "b.c": "int a;\n"}, one.flags),
        Candidate({"a.c": "int a;\n", "c.c": "int b;\n"}, one.flags),
        Candidate({"a.c": "int a;\nint b;\n", "b.c": ""}, one.flags),
    ]
    assert len({one.hash, *(other.hash for other in others)}) == 1 + len(others)
