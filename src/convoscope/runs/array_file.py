"""Arrays in a file without a name: what is wanted several times, and would fill the memory."""

from __future__ import annotations

from functools import cached_property
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple
from weakref import finalize

import numpy as np
from numpy.typing import NDArray


class StoredArray(NamedTuple):
    """Where an array is in the file."""

    start: int
    type: np.dtype[Any]
    length: int


class ArrayFile:
    """The file is made when it is first written to, and goes with this object, or with the process."""

    @cached_property
    def _file(self) -> IO[bytes]:
        file = TemporaryFile(buffering=0)  # noqa: SIM115 - it is open as long as this object lives
        finalize(self, file.close)
        return file

    def add(self, values: NDArray[Any]) -> StoredArray | NDArray[Any]:
        """Write an array. One that holds one value takes no room anyway, and stays as it is."""
        if not len(values) or values.strides == (0,):
            return values
        start = self._file.seek(0, 2)
        np.ascontiguousarray(values).tofile(self._file)
        return StoredArray(start, values.dtype, len(values))

    def get(self, stored: StoredArray | NDArray[Any]) -> NDArray[Any]:
        """Read it back."""
        if not isinstance(stored, StoredArray):
            return stored
        self._file.seek(stored.start)
        return np.fromfile(self._file, stored.type, stored.length)
