"""The argument parser's tables: every Python-visible name with its signatures in upstream's order.

Grouping, order and deprecated signatures come from upstream's own generator (torchgen.packaged.autograd.
gen_python_functions); here its objects become the rows of bindings/parser.h.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codegen.literals import DefaultPool
from codegen.model import Op, Surface

# Type in a Python signature -> (ParamType, how error messages call it).
_TYPES = {
    "Tensor": ("Tensor", "Tensor"), "Scalar": ("Scalar", "Number"), "int64_t": ("Int", "int"), "int": ("Int", "int"),
    "SymInt": ("Int", "int"), "DeviceIndex": ("Int", "int"), "double": ("Double", "float"), "float": ("Double", "float"),
    "bool": ("Bool", "bool"), "SymBool": ("Bool", "bool"), "TensorList": ("TensorList", "tuple of Tensors"),
    "IntArrayRef": ("IntList", "tuple of ints"), "SymIntArrayRef": ("IntList", "tuple of ints"),
    "ArrayRef<double>": ("DoubleList", "tuple of floats"), "ArrayRef<Scalar>": ("ScalarList", "tuple of Scalars"),
    "ScalarList": ("ScalarList", "tuple of Scalars"), "ArrayRef<bool>": ("BoolList", "tuple of bools"),
    "Generator": ("Generator", "torch.Generator"), "Storage": ("Storage", "torch.Storage"),
    "ScalarType": ("ScalarType", "torch.dtype"), "Layout": ("Layout", "torch.layout"), "Stream": ("Stream", "torch.Stream"),
    "MemoryFormat": ("MemoryFormat", "torch.memory_format"), "Device": ("Device", "torch.device"), "str": ("String", "str"),
    "c10::string_view": ("String", "str"), "::std::string_view": ("String", "str"), "QScheme": ("QScheme", "torch.qscheme"),
    "c10::List<::std::optional<Tensor>>": ("OptionalTensorList", "tuple of Tensors"),
    "ArrayRef<Tensor>": ("TensorList", "tuple of Tensors"),
}  # fmt: skip
_GROUPS = (
    ("_VariableFunctions", "torch", "is_py_torch_function", False),
    ("TensorBase", "torch.Tensor", "is_py_variable_method", True),
    ("_nn", "torch.nn", "is_py_nn_function", False),
    ("_fft", "torch.fft", "is_py_fft_function", False),
    ("_linalg", "torch.linalg", "is_py_linalg_function", False),
    ("_nested", "torch.nested", "is_py_nested_function", False),
    ("_sparse", "torch.sparse", "is_py_sparse_function", False),
    ("_special", "torch.special", "is_py_special_function", False),
)
NO_OP = 0xFFFF
OUT_PARAM, REQUIRES_GRAD, IGNORED = -1, -2, -3


@dataclass(frozen=True)
class ParamRow:
    name: str
    type: str
    flags: int
    arg: int
    size: int


@dataclass(frozen=True)
class SignatureRow:
    text: str
    params: tuple[ParamRow, ...]
    defaults: str  # name of a pooled array
    num_positional: int
    num_args: int
    num_outs: int
    op: int
    out_op: int
    flags: int
    out_args: tuple[int, ...]


@dataclass(frozen=True)
class FunctionRow:
    group: str
    ident: str
    name: str
    signatures: tuple[SignatureRow, ...]
    method: bool
    return_type: int
    module: str


@dataclass(frozen=True)
class Tables:
    functions: tuple[FunctionRow, ...]
    return_types: tuple[tuple[str, tuple[str, ...], bool], ...]  # name, fields, whether there is a type for out= as well


def _type_of(text: str) -> tuple[str, str, bool, int]:
    """ParamType, its name in messages, whether None is taken, and the fixed size of a list."""
    optional = text.endswith("?")
    text = text.removesuffix("?").removeprefix("const ").removesuffix(" &")
    size = 0
    if text.endswith("]") and "[" in text:
        text, _, inside = text.rpartition("[")
        size = int(inside.removesuffix("]") or 0)
        optional = optional or text.endswith("?")
        text = text.removesuffix("?")
    kind, shown = _TYPES[text]
    return kind, shown, optional, size


def _default_text(text: str) -> str:
    shown = {"::std::nullopt": "None", "c10::nullopt": "None", "true": "True", "false": "False"}.get(text, text)
    return {"at::Reduction::Mean": "1", "{}": "None"}.get(shown, shown)


def _signature(sig: Any, base: Op, out: Op | None, *, method: bool) -> tuple[SignatureRow, str]:
    deprecated = hasattr(sig, "deprecated_schema")
    index = {a.name: i for i, a in enumerate(base.args)}
    if deprecated:  # names of its own: the aten expression tells which argument each one is
        exprs = [e for e in sig.deprecated_args_exprs if e != "out"]
        index = {name: i for i, name in enumerate(exprs) if not name.isdigit()}
    options = {a.name for a in sig.tensor_options_args}
    params, shown, num_positional, starred = [], [], 0, False
    positional = {id(a) for a in sig.input_args}
    for a in sig.arguments(skip_outputs=False):
        kind, type_text, optional, size = _type_of(str(_type_str(a)))
        keyword = id(a) not in positional
        if a.name == "out":
            arg = OUT_PARAM
        elif a.name == "requires_grad" and a.name in options:
            arg = REQUIRES_GRAD
        else:
            schema_name = a.name if a.name in index else "self" if a.name == "input" else a.name
            arg = index.get(schema_name, IGNORED)
        default = None if a.default is None else _default_text(a.default)
        flags = (1 if optional or default == "None" else 0) | (2 if keyword else 0) | (4 if default is not None else 0)
        # In upstream a number may stand for a tensor in binary operators; the parser decides by the name's table.
        flags |= 8 if kind == "Tensor" and a.name != "out" and _takes_numbers(base, a.name, method) else 0
        name = "input" if a.name == "self" and kind == "Tensor" and not method else a.name
        params.append(ParamRow(name, kind, flags, arg, size))
        if keyword and not starred:
            shown.append("*")
            starred = True
        num_positional += not keyword
        shown.append(f"{type_text} {name}" + (f" = {default}" if default is not None else ""))
    out_args: tuple[int, ...] = ()
    num_outs = 0
    if out is not None:
        names = {a.name: i for i, a in enumerate(base.args)}
        outs = [a.name for a in out.args if a.is_out]
        num_outs = len(outs)
        out_args = tuple(-1 - outs.index(a.name) if a.is_out else names[a.name] for a in out.args)
    list_out = out is not None and any(a.is_out and a.type.endswith("[]") for a in out.args)
    # Lists written in place are given back too, but not by the optimisers' fused steps.
    gives_self = base.kind == "inplace" and (base.num_returns > 0 or base.name.startswith("_foreach_"))
    flags = (1 | 2 if deprecated else 0) | (4 if gives_self else 0) | (8 if options else 0) | (16 if list_out else 0)
    row = SignatureRow(
        text=f"({', '.join(shown)})",
        params=tuple(params),
        defaults="",
        num_positional=num_positional,
        num_args=len(base.args),
        num_outs=num_outs,
        op=base.id,
        out_op=out.id if out is not None else NO_OP,
        flags=flags,
        out_args=out_args,
    )
    return row, base.full


def _type_str(a: Any) -> str:
    from torchgen.api.python import argument_type_str

    return argument_type_str(a.type, simple_type=False, symint=True)


# Upstream: names whose tensor parameters take a Python number (should_allow_numbers_as_tensors).
_NUMBERS = frozenset(
    "add add_ add_out div div_ div_out divide divide_ divide_out mul mul_ mul_out multiply multiply_ multiply_out sub sub_ "
    "sub_out subtract subtract_ subtract_out true_divide true_divide_ true_divide_out to _to_copy copy_ copy floor_divide "
    "floor_divide_ floor_divide_out _conj".split()
)


def _takes_numbers(op: Op, param: str, method: bool) -> bool:
    return op.name in _NUMBERS


def tables(surface: Surface, pool: DefaultPool) -> Tables:
    """All names with their rows. `pool` collects the arrays of default arguments."""
    import dataclasses

    from torchgen.api.python import structseq_fieldnames
    from torchgen.packaged.autograd import gen_python_functions as upstream

    deprecated = str(surface.tree / "torchgen/packaged/autograd/deprecated.yaml")
    # Upstream's sort is stable over its own yaml order, so the natives go in as parsed.
    natives = [f for f in surface.natives_in_yaml_order if upstream.should_generate_py_binding(f)]
    loaded = {m: upstream.load_signatures(natives, deprecated, method=m) for m in (False, True)}
    functions, return_types = list[FunctionRow](), dict[tuple[str, tuple[str, ...]], int]()
    with_out = set[tuple[str, tuple[str, ...]]]()
    for group, module, predicate, method in _GROUPS:
        grouped = upstream.group_filter_overloads(loaded[method], getattr(upstream, predicate))
        for name in sorted(grouped, key=str):
            rows, returns = [], -1
            for pair in upstream.group_overloads(grouped[name]):
                base = surface.by_name[str(pair.base.func.name)]
                out = surface.by_name[str(pair.outplace.func.name)] if pair.outplace is not None else None
                row, full = _signature(pair.signature, base, out, method=method)
                rows.append(dataclasses.replace(row, defaults=pool.array(surface.by_name[full])))
                fields = tuple(structseq_fieldnames(pair.base.func.returns))
                if fields:
                    key = (_structseq_name(pair.base), fields)
                    returns = return_types.setdefault(key, len(return_types))
                    if out is not None:
                        with_out.add(key)
            ident = f"{group.strip('_')}_{name}"
            functions.append(FunctionRow(group, ident, str(name), tuple(rows), method, returns, module))
    return Tables(tuple(functions), tuple((*key, key in with_out) for key in return_types))


def _structseq_name(native: Any) -> str:
    name = str(native.func.name.name)
    return name


def shard_of(name: str, count: int) -> int:
    """A stable shard for a name: adding one moves no other."""
    return zlib.crc32(name.encode()) % count


__all__ = ["FunctionRow", "ParamRow", "Path", "SignatureRow", "Tables", "shard_of", "tables"]
