"""Compilation ahead of time: a kernel and signatures of it become PTX or a cubin, for a program that has no Python.

    from tilewright import compilation

    signature = compilation.KernelSignature.from_kernel_args(kernel, args, CallingConvention.cutile_python_v2())
    made = compilation.export_kernel(kernel, [signature], "k.cubin", gpu_code="sm_90a", output_format="cubin")
    for entry in made:
        print(entry.symbol, entry.threads, entry.shared_bytes)

signature.py   what an exported kernel takes for granted of its parameters
mangling.py    the symbol that says it, and back
export.py      the file
interop.py     the same of functions and kernels that C++ calls
"""

from .export import ExportedKernel, export_kernel
from .interop import export_functions, include_folder
from .mangling import demangle_kernel_name, mangle_kernel_name
from .signature import (
    ArrayConstraint,
    CallingConvention,
    ConstantConstraint,
    ConstantValue,
    KernelSignature,
    ListConstraint,
    ParameterConstraint,
    ScalarConstraint,
    TupleConstraint,
)

__all__ = [
    "ArrayConstraint",
    "CallingConvention",
    "ConstantConstraint",
    "ConstantValue",
    "ExportedKernel",
    "KernelSignature",
    "ListConstraint",
    "ParameterConstraint",
    "ScalarConstraint",
    "TupleConstraint",
    "demangle_kernel_name",
    "export_functions",
    "export_kernel",
    "include_folder",
    "mangle_kernel_name",
]
