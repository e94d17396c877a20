"""Names of the nodes of operators over lists, from derivatives.yaml: ForeachAddBackward0List for _foreach_add.List."""

from __future__ import annotations

from typing import Any

from codegen.claims import Plan


def names(plan: Plan) -> list[tuple[str, str]]:
    """(ident, node) of the functional operators over lists that have a derivative."""
    from torchgen import local
    from torchgen.api.autograd import match_differentiability_info
    from torchgen.packaged.autograd.load_derivatives import load_derivatives

    surface = plan.surface
    lists = [f for f in surface.natives_in_yaml_order if str(f.func.name).startswith("_foreach_")]
    if not lists:
        return []
    base = surface.tree / "torchgen/packaged"
    files = ("autograd/derivatives.yaml", "ATen/native/native_functions.yaml", "ATen/native/tags.yaml")
    with local.parametrize(use_const_ref_for_mutable_tensors=True, use_ilistref_for_tensor_lists=False):
        infos, _ = load_derivatives(*(str(base / f) for f in files))
        matches: list[Any] = match_differentiability_info(lists, infos)
    found = []
    for match in matches:
        op = surface.by_name[str(match.func.func.name)]
        info = match.info.get("Default") if match.info else None
        if info is not None and op.kind == "functional" and info.op and info.op.startswith("Foreach"):
            found.append((op.ident, info.op))
    return sorted(found)


def files(plan: Plan, render: Any) -> dict[str, str]:
    return {"autograd/foreach_nodes.cpp": render("foreach_nodes.cpp.j2", rows=names(plan))}
