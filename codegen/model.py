"""One model of upstream's operator surface: frozen, made once from upstream's yaml by upstream's own parser."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# torchgen comes out of upstream's wheel; `load` puts its tree on the path before the first import.


@dataclass(frozen=True)
class Arg:
    """An argument of a schema. `cpp` is its C++ type, or '' where typed code is impossible."""

    name: str
    type: str
    cpp: str
    default: str | None
    kwarg_only: bool
    is_out: bool
    is_write: bool
    is_tensor: bool  # Tensor or Tensor?, not a list


@dataclass(frozen=True)
class Op:
    """An operator overload. `id` is its row; rows are sorted by name, so that only a bump of upstream moves them."""

    id: int
    name: str  # "add_"
    overload: str  # "Tensor"
    schema: str
    args: tuple[Arg, ...]
    result: str  # C++ type, '' where typed code is impossible
    num_returns: int
    list_return: bool
    kind: str  # functional, inplace, out, mutable
    tags: tuple[str, ...]
    keys: tuple[str, ...]  # what upstream registers, by dispatch key name
    view: bool
    implicit: bool
    has_derivative: bool
    lacks_derivative: bool  # upstream marks its results with a node whose backward says that there is no derivative
    native: Any = field(compare=False, repr=False)
    # The functional form of its group, and the group's other forms: qualified names or ''.
    functional: str = ""
    inplace: str = ""
    out: str = ""

    @property
    def full(self) -> str:
        return f"{self.name}.{self.overload}" if self.overload else self.name

    @property
    def ident(self) -> str:
        """The name in C++: `add__Tensor` for add_.Tensor."""
        return f"{self.name}_{self.overload}" if self.overload else self.name

    @property
    def typed(self) -> bool:
        return bool(self.result) and all(a.cpp for a in self.args)

    @property
    def signature(self) -> str:
        return f"{self.result}({', '.join(a.cpp for a in self.args)})"


@dataclass(frozen=True)
class Surface:
    version: str
    ops: tuple[Op, ...]
    tree: Path
    natives_in_yaml_order: tuple[Any, ...] = field(compare=False, repr=False)

    @functools.cached_property
    def by_name(self) -> dict[str, Op]:
        return {op.full: op for op in self.ops}


# Keys of upstream's CPU build. CUDA and the like have no kernel there, so they have none here.
_CPU_BUILD = (
    "CPU Meta CompositeImplicitAutograd CompositeExplicitAutograd CompositeExplicitAutogradNonFunctional "
    "CompositeImplicitAutogradNestedTensor QuantizedCPU QuantizedMeta SparseCPU SparseMeta SparseCsrCPU SparseCsrMeta "
    "MkldnnCPU NestedTensorCPU NestedTensorMeta ZeroTensor"
).split()


def _registered(native: Any, group_out: Any, indices: Any) -> tuple[str, ...]:
    """The dispatch keys under which upstream's CPU build registers a kernel for this operator."""
    source = group_out if native.structured_delegate is not None and group_out is not None else native
    keys = {str(key) for key, index in indices.items() if index.has_kernel(source)}
    if native.structured or native.structured_delegate is not None:
        keys.add("Meta")
        if native.structured_delegate is not None:
            keys.add("CompositeExplicitAutogradNonFunctional")
    return tuple(k for k in _CPU_BUILD if k in keys)


def _arg(a: Any, kwarg_only: bool, is_out: bool, argument_type: Any, unsupported: type[Exception]) -> Arg:
    try:
        cpp = argument_type(a.type)
    except unsupported:
        cpp = ""
    default = None if a.default is None else str(a.default)
    is_tensor = str(a.type).removesuffix("?") == "Tensor"
    is_write = a.annotation is not None and a.annotation.is_write
    return Arg(a.name, str(a.type), cpp, default, kwarg_only, is_out, is_write, is_tensor)


