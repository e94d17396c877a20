"""derivatives.yaml -> nodes and autograd kernels of the operators that are served. C++ stands in templates/autograd*.j2."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codegen import python_tables
from codegen.claims import Plan
from codegen.forward_mode import ForwardMode
from codegen.model import Op

ROOT = Path(__file__).resolve().parents[1]
HELPERS = ROOT / "kernels" / "autograd"
SHARDS = 8

# Saved attributes by upstream's type: how a node stores it. Tensors and lists of them have their own way.
_STORED = {
    "int64_t": "int64_t",
    "c10::SymInt": "int64_t",
    "bool": "bool",
    "double": "double",
    "at::Scalar": "Scalar",
    "at::ScalarType": "ScalarType",
    "at::Layout": "Layout",
    "at::Device": "Device",
    "at::MemoryFormat": "MemoryFormat",
    "at::TensorOptions": "TensorOptions",
    "at::TensorGeometry": "TensorGeometry",
    "torch::autograd::generated::TypeAndSize": "TypeAndSize",
    "at::IntArrayRef": "std::vector<int64_t>",
    "c10::SymIntArrayRef": "std::vector<int64_t>",
    "::std::vector<c10::SymInt>": "std::vector<int64_t>",
    "::std::vector<::std::vector<c10::SymInt>>": "std::vector<std::vector<int64_t>>",
    "::std::vector<::std::vector<int64_t>>": "std::vector<std::vector<int64_t>>",
    "::std::vector<at::ScalarType>": "std::vector<ScalarType>",
    "at::ArrayRef<double>": "std::vector<double>",
    "at::OptionalIntArrayRef": "std::optional<std::vector<int64_t>>",
    "at::OptionalSymIntArrayRef": "std::optional<std::vector<int64_t>>",
    "::std::optional<c10::SymIntArrayRef>": "std::optional<std::vector<int64_t>>",
    "::std::optional<c10::SymInt>": "std::optional<int64_t>",
    "::std::optional<int64_t>": "std::optional<int64_t>",
    "::std::optional<double>": "std::optional<double>",
    "::std::optional<bool>": "std::optional<bool>",
    "::std::optional<at::Scalar>": "std::optional<Scalar>",
    "::std::optional<at::ScalarType>": "std::optional<ScalarType>",
    "::std::optional<c10::string_view>": "std::optional<std::string>",
    "c10::string_view": "std::string",
}
_TENSOR = {"at::Tensor", "::std::optional<at::Tensor>"}
_TENSOR_LIST = {
    "at::TensorList",
    "at::ITensorListRef",
    "const at::ITensorListRef &",
    "::std::vector<at::Tensor>",
    "c10::List<::std::optional<at::Tensor>>",
}

# How Python shows a stored value.
_SHOWN = {
    "int64_t": "Int",
    "bool": "Bool",
    "double": "Double",
    "Scalar": "Number",
    "ScalarType": "Dtype",
    "std::vector<int64_t>": "Ints",
    "std::vector<double>": "Doubles",
    "std::optional<std::vector<int64_t>>": "OptionalInts",
    "std::optional<int64_t>": "OptionalInt",
    "std::optional<double>": "OptionalDouble",
    "std::optional<bool>": "OptionalBool",
    "std::optional<Scalar>": "OptionalNumber",
    "std::optional<ScalarType>": "OptionalDtype",
    "std::string": "Text",
    "std::optional<std::string>": "OptionalText",
}

# Where upstream's text asks for devices that don't exist here: the same mathematics by its own helper.
_INSTEAD = {
    "NativeGroupNormBackward0": "GradMode::is_enabled() || grads[1].defined() || grads[2].defined() ? "
    "infinitely_differentiable_native_group_norm_backward(rich(grads[0]), rich(grads[1]), rich(grads[2]), "
    "input, result1, result2, weight, N, C, HxW, group, eps, grad_input_mask) : (grads[0].defined() ? "
    "native_group_norm_backward(rich(grads[0]), input, result1, result2, weight, N, C, HxW, group, grad_input_mask) : "
    "std::tuple<Tensor, Tensor, Tensor>())"
}
# A reserve is memory of other backends' libraries, which consume it; ours is empty.
_RESERVE = ("retain_variables ? result3.clone() : result3", "result3")

_CALL = re.compile(r"(?<![\w.>:])((?:\w+::)*\w+)\s*(?=\()")
_METHOD = re.compile(r"(?:\.|->)([A-Za-z_]\w*)\s*(?=[(<])")
_WORD = re.compile(r"\w+")
# Members that hand-written classes have (templates/autograd_api.h.j2), and functions that are no operators.
_MEMBERS = set(
    "options has_value value defined dtype scalar_type isComplex toComplexDouble toDouble size sizes sym_sizes sym_size "
    "numel sym_numel dim strides layout device zeros value_or is_complex isFloatingPoint is_floating_point empty front "
    "toInt toLong "
    "toFloat item_size itemsize sym_strides storage_offset sym_storage_offset is_contiguous vec equal".split()
)
# Operators that tn::Tensor answers itself, without the door.
_OWN_METHODS = set(
    "size stride dim numel is_complex is_floating_point is_contiguous storage_offset data sym_size sym_numel "
    "sym_storage_offset "
    "is_neg is_conj".split()
)
_KNOWN = {
    "std::tuple",
    "std::make_tuple",
    "std::vector",
    "Tensor",
    "TensorList",
    "Scalar",
    "std::optional",
    "GradMode::is_enabled",
    "rich",
    "IntArrayRef",
    "forward::refuse_missing",
}


def cpp(text: str) -> str:
    """A signature of the table inside namespace autograd, where Tensor and Scalar are richer classes."""
    return re.sub(r"(?<![:\w])(Tensor|Scalar)\b", r"tn::\1", text)


@dataclass(frozen=True)
class Formula:
    outputs: tuple[str, ...]  # names of the arguments whose gradients it gives
    is_list: bool
    text: str
    missing: str  # what it calls that we don't have; '' when it compiles


@dataclass(frozen=True)
class Saved:
    name: str
    kind: str  # tensor, list, value
    type: str
    expr: str
    is_output: bool
    guard: str  # index of the edge for which alone it is needed, or ''

    @property
    def shown_as(self) -> str:
        """The kind of Python's `_saved_<name>` (SavedField in runtime/autograd/node.h); '' where upstream shows none."""
        return {"tensor": "Tensor", "list": "TensorList"}.get(self.kind, _SHOWN.get(self.type, ""))


