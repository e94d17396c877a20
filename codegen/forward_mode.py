"""Forward-mode formulas of derivatives.yaml -> one C++ function an operator. C++ stands in templates/autograd_forward*.j2.

A generated autograd kernel that meets a dual argument calls its operator's function once the result is there; the function
makes tangents from arguments and result.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codegen import python_tables

if TYPE_CHECKING:
    from codegen.derivatives import Derivatives
    from codegen.model import Op

SHARDS = 4
# Upstream's text reads the tangent's memory by the primal's strides; a tangent may have others.
_INSTEAD = {
    "_reshape_alias": "at::reshape(self_t, size)",
    "as_strided": "self_t.strides() == self.strides() ? at::as_strided(self_t, size, stride, storage_offset) "
    ': (forward::refuse_missing("as_strided", "tangents of another layout than their tensor"), Tensor())',
}
_TENSORS = {"const Tensor&", "OptionalTensor"}


@dataclass(frozen=True)
class Formula:
    outputs: tuple[str, ...]
    is_list: bool
    text: str
    missing: str


@dataclass
class Forward:
    op: Op
    formulas: tuple[Formula, ...]
    needs_original: bool
    context: dict[str, Any] = field(default_factory=dict)


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


class ForwardMode:
    """Collected beside the backward nodes, from the same matches."""

    def __init__(self, derivatives: Derivatives) -> None:
        self.derivatives = derivatives
        self.found: dict[str, Forward] = {}

    def add(self, op: Op, match: Any, returns: list[str]) -> Forward | None:
        """The function of an operator, or None where upstream has no formula either."""
        given = (match.fw_derivatives or {}).get("Default") or ()
        if not given or op.kind == "out":
            return None
        inplace = op.kind == "inplace"
        formulas = []
        for d in given:
            is_list = "[]" in str(d.var_types[0]) or op.list_return
            outputs = ("self",) if inplace else tuple(d.var_names)
            text = _INSTEAD.get(op.name, d.formula)
            formulas.append(Formula(outputs, is_list, text, self.derivatives.missing(text)))
        forward = Forward(op, tuple(formulas), any(d.required_original_self_value for d in given))
        forward.context = self._context(forward, given, returns)
        self.found[op.full] = forward
        return forward

    def _context(self, forward: Forward, given: Any, returns: list[str]) -> dict[str, Any]:
        from codegen.derivatives import cpp, result_type
        from codegen.emit import cpp_name

        op = forward.op
        used = words("\n".join(f.text for f in forward.formulas))
        inplace = op.kind == "inplace"
        tensors = [cpp_name(a) for a in op.args if a.cpp in _TENSORS]
        lists = [cpp_name(a) for a in op.args if a.cpp == "TensorList"]
        values = []
        for a in op.args:
            if a.cpp in _TENSORS or a.cpp == "TensorList":
                continue
            rich = {
                "const Scalar&": "Scalar",
                "Scalar": "Scalar",
                "const std::optional<Scalar>&": "std::optional<Scalar>",
                "std::optional<Scalar>": "std::optional<Scalar>",
            }
            values.append((cpp_name(a), rich.get(a.cpp, "")))
        if forward.needs_original:
            used |= {"original_self_t", "original_self_p"}
        formulas = []
        for f, d in zip(forward.formulas, given, strict=True):
            required = [n for n in d.required_inputs_fw_grad or () if n in tensors or n in lists]
            formulas.append(
                {
                    "outputs": f.outputs,
                    "is_list": f.is_list,
                    "text": f.text,
                    "missing": f.missing,
                    "required": ", ".join(
                        "original_self" if inplace and n == "self" and forward.needs_original else n for n in required
                    ),
                }
            )
        return {
            "ident": op.ident,
            "name": op.name,
            "inplace": inplace,
            "answer": "" if inplace else cpp(result_type(op)),
            "params": ", ".join(f"{cpp(a.cpp)} p_{cpp_name(a)}" for a in op.args),
            "tensors": [
                {"name": n, "tangent": f"{n}_t" in used or f"{n}_t_raw" in used, "primal": f"{n}_p" in used} for n in tensors
            ],
            "lists": lists,
            "values": values,
            "original": forward.needs_original,
            "returns": returns,
            "single": op.num_returns == 1,
            "formulas": formulas,
            "clones": inplace and not forward.needs_original and any(d.is_reusing_outplace_formula for d in given),
        }

    def text(self) -> str:
        """What the formulas say, for the C++ interface that they need."""
        return "\n".join(f.text for w in self.found.values() for f in w.formulas if not f.missing)

    def files(self, render: Any) -> dict[str, str]:
        contexts = [w.context for _, w in sorted(self.found.items())]
        files = {"autograd/forward.h": render("autograd_forward.h.j2", functions=contexts)}
        headers = sorted(p.name for p in self.derivatives.helper_headers())
        for i in range(SHARDS):
            mine = [c for c in contexts if python_tables.shard_of(c["name"], SHARDS) == i]
            files[f"autograd/forward_{i}.cpp"] = render("autograd_forward.cpp.j2", shard=i, functions=mine, headers=headers)
        return files
