"""Nudged inputs differ by one rounding step in every floating number, and show which digits of an answer are noise."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace.judge.compare import difference, disagreement
from outpace.judge.nudge import NUDGES, coarsest, nudged, variants
from outpace.judge.spots import excused_by
from outpace.task import Output

FLOATS = ["f2", "f4", "f8"]
Array = npt.NDArray[Any]


def chance() -> np.random.Generator:
    return np.random.default_rng(1)


@pytest.mark.parametrize("kind", FLOATS)
def test_every_number_moves_by_one_step_both_ways(kind: str) -> None:
    values = np.linspace(0.1, 9, 500).astype(kind).reshape(5, 100)[:, ::2]
    moved = nudged(values, chance())
    up, down = np.nextafter(values, np.inf), np.nextafter(values, -np.inf)
    assert moved.dtype == values.dtype and moved.shape == values.shape
    assert ((moved == up) | (moved == down)).all()
    assert (moved == up).any() and (moved == down).any()


@pytest.mark.parametrize("kind", FLOATS)
def test_no_number_becomes_zero_subnormal_or_infinite_and_those_stay(kind: str) -> None:
    facts = np.finfo(kind)
    edges = np.array([facts.max, -facts.max, facts.smallest_normal, -facts.smallest_normal], kind)
    kept = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, facts.smallest_subnormal, facts.smallest_normal / 2], kind)
    for seed in range(8):
        moved = nudged(edges, np.random.default_rng(seed))
        assert np.isfinite(moved).all() and (np.abs(moved) >= facts.smallest_normal).all() and (moved != edges).all()
        assert nudged(kept, np.random.default_rng(seed)).tobytes() == kept.tobytes()


def test_what_is_in_order_stays_so_where_its_numbers_move_together() -> None:
    times = np.sort(np.random.default_rng(3).random(200).round(2))
    moved = [nudged({"times": times, "other": times}, np.random.default_rng(seed), "in order") for seed in range(8)]
    for each in moved:
        assert (each["times"] != times)[times > 0].all()
        assert ((np.diff(each["times"]) == 0) == (np.diff(times) == 0)).all() and (np.diff(each["times"]) >= 0).all()
    assert len({each["times"].tobytes() for each in moved}) == 2
    assert any(each["times"].tobytes() != each["other"].tobytes() for each in moved)
    # What is in no order moves as ever.
    values = np.random.default_rng(3).random(200)
    gone = nudged(values, chance(), "in order") > values
    assert gone.any() and not gone.all()


@given(st.floats())
def test_a_plain_number_moves_like_an_array_of_one(value: float) -> None:
    for seed in range(4):
        moved = nudged(value, np.random.default_rng(seed))
        assert type(moved) is float
        normal = math.isfinite(value) and abs(value) >= 2.0**-1022
        assert (moved != value) == (normal or math.isnan(value))
        if normal:
            assert moved in (math.nextafter(value, math.inf), math.nextafter(value, -math.inf))
            assert math.isfinite(moved) and abs(moved) >= 2.0**-1022


def test_only_floating_numbers_move_however_deep_they_lie() -> None:
    values = {
        "n": 3,
        "flag": True,
        "text": "1.5",
        "raw": b"1.5",
        "whole": np.arange(5),
        "out": Output(3, "float64"),
        "deep": [1, (2.5, {"x": np.ones(3, "f4")}), None],
        "single": np.float32(1.5),
        "none": np.zeros((0, 2)),
    }
    moved = nudged(values, chance())
    for name in ("n", "flag", "text", "raw", "out"):
        assert moved[name] is values[name]
    assert moved["whole"].tolist() == [0, 1, 2, 3, 4] and moved["none"].shape == (0, 2)
    assert moved["deep"][0] == 1 and moved["deep"][2] is None and type(moved["deep"][1]) is tuple
    assert 0 < abs(moved["deep"][1][0] - 2.5) < 1e-15
    assert (moved["deep"][1][1]["x"] != 1).all() and moved["deep"][1][1]["x"].dtype == np.float32
    assert type(moved["single"]) is np.float32 and moved["single"] != values["single"]
    assert values["deep"][1][1]["x"].tolist() == [1, 1, 1], "the input itself stays as it was"


def test_both_parts_of_a_complex_number_move() -> None:
    for value in (1.5 + 2.5j, np.complex64(1.5 + 2.5j), np.full(9, 1.5 + 2.5j), np.full((3, 4), 1.5 + 2.5j).T):
        moved = nudged(value, chance())
        assert type(moved) is type(value)
        assert np.all(np.real(moved) != 1.5) and np.all(np.imag(moved) != 2.5)
        assert np.abs(np.asarray(moved) - np.asarray(value)).max() < 1e-6


def test_variants_differ_from_each_other() -> None:
    made = variants({"x": np.ones(64), "n": 64}, chance())
    assert len({each["x"].tobytes() for each in made}) == len(made) == NUDGES


def test_the_coarsest_type_is_found() -> None:
    assert coarsest({"n": 3, "x": np.arange(4)}) == 0
    assert coarsest({"x": [1.0, (2, 3.0)]}) == np.finfo("f8").eps
    assert coarsest({"x": np.ones(2), "deep": [{"y": np.ones(2, "c8")}]}) == np.finfo("f4").eps


# The reference is a plain function here; the judge asks one in a worker the same way.


def check(reference: Callable[..., Any], got: Any, values: dict[str, Any], tolerance: float) -> str:
    chance = np.random.default_rng(7)
    return disagreement(
        reference(**values),
        got,
        tolerance,
        excuse=excused_by(lambda: [reference(**each) for each in variants(values, chance)]),
        step=coarsest(values),
    )


def product(a: Array, b: Array) -> Array:
    c = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for k in range(a.shape[1]):
        c += a[:, k : k + 1] * b[k]
    return c


def running_sum(x: Array) -> Array:
    return np.cumsum(x, dtype=x.dtype)


def running_sum_by_blocks(x: Array) -> Array:
    blocks = np.cumsum(x.reshape(-1, 50), axis=1, dtype=x.dtype)
    before = np.concatenate([[0], np.cumsum(blocks[:, -1], dtype=x.dtype)[:-1]]).astype(x.dtype)
    return np.asarray((blocks + before[:, None]).reshape(-1))


@pytest.mark.parametrize(("kind", "tolerance"), [("f4", 1e-4), ("f4", 1e-5), ("f8", 1e-12)])
def test_other_orders_of_summation_pass_though_elements_cancel(kind: str, tolerance: float) -> None:
    needed = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        a, b = rng.standard_normal((90, 200)).astype(kind), rng.standard_normal((200, 90)).astype(kind)
        halves = product(a[:, ::2], b[::2]) + product(a[:, 1::2], b[1::2])
        backwards = product(a[:, ::-1], b[::-1])
        for got in (halves, backwards):
            needed += bool(difference(product(a, b), got, tolerance))
            assert check(product, got, {"a": a, "b": b}, tolerance) == ""
        x = rng.standard_normal(20_000).astype(kind)
        needed += bool(difference(running_sum(x), running_sum_by_blocks(x), tolerance))
        assert check(running_sum, running_sum_by_blocks(x), {"x": x}, tolerance) == ""
        assert check(running_sum_by_blocks, running_sum(x), {"x": x}, tolerance) == ""
        assert (
            check(lambda x: {"return": float(running_sum(x)[-1])}, {"return": float(np.sum(x))}, {"x": x}, 1e-7) == ""
        )
    assert needed, "the plain comparison refuses some of them"


@pytest.mark.parametrize(("kind", "coarse"), [("f4", "f2"), ("f8", "f4")])
def test_the_next_coarser_type_does_not_pass(kind: str, coarse: str) -> None:
    tolerance = {"f4": 1e-6, "f8": 1e-9}[kind]
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((40, 100)).astype(kind), rng.standard_normal((100, 40)).astype(kind)
    rounded = product(a.astype(coarse).astype(kind), b.astype(coarse).astype(kind))
    assert check(product, rounded, {"a": a, "b": b}, tolerance)
    assert check(product, np.where(np.abs(rounded) < 1, 0, product(a, b)).astype(kind), {"a": a, "b": b}, tolerance)


def test_doubles_made_of_float32_inputs_must_be_doubles() -> None:
    x = np.random.default_rng(4).standard_normal(500).astype("f4")
    values = {"x": x}
    assert check(lambda x: np.exp(x.astype("f8")), np.exp(x).astype("f8"), values, 1e-9)
    assert check(lambda x: {"sum": float(x.astype("f8").sum())}, {"sum": float(x.sum())}, values, 1e-12)