def load(tree: Path, version: str) -> Surface:
    """Reads the surface from upstream's Python tree (the folder that holds torchgen/)."""
    if str(tree) not in sys.path:
        sys.path.insert(0, str(tree))
    from torchgen.gen import get_grouped_native_functions, parse_native_yaml
    from torchgen.model import NativeFunctionsGroup
    from torchgen.packaged.autograd.load_derivatives import load_derivatives

    from codegen.cpp_types import Unsupported, argument_type, return_type

    native_yaml = tree / "torchgen/packaged/ATen/native/native_functions.yaml"
    tags_yaml = tree / "torchgen/packaged/ATen/native/tags.yaml"
    parsed = parse_native_yaml(str(native_yaml), str(tags_yaml))
    natives = tuple(sorted(parsed.native_functions, key=lambda f: str(f.func.name)))
    infos, _ = load_derivatives(str(tree / "torchgen/packaged/autograd/derivatives.yaml"), str(native_yaml), str(tags_yaml))
    differentiable = {str(schema.name) for schema, by_key in infos.items() if any(info.derivatives for info in by_key.values())}

    forms: dict[str, dict[str, str]] = {}
    outs: dict[str, Any] = {}
    for g in get_grouped_native_functions(list(natives)):
        if isinstance(g, NativeFunctionsGroup):
            names = {"functional": str(g.functional.func.name), "out": str(g.out.func.name)}
            if g.inplace is not None:
                names["inplace"] = str(g.inplace.func.name)
            for member in g.functions():
                forms[str(member.func.name)] = names
                outs[str(member.func.name)] = g.out

    from torchgen.api.autograd import match_differentiability_info
    from torchgen.packaged.autograd.gen_trace_type import MANUAL_AUTOGRAD
    from torchgen.packaged.autograd.gen_variable_type import DONT_REQUIRE_DERIVATIVE

    matches = match_differentiability_info(list(natives), infos)
    mentioned = {str(m.func.func.name) for m in matches if m.info}
    exempt = {*MANUAL_AUTOGRAD, *DONT_REQUIRE_DERIVATIVE}

    def lacks_derivative(f: Any) -> bool:
        """As upstream's generator decides: no entry in derivatives.yaml, but tensors that could have gradients."""
        base = f.func.name.name.base
        return (
            f.func.kind().name in ("functional", "inplace")
            and not f.has_composite_implicit_autograd_kernel
            and str(f.func.name) not in mentioned
            and not {base, str(f.func.name.name)} & exempt
            and not f.is_view_op
            and any(a.type.is_tensor_like() for a in f.func.arguments.flat_all)
            and any(r.type.is_tensor_like() for r in f.func.returns)
        )

    ops = []
    for i, f in enumerate(natives):
        name = str(f.func.name)
        arguments = f.func.arguments
        flat = [_arg(a, False, False, argument_type, Unsupported) for a in arguments.flat_positional]
        flat += [_arg(a, True, False, argument_type, Unsupported) for a in arguments.flat_kwarg_only]
        flat += [_arg(a, True, True, argument_type, Unsupported) for a in arguments.out]
        try:
            result = return_type(f.func.returns)
        except Unsupported:
            result = ""
        base, _, overload = name.partition(".")
        keys = _registered(f, outs.get(name), parsed.backend_indices)
        ops.append(
            Op(
                id=i,
                name=base,
                overload=overload,
                schema=f"aten::{f.func}",
                args=tuple(flat),
                result=result,
                num_returns=len(f.func.returns),
                list_return=len(f.func.returns) == 1 and str(f.func.returns[0].type).endswith("[]"),
                kind=f.func.kind().name,
                tags=tuple(sorted(f.tags)),
                keys=keys,
                view=f.is_view_op or "inplace_view" in f.tags,
                implicit="CompositeImplicitAutograd" in keys,
                has_derivative=name in differentiable,
                lacks_derivative=lacks_derivative(f),
                native=f,
                **forms.get(name, {}),
            )
        )
    return Surface(version, tuple(ops), tree, tuple(parsed.native_functions))
