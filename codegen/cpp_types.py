"""C++ types of the operators' typed signatures. The mapping is ours; upstream's names stand for what has them."""

from __future__ import annotations

from torchgen.model import BaseTy, BaseType, ListType, OptionalType, Return, Type


class Unsupported(Exception):
    """A schema type that no typed code is generated for; operators with it can only be refused."""


_BASE = {
    BaseTy.Tensor: "const Tensor&",
    BaseTy.int: "int64_t",
    BaseTy.SymInt: "int64_t",
    BaseTy.DeviceIndex: "int64_t",
    BaseTy.float: "double",
    BaseTy.bool: "bool",
    BaseTy.SymBool: "bool",
    BaseTy.Scalar: "const Scalar&",
    BaseTy.str: "std::string_view",
    BaseTy.ScalarType: "ScalarType",
    BaseTy.Layout: "Layout",
    BaseTy.Device: "Device",
    BaseTy.MemoryFormat: "MemoryFormat",
    BaseTy.QScheme: "QScheme",
    BaseTy.Generator: "GeneratorImpl*",
    BaseTy.Storage: "const Storage&",
    BaseTy.Stream: "const Stream&",
}
_OPTIONAL = {
    BaseTy.Tensor: "OptionalTensor",
    BaseTy.Generator: "GeneratorImpl*",
    BaseTy.Scalar: "const std::optional<Scalar>&",
}
_LIST = {
    BaseTy.Tensor: "TensorList",
    BaseTy.int: "IntArrayRef",
    BaseTy.SymInt: "IntArrayRef",
    BaseTy.float: "ArrayRef<double>",
    BaseTy.bool: "ArrayRef<bool>",
    BaseTy.Scalar: "ArrayRef<Scalar>",
}
_RETURN = {
    BaseTy.Tensor: "Tensor",
    BaseTy.int: "int64_t",
    BaseTy.SymInt: "int64_t",
    BaseTy.float: "double",
    BaseTy.bool: "bool",
    BaseTy.SymBool: "bool",
    BaseTy.Scalar: "Scalar",
    BaseTy.ScalarType: "ScalarType",
}


def _lookup(table: dict[BaseTy, str], t: Type) -> str:
    if not isinstance(t, BaseType) or t.name not in table:
        raise Unsupported(str(t))
    return table[t.name]


def argument_type(t: Type) -> str:
    """The parameter type of an argument, e.g. `std::optional<int64_t>` for `int?`."""
    if isinstance(t, BaseType):
        return _lookup(_BASE, t)
    if isinstance(t, OptionalType):
        if isinstance(t.elem, BaseType) and t.elem.name in _OPTIONAL:
            return _OPTIONAL[t.elem.name]
        return f"std::optional<{argument_type(t.elem)}>"
    if isinstance(t, ListType):
        if t.size is not None and isinstance(t.elem, BaseType) and t.elem.name is BaseTy.bool:
            return f"std::array<bool, {t.size}>"
        elem = t.elem
        if isinstance(elem, OptionalType):  # Tensor?[]: undefined stands for None
            elem = elem.elem
            if not (isinstance(elem, BaseType) and elem.name is BaseTy.Tensor):
                raise Unsupported(str(t))
        return _lookup(_LIST, elem)
    raise Unsupported(str(t))


def return_type(returns: tuple[Return, ...]) -> str:
    """The result type: values, references to arguments that the operator writes, or a tuple."""
    parts = []
    for r in returns:
        if isinstance(r.type, ListType):
            if not (isinstance(r.type.elem, BaseType) and r.type.elem.name in (BaseTy.Tensor, BaseTy.int, BaseTy.SymInt)):
                raise Unsupported(str(r.type))
            parts.append("std::vector<Tensor>" if r.type.elem.name is BaseTy.Tensor else "std::vector<int64_t>")
        elif r.is_write:
            parts.append("const Tensor&")
        else:
            parts.append(_lookup(_RETURN, r.type))
    if not parts:
        return "void"
    return parts[0] if len(parts) == 1 else f"std::tuple<{', '.join(parts)}>"
