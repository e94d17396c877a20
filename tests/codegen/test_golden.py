"""The generator's output, byte for byte: one small schema for each feature. `--update` accepts what it writes now."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import pytest

from codegen import claims
from codegen.emit import Emitter

GOLDEN = Path(__file__).parent / "golden"

STRUCTURED = """
- func: relu(Tensor self) -> Tensor
  variants: function, method
  structured_delegate: relu.out
- func: relu_(Tensor(a!) self) -> Tensor(a!)
  variants: function, method
  structured_delegate: relu.out
- func: relu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  structured_inherits: TensorIteratorBase
  dispatch:
    CPU: relu_out
"""
COMPOSITE = """
- func: twice(Tensor self, *, float by=2.0) -> Tensor
  variants: function
"""
VIEW = """
- func: transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)
  variants: function, method
  dispatch:
    CPU: transpose
- func: transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor
  variants: function
  dispatch:
    CompositeExplicitAutogradNonFunctional: transpose_copy
  tags: view_copy
- func: split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]
  variants: function, method
  dispatch:
    CPU: split
- func: split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]
  variants: function
  dispatch:
    CompositeExplicitAutogradNonFunctional: split_copy
  tags: view_copy
"""
RESULTS = """
- func: extremes(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
  variants: function
  dispatch:
    CPU: extremes
- func: _local_scalar_dense(Tensor self) -> Scalar
  variants: function
  dispatch:
    CPU: number
"""
REFUSED = """
- func: absent(Tensor self, str mode="a\\"b") -> Tensor
  variants: function
  dispatch:
    CPU: absent
- func: only_cuda(Tensor self) -> Tensor
  variants: function
  dispatch:
    CUDA: only_cuda
"""
# feature -> (schemas, derivatives, {family: claims})
CASES: dict[str, tuple[str, str, dict[str, str]]] = {
    "pointwise": (STRUCTURED, "- name: relu(Tensor self) -> Tensor\n  self: grad\n",
                  {"unary": "relu: {slot: pointwise, file: a.cpp, dtypes: [f32, bf16]}\n"}),
    "structured": (STRUCTURED, "[]", {"unary": "relu: {slot: structured, file: a.cpp, dtypes: [f64]}\n"}),
    "compose": (COMPOSITE, "[]", {"more": "twice: {compose: tn::twice, file: a.cpp}\n"}),
    "view": (VIEW, "[]",
             {"view": "transpose.int: {raw: true, file: a.cpp, conj: aware}\nsplit.Tensor: {raw: true, file: a.cpp}\n"}),
    "results": (RESULTS, "[]",
                {"reduce": "extremes: {raw: true, file: a.cpp}\n_local_scalar_dense: {raw: true, file: a.cpp}\n"}),
    "refused": (REFUSED, "[]", {}),
}  # fmt: skip
# Parts of the output that depend on the claims; the rest is the same for each case or belongs to other tests.
CHECKED = ("op_table.cpp", "slots/", "kernels/", "ops/", "manifest.json")


def written(plan: claims.Plan) -> str:
    """The checked files as one text."""
    files = Emitter(plan).files({})
    chosen = [name for name in sorted(files) if name.startswith(CHECKED)]
    return "".join(f"===== {name}\n{files[name]}" for name in chosen)


@pytest.mark.parametrize("case", CASES)
def test_golden(case: str, surface: Any, planned: Any, request: pytest.FixtureRequest) -> None:
    natives, derivatives, families = CASES[case]
    now = written(planned(surface(natives, derivatives), families))
    path = GOLDEN / f"{case}.txt"
    if request.config.getoption("--update", default=False):
        path.write_text(now)
    old = path.read_text() if path.exists() else ""
    change = difflib.unified_diff(old.splitlines(), now.splitlines(), str(path.name), "now", lineterm="")
    assert now == old, "\n".join(change) + "\n(accept with --update)"


def test_twice_gives_the_same_bytes(surface: Any, planned: Any) -> None:
    natives, derivatives, families = CASES["pointwise"]
    plan = planned(surface(natives, derivatives), families)
    assert Emitter(plan).files({}) == Emitter(plan).files({})


WRONG = {
    "unknown operator": ("rely: {slot: pointwise, file: a.cpp, dtypes: [f32]}", "unary.yaml:1: unknown operator 'rely'"),
    "unknown dtype": ("relu: {slot: pointwise, file: a.cpp, dtypes: [f33]}", "unary.yaml:1: unknown dtype 'f33'"),
    "claimed twice": (
        "relu: {raw: true, file: a.cpp}\nrelu: {raw: true, file: b.cpp}",
        "unary.yaml:2: 'relu' is claimed twice",
    ),
    "no way": ("relu: {file: a.cpp}", "unary.yaml:1: 'relu': expected one of"),
    "two ways": ("relu: {raw: true, compose: x, file: a.cpp}", "unary.yaml:1: 'relu': expected one of"),
    "unknown field": ("relu: {raw: true, fyle: a.cpp}", "unary.yaml:1: 'relu': expected one of"),
    "unknown slot": ("relu: {slot: vector, file: a.cpp}", "unary.yaml:1: 'relu': expected slot pointwise or structured"),
    "no mapping": ("relu: raw", "unary.yaml:1: 'relu': expected a mapping"),
    "no dtypes": ("relu: {slot: pointwise, file: a.cpp}", "unary.yaml:1: 'relu': a pointwise slot needs dtypes"),
    "not functional": ("\nrelu_: {slot: pointwise, file: a.cpp, dtypes: [f32]}", "unary.yaml:2: 'relu_' is inplace"),
    "changes a class": ("twice: {raw: true, file: a.cpp}", "unary.yaml:1: 'twice' is composite implicit upstream"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_claims_stop_with_file_and_line(case: str, surface: Any, planned: Any) -> None:
    text, message = WRONG[case]
    with pytest.raises(claims.ClaimError) as caught:
        planned(surface(STRUCTURED + COMPOSITE, "[]"), {"unary": text + "\n"})
    assert message in str(caught.value)


def test_two_families_claim_the_same(surface: Any, planned: Any) -> None:
    claim = "relu: {raw: true, file: a.cpp}\n"
    with pytest.raises(claims.ClaimError, match="claimed already in"):
        planned(surface(STRUCTURED, "[]"), {"a": claim, "b": claim})
