"""Arrays: from whatever holds numbers to the rows the native half reads, with errors that say what is wrong."""

import operator
from typing import Any, cast

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[Any]
Ids = npt.NDArray[np.int64]

NO_ANSWER = -1  # the id in places of a result that hold none
KINDS = (np.dtype(np.float32), np.dtype(np.float16), np.dtype(np.int8), np.dtype(np.uint8))


def rows(vectors: object, what: str) -> Rows:
    """One row or a table of rows, contiguous, in one of the four kinds the index stores."""
    array = as_numpy(vectors, what)
    if array.dtype not in KINDS:
        if array.dtype.kind not in "fiub":
            raise TypeError(
                f"{what} are {array.dtype}; float32, float16, int8 or uint8 are stored, and other numbers converted"
            )
        with np.errstate(over="ignore"):  # what becomes infinite is reported with its place
            array = array.astype(np.float32)
    if array.ndim not in (1, 2):
        raise ValueError(f"{what} have {array.ndim} dimensions; give one row or a table of rows")
    if array.shape[-1] == 0:
        raise ValueError(f"{what} have no coordinates")
    return np.ascontiguousarray(array)


def copied_bytes(array: Rows) -> int:
    """What `rows` takes to make contiguous rows of a kind that is stored; nothing where they are."""
    if array.dtype not in KINDS:
        return 4 * array.size
    return 0 if array.flags.c_contiguous else array.nbytes


def whole_number(value: object, name: str, least: int, most: int) -> int:
    """An argument as a whole number within bounds."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name}={value!r} is no whole number") from None
    if not least <= number <= most:
        raise ValueError(f"{name}={number} is {'below' if number < least else 'above'} {max(least, min(number, most))}")
    return number


def table(vectors: object, what: str) -> Rows:
    """A table of rows, also where one row was given."""
    array = rows(vectors, what)
    return array[None, :] if array.ndim == 1 else array


def identifiers(ids: object, count: int, what: str) -> Ids:
    """One 64-bit id per vector."""
    array = within_64_bits(as_numpy(ids, what), what)
    if array.ndim != 1 or len(array) != count:
        raise ValueError(f"{what} have the shape {array.shape}; one id for each of {count} vectors is needed")
    if (array == NO_ANSWER).any():
        raise ValueError(
            f"{what} hold {NO_ANSWER}, which stands for no answer in results: leave such places of a result out, and "
            "give vectors other ids"
        )
    return array


def within_64_bits(array: Rows, what: str) -> Ids:
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{what} are {array.dtype}; whole numbers are needed")
    if (
        array.dtype.kind == "u"
        and array.dtype.itemsize == 8
        and array.size
        and int(array.max()) > np.iinfo(np.int64).max
    ):
        raise ValueError(f"{what} go up to {int(array.max())}; ids fit in signed 64 bits")
    return np.ascontiguousarray(array, dtype=np.int64)


def as_numpy(values: object, what: str) -> Rows:
    """NumPy's view of an array, a torch tensor, an Arrow array, a list: no copy where none is needed."""
    if isinstance(values, np.ndarray):
        return stacked(values)
    if hasattr(values, "__array__") or hasattr(values, "__array_interface__"):
        try:
            return stacked(np.asarray(values))
        except (TypeError, RuntimeError) as error:
            raise TypeError(f"{what} cannot be read as an array ({error})") from error
    if hasattr(values, "__dlpack__"):
        try:
            return cast(Rows, np.from_dlpack(values))
        except (BufferError, RuntimeError) as error:
            raise TypeError(f"{what} cannot be read as an array on the CPU ({error}); move them there first") from error
    ragged = f"{what} cannot be read as a table of numbers: rows of different lengths, or not numbers"
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise TypeError(ragged) from error
    if array.dtype == object:
        raise TypeError(ragged)
    if array.dtype.kind in "fi" and array.dtype.itemsize == 8 and not array.size:
        array = array.astype(np.float32)
    return array


def stacked(array: Rows) -> Rows:
    """A column of equally long arrays, as Arrow's lists and data frames give them, as one table."""
    if array.dtype != object or array.ndim != 1 or not len(array):
        return array
    if not all(isinstance(row, np.ndarray) and row.shape == array[0].shape for row in array):
        return array
    return np.stack(list(array))
