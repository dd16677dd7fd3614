"""Functions of C++ in kernels of Numba programs: `cuda.declare_device`, and the code that `link=` names.

    doubled = cuda.declare_device("doubled", "int32(int32)", link=cuda.CUSource(source))

By Numba's convention such a function gives its result by address, behind a status that is 0:
`extern "C" __device__ int doubled(int *result, int x)`. With abi="c" it is `int doubled(int x)`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import link
from ..errors import TileTypeError, TileUnsupportedFeatureError, TileValueError
from ..quiet import quiet
from . import types

if TYPE_CHECKING:
    from ..capture.frame import Frame


class LinkableCode:
    """Code to link with a kernel, from memory: `data` is a text, bytes or an open file."""

    suffix, default_name = "", "<unnamed>"

    def __init__(
        self, data: Any, name: str | None = None, setup_callback: Any = None, teardown_callback: Any = None
    ) -> None:
        if setup_callback is not None or teardown_callback is not None:
            raise TileUnsupportedFeatureError(
                f"{type(self).__name__}: modules are shared and unloaded late, so there are no callbacks for them; "
                "set a constant of C++ by a kernel, or pass it as an argument"
            )
        self._data, self._name = data, name

    @property
    def name(self) -> str:
        return self._name or self.default_name

    @property
    def data(self) -> Any:
        if hasattr(self._data, "read"):
            self._data = self._data.read()
        return self._data

    @staticmethod
    def from_path(path: Any) -> LinkableCode:
        """What a file has, which is told by its suffix."""
        found = _KINDS.get(Path(path).suffix.removeprefix("."))
        if found is None:
            raise TileValueError(f"link= names {path}; expected a file of one of {', '.join(f'.{k}' for k in _KINDS)}")
        return found(Path(path).read_bytes(), os.fspath(path))

    def file(self) -> str:
        code = self.data
        return link.stored(code.encode() if isinstance(code, str) else bytes(code), self.suffix)


def _kind(name: str, suffix: str) -> type[LinkableCode]:
    members = {"suffix": suffix, "default_name": f"<unnamed-{suffix[1:]}>", "kind": suffix[1:]}
    return type(name, (LinkableCode,), {**members, "__doc__": f"Code of a {suffix} file."})


PTXSource, CUSource = _kind("PTXSource", ".ptx"), _kind("CUSource", ".cu")
Fatbin, Cubin = _kind("Fatbin", ".fatbin"), _kind("Cubin", ".cubin")
Archive, Object, LTOIR = _kind("Archive", ".a"), _kind("Object", ".o"), _kind("LTOIR", ".ltoir")
_KINDS = {
    "ptx": PTXSource, "cu": CUSource, "fatbin": Fatbin, "cubin": Cubin, "a": Archive, "lib": Archive, "o": Object,
    "obj": Object, "ltoir": LTOIR,
}  # a table of several in a line  # fmt: skip


def files_of(given: Any) -> tuple[str, ...]:
    """The files that `link=` names, of which some hold code from memory."""
    parts = (given,) if isinstance(given, str | os.PathLike | LinkableCode) else tuple(given)
    return tuple(map(_file_of, parts))


def _file_of(part: Any) -> str:
    if isinstance(part, LTOIR) or str(part).endswith(".ltoir"):
        raise TileUnsupportedFeatureError(
            "link=: LTO-IR is a format of NVIDIA's libraries, which Tilewright does without; give PTX or a cubin"
        )
    if isinstance(part, LinkableCode):
        return part.file()
    if not isinstance(part, str | os.PathLike):
        raise TileTypeError(f"link= is a file or code such as cuda.CUSource, or several, found {part!r}")
    path = os.fspath(part)
    if Path(path).suffix.removeprefix(".") not in _KINDS:
        raise TileValueError(f"link= names {path}; expected a file of one of {', '.join(f'.{k}' for k in _KINDS)}")
    if not os.path.exists(path):
        raise TileValueError(f"link= names {path}; there is no such file, expected its path as the program sees it")
    return path


@quiet
def declare_device(name: str, sig: Any, link: Any = (), use_cooperative: bool = False, abi: str = "numba") -> Declared:
    """A function of C++ for kernels to call: its symbol, its signature, the code that has it."""
    if abi not in ("numba", "c"):
        raise TileUnsupportedFeatureError(f"cuda.declare_device: the ABI is 'numba' or 'c', found {abi!r}")
    if isinstance(sig, tuple) or (isinstance(sig, str) and sig.lstrip().startswith("(")):
        raise TileTypeError("Return type must be provided for device declarations, as in int32(float32)")
    return Declared(name, types.parse(sig), files_of(link or ()), abi)


class Declared:
    """A function of C++."""

    def __init__(self, name: str, sig: types.Signature, links: tuple[str, ...], abi: str) -> None:
        self.name, self.sig, self.links, self.abi = name, sig, links, abi

    def __call__(self, *args: Any) -> Any:
        raise TileTypeError(f"{self.name} is a function of C++ for GPUs; it is called by kernels")

    def __repr__(self) -> str:
        return f"<cuda.declare_device {self.name}: {self.sig}>"

    def __tw_call__(self, frame: Frame, *args: Any) -> Any:
        from ..capture.simt import declared

        return declared.call(frame, self, args)


__all__ = [
    "LTOIR", "Archive", "CUSource", "Cubin", "Fatbin", "LinkableCode", "Object", "PTXSource", "declare_device",
]  # a table of several in a line  # fmt: skip