@dataclass(frozen=True)
class NodeClass:
    name: str
    inputs: tuple[tuple[str, bool], ...]  # arguments with a derivative, and whether each is a list
    formulas: tuple[Formula, ...]
    saved: tuple[Saved, ...]
    named_grads: tuple[tuple[str, int], ...]

    @property
    def shown(self) -> tuple[Saved, ...]:
        return tuple(s for s in self.saved if s.shown_as)


@dataclass
class Kernel:
    op: Op
    node: str
    context: dict[str, Any] = field(default_factory=dict)


def _guard(saved: Any, info: Any, inputs: list[tuple[str, bool]]) -> str:
    """Upstream saves a tensor only if the one gradient that reads it is wanted."""
    if any(is_list for _, is_list in inputs) or "backward" in info.name or len(inputs) <= 1:
        return ""
    if str(saved.nctype.type.cpp_type()) != "at::Tensor":
        return ""
    used = [d for d in info.derivatives if saved in d.saved_inputs]
    if len(used) != 1 or len(used[0].var_names) != 1:
        return ""
    names = [n for n, _ in inputs]
    return str(names.index(used[0].var_names[0])) if used[0].var_names[0] in names else ""


def helper_names() -> set[str]:
    """Functions that kernels/autograd/ declares for formulas."""
    text = "".join(p.read_text() for p in sorted(HELPERS.glob("*.h")))
    return set(re.findall(r"^(?:[\w:<>,&* ]+) [&*]?(\w+)\(", text, re.M))


