"""A graph is kept where it pays and fits."""

from outpace.ann.engines import Point, gain_of_graph, keeps_graph


def point(engine: int, lower: float, price: float, selectivity: float = 1.0) -> Point:
    return Point(engine, 10, 20, 1.0, selectivity, lower + 0.005, lower, price, price)


def curve(engine: int, factor: float) -> list[Point]:
    return [point(engine, lower, factor / (1.001 - lower)) for lower in (0.7, 0.8, 0.9, 0.95, 0.99, 0.999)]


def test_a_graph_twice_as_cheap_pays_twofold() -> None:
    assert abs(gain_of_graph(curve(0, 2.0) + curve(1, 1.0)) - 2) < 1e-9


def test_a_slower_graph_gains_nothing_since_nobody_must_use_it() -> None:
    assert gain_of_graph(curve(0, 1.0) + curve(1, 3.0)) == 1


def test_levels_that_only_one_engine_reaches_are_left_out() -> None:
    lists = [each for each in curve(0, 1.0) if each.lower < 0.99]
    assert gain_of_graph(lists + curve(1, 1.0)) == 1


def test_settings_measured_under_filters_do_not_count() -> None:
    assert gain_of_graph([*curve(0, 2.0), *curve(1, 1.0), point(0, 1.0, 1e-9, selectivity=0.1)]) > 1.9


def test_without_any_measurement_there_is_no_gain() -> None:
    assert gain_of_graph([]) == 1


def test_a_graph_that_pays_is_dropped_where_it_does_not_fit() -> None:
    points = curve(0, 2.0) + curve(1, 1.0)
    assert keeps_graph(points, 900, 128)
    assert not keeps_graph(points, 1200, 128)
    assert keeps_graph(points, 1100, 32)  # small vectors: the cap would forbid every graph


def test_a_graph_that_does_not_pay_is_dropped() -> None:
    assert not keeps_graph(curve(0, 1.0) + curve(1, 1.0), 100, 128)