class Derivatives:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.ops_by_name: dict[str, list[Op]] = {}
        for op in plan.surface.ops:
            if op.typed and op.kind != "out":
                self.ops_by_name.setdefault(op.name, []).append(op)
        self.helpers = helper_names()
        self.nodes: dict[str, NodeClass] = {}
        self.kernels: list[Kernel] = []
        self.forward = ForwardMode(self)
        self.left_out: dict[str, str] = {}  # served operators with a derivative that get no node, and why
        from torchgen import local

        with local.parametrize(use_const_ref_for_mutable_tensors=True, use_ilistref_for_tensor_lists=False):
            self._collect()

    # ---- model -------------------------------------------------------------------------------------------------

    def _collect(self) -> None:
        from torchgen.api.autograd import gen_differentiable_outputs, match_differentiability_info
        from torchgen.packaged.autograd.load_derivatives import load_derivatives

        surface = self.plan.surface
        base = surface.tree / "torchgen/packaged"
        infos, _ = load_derivatives(
            str(base / "autograd/derivatives.yaml"),
            str(base / "ATen/native/native_functions.yaml"),
            str(base / "ATen/native/tags.yaml"),
        )
        for match in match_differentiability_info(list(surface.natives_in_yaml_order), infos):
            op = surface.by_name[str(match.func.func.name)]
            if not match.info or op.implicit:
                continue
            if op.full not in self.plan.served and op.full not in self.plan.python:
                continue
            if not op.typed or op.name.startswith("_foreach"):
                self.left_out[op.full] = "no typed call" if not op.typed else "a loop over lists"
                continue
            info = match.info["Default"] if "Default" in match.info else next(iter(match.info.values()))
            if not info.derivatives:
                continue
            node = self._node(info, [o.name for o in gen_differentiable_outputs(match)])
            if node is None:
                self.left_out[op.full] = "it saves a value of a type without storage"
                continue
            kernel = Kernel(op, node.name)
            kernel.context = self._kernel(op, node, info, [o.name for o in gen_differentiable_outputs(match)])
            forward = self.forward.add(op, match, kernel.context["returns"])
            kernel.context["forward"] = forward is not None
            kernel.context["forward_original"] = forward is not None and forward.needs_original
            self.kernels.append(kernel)
        self.kernels.sort(key=lambda k: k.op.full)

    def _node(self, info: Any, outputs: list[str]) -> NodeClass | None:
        if info.op in self.nodes:
            return self.nodes[info.op]
        inputs = [
            (a.name, "List" in str(a.type) or "[]" in str(a.type) or "TensorList" in str(a.nctype))
            for a in info.args_with_derivatives
        ]
        saved = []
        for is_output, attributes in ((False, info.all_saved_inputs), (True, info.all_saved_outputs)):
            for s in attributes:
                name = s.nctype.name if isinstance(s.nctype.name, str) else s.nctype.name.name
                ctype = str(s.nctype.type.cpp_type())
                if ctype in _TENSOR:
                    kind, stored = "tensor", "SavedVariable"
                elif ctype in _TENSOR_LIST:
                    kind, stored = "list", "std::vector<SavedVariable>"
                elif ctype in _STORED:
                    kind, stored = "value", _STORED[ctype]
                elif re.match(r"::std::array<bool,\d+>", ctype):
                    kind, stored = "value", ctype
                else:
                    return None
                saved.append(Saved(name, kind, stored, s.expr, is_output, "" if is_output else _guard(s, info, inputs)))
        lists = dict(inputs)
        formulas = tuple(
            Formula(d.var_names, len(d.var_names) == 1 and lists[d.var_names[0]], text, self.missing(text))
            for d in info.derivatives
            for text in [_INSTEAD.get(info.op, d.formula).replace(*_RESERVE)]
        )
        # Formulas know results by the schema's names, which an out= form's arguments may not have.
        returns = [r.name for r in info.func.func.returns]
        if len(returns) == len(outputs) and all(returns):
            outputs = returns
        named = tuple((f"grad_{n}", i) for i, n in enumerate(outputs))
        node = NodeClass(info.op, tuple(inputs), formulas, tuple(saved), named)
        self.nodes[info.op] = node
        return node

    def missing(self, formula: str) -> str:
        for name in _CALL.findall(formula):
            plain = name.split("::")[-1]
            if name in _KNOWN or plain in self.helpers or plain.removesuffix("_symint") in self.ops_by_name:
                continue
            return name
        for name in _METHOD.findall(formula):
            ops = self.ops_by_name.get(name.removesuffix("_symint"), [])
            if name not in _MEMBERS and not any(is_method(op) for op in ops):
                return name
        return ""

    def _kernel(self, op: Op, node: NodeClass, info: Any, outputs: list[str]) -> dict[str, Any]:
        from torchgen.api import cpp as cpp_api

        from codegen.emit import adapter_name, cpp_name

        inplace = op.kind == "inplace"
        returns = [] if op.num_returns == 0 else list(cpp_api.return_names(op.native))
        arguments = {a.name: a for a in op.args}
        saves_before, saves_after, clones_self = [], [], False
        for s in node.saved:
            expr = (
                s.expr.replace("c10::SymIntArrayRef", "IntArrayRef")
                .replace("->sym_sizes()", "->sizes()")
                .replace(".sym_size(", ".size(")
            )
            if s.kind == "tensor":
                source = s.name
                if s.is_output and inplace:
                    source = "self"
                if not s.is_output and inplace and s.name == "self":
                    source, clones_self = "original_self", True
                written = ", node.get()" if s.is_output and inplace else ""
                expr = f"SavedVariable({source}, {str(s.is_output).lower()}{written})"
            elif s.kind == "list":
                expr = f"save_list({s.name}, {str(s.is_output).lower()})"
            elif s.type == "std::string" or s.type == "std::vector<int64_t>" or s.type.startswith("std::optional"):
                expr = f"stored({expr})"
            line = {"name": s.name, "expr": expr, "guard": s.guard}
            (saves_after if s.is_output else saves_before).append(line)
        present = [n for n, _ in node.inputs if n in arguments]
        tensors = [(cpp_name(a), a.cpp) for a in op.args if a.cpp == "const Tensor&"]
        named = [cpp_name(a) for a in op.args]
        return {
            "ident": op.ident,
            "name": op.name,
            "node": node.name,
            "result": cpp(op.result),
            "signature": cpp(op.signature),
            "params": ", ".join(f"{cpp(a.cpp)} {'p_' if a.cpp == 'const Tensor&' else ''}{cpp_name(a)}" for a in op.args),
            "passed": ", ".join(f"{'p_' if a.cpp == 'const Tensor&' else ''}{cpp_name(a)}" for a in op.args),
            "tensors": [n for n, _ in tensors],
            "unused": [n for n in named],
            "needs": ", ".join(present),
            "inputs": [(n, dict(node.inputs)[n]) for n in present],
            "saves_before": saves_before,
            "saves_after": saves_after,
            "clones_self": clones_self,
            "clone_guard": next((s["guard"] for s in saves_before if "original_self" in s["expr"]), ""),
            "form": op.kind,
            # What only gives a tensor another geometry writes nothing: a view's base keeps its history.
            "history": "set_history" if op.view else "rebase_history",
            "single": op.num_returns == 1,
            "list": op.list_return,
            "returns": returns,
            "outputs": ["self" if inplace and o in ("self", "result") else o for o in outputs],
            "below": "ADInplaceOrView" if op.kind == "functional" and not op.view else "",
            "adapter": adapter_name(op.signature),
            "outs": [cpp_name(a) for a in op.args if a.is_out],
        }

    # ---- the C++ interface that formulas see --------------------------------------------------------------------

    def api(self) -> dict[str, Any]:
        from codegen.emit import api_row, cpp_name

        text = "\n".join(f.text for n in self.nodes.values() for f in n.formulas if not f.missing)
        text += "\n" + self.forward.text()
        text += "\n" + "\n".join(p.read_text() for p in sorted(HELPERS.glob("*.*")))
        words = set(_WORD.findall(text))
        functions, methods = [], []
        for name, ops in sorted(self.ops_by_name.items()):
            for word in (name, f"{name}_symint"):
                if word not in words:
                    continue
                if word != name and not any("SymInt" in a.type for op in ops for a in op.args):
                    continue
                for op in ops:
                    row = dict(api_row(op, ops), cpp_name=word)
                    row["declaration"] = cpp(row["declaration"])
                    row["definition"] = ", ".join(f"{cpp(a.cpp)} {cpp_name(a)}" for a in op.args)
                    row["signature"] = cpp(op.signature)
                    row["result"] = result_type(op)
                    row["options"] = _with_options(op)
                    functions.append(row)
                    if is_method(op) and name not in _OWN_METHODS:
                        methods.append(dict(row, **_as_method(op, row["declaration"])))
        return {"functions": functions, "methods": methods}

    def report(self) -> list[str]:
        """A line for every node and every operator without one: and what its formulas still call."""
        lines = [f"{full}: no node: {why}" for full, why in sorted(self.left_out.items())]
        for node in sorted(self.nodes.values(), key=lambda n: n.name):
            lines += [f"{node.name}: {', '.join(f.outputs)} needs {f.missing}" for f in node.formulas if f.missing]
        whole = sum(all(not f.missing for f in n.formulas) for n in self.nodes.values())
        return [*lines, f"{whole} of {len(self.nodes)} nodes of served operators have all their formulas"]

    def helper_headers(self) -> list[Path]:
        """Headers that declare functions for formulas."""
        return [p for p in sorted(HELPERS.glob("*.h")) if p.name not in ("support.h", "unpack_dual.h")]

    # ---- files -------------------------------------------------------------------------------------------------

    def files(self, render: Any) -> dict[str, str]:
        api = self.api()
        files = self.forward.files(render)
        files |= {
            "autograd/api.h": render("autograd_api.h.j2", **api),
            "autograd/api.cpp": render("autograd_api.cpp.j2", **api),
        }
        for i in range(SHARDS):
            kernels = [k.context for k in self.kernels if python_tables.shard_of(k.node, SHARDS) == i]
            made = {k["node"] for k in kernels if k["form"] != "out"}  # out= forms make none
            nodes = [n for n in self.nodes.values() if n.name in made]
            adapters = sorted({k["adapter"] for k in kernels})
            files[f"autograd/autograd_{i}.cpp"] = render(
                "autograd.cpp.j2", shard=i, nodes=sorted(nodes, key=lambda n: n.name), kernels=kernels, adapters=adapters
            )
        return files


def is_method(op: Op) -> bool:
    return any(v.name == "method" for v in op.native.variants)


def result_type(op: Op) -> str:
    """Values only: in-place forms answer a handle."""
    plain = op.result.replace("const Tensor&", "Tensor")
    return re.sub(r"std::vector<Tensor>", "std::vector<tn::Tensor>", plain)


def _as_method(op: Op, declaration: str) -> dict[str, str]:
    from codegen.emit import cpp_name
    from codegen.literals import cpp_default

    args = [a for a in op.args if a.name != "self"]
    declared = [
        f"{cpp(a.cpp)} {cpp_name(a)}" + (f" = {cpp_default(a)}" if f" {cpp_name(a)} = " in declaration else "") for a in args
    ]
    return {
        "method_declaration": ", ".join(declared),
        "method_definition": ", ".join(f"{cpp(a.cpp)} {cpp_name(a)}" for a in args),
        "method_names": "".join(f", {'*this' if a.name == 'self' else cpp_name(a)}" for a in op.args),
        "method_options": _with_options(op, method=True),
    }


def _with_options(op: Op, method: bool = False) -> dict[str, str] | None:
    """The overload with TensorOptions in place of dtype, layout, device and pin_memory, as upstream's C++ API has it."""
    from codegen.emit import cpp_name

    if not {"dtype", "layout", "device", "pin_memory"} <= {a.name for a in op.args}:
        return None
    members = {"dtype": "dtype_opt", "layout": "layout_opt", "device": "device_opt", "pin_memory": "pinned_memory_opt"}
    declared, passed = [], []
    for a in op.args:
        if method and a.name == "self":
            passed.append(", *this")
        elif a.name in members:
            if a.name == "dtype":
                declared.append("TensorOptions options")
            passed.append(f", options.{members[a.name]}()")
        else:
            late = " = {}" if "TensorOptions options" in declared else ""
            declared.append(f"{cpp(a.cpp)} {cpp_name(a)}{late}")
            passed.append(f", {cpp_name(a)}")
    text = ", ".join(declared)
    return {"declaration": text, "definition": text.replace(" = {}", ""), "names": "".join(passed)}
