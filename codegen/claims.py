"""Claims: how each operator is served, read from kernels/<family>/<family>.yaml and checked against the surface.

    relu:        {slot: pointwise, file: activations.cpp, dtypes: [floating, integral]}
    mm:          {slot: structured, file: mm.cpp, dtypes: [f32, f64]}
    view:        {raw: true, file: views.cpp, meta: true}
    matmul:      {compose: "composite::matmul(self, other)", include: [kernels/matmul/composite.h]}
    floor_divide: {python: true}          # in a compose text, $op stands for the operator's own OpId
    cudnn_grid_sampler: {refuse: "another backend's operator"}

A claim on a functional operator serves the in-place and out= forms of its group too, unless those are claimed themselves.
Every other operator is refused with "no kernel yet" or the reason of the first rule of refusals.yaml that matches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from codegen.model import Op, Surface

# Short names of dtypes in claims, by the value of upstream's ScalarType.
DTYPES = {
    "u8": 0, "i8": 1, "i16": 2, "i32": 3, "i64": 4, "f16": 5, "f32": 6, "f64": 7, "c32": 8, "c64": 9, "c128": 10, "bool": 11,
    "bf16": 15, "f8e5m2": 23, "f8e4m3fn": 24, "f8e5m2fnuz": 25, "f8e4m3fnuz": 26, "u16": 27, "u32": 28, "u64": 29,
    "f8e8m0": 44,
}  # fmt: skip
DTYPE_GROUPS = {
    "integral": ["u8", "i8", "i16", "i32", "i64"],
    "unsigned": ["u16", "u32", "u64"],
    "floating": ["f32", "f64", "f16", "bf16"],
    "float8": ["f8e5m2", "f8e4m3fn", "f8e5m2fnuz", "f8e4m3fnuz", "f8e8m0"],
    "complex": ["c64", "c128"],
}
DTYPE_GROUPS["real"] = DTYPE_GROUPS["integral"] + DTYPE_GROUPS["floating"]
DTYPE_GROUPS["all"] = [*DTYPE_GROUPS["real"], *DTYPE_GROUPS["complex"], "bool"]
WAYS = ("slot", "raw", "compose", "python", "refuse")
FIELDS = {*WAYS, "file", "dtypes", "meta", "include", "conj", "fast", "grain", "forms", "versions"}


class ClaimError(Exception):
    """A claim that doesn't fit: always with the file and line of the entry."""


@dataclass(frozen=True)
class Claim:
    """One entry of a family's yaml."""

    op: str
    way: str  # slot, raw, compose, python, refuse
    family: str
    where: str  # file:line
    slot: str = ""  # pointwise, structured
    text: str = ""  # of compose: the expression; of refuse: the reason
    dtypes: int = 0  # bit set
    meta: bool = False  # raw: the function serves meta tensors as well
    include: tuple[str, ...] = ()
    conj: bool = False
    forms: bool = True
    versions: bool = False  # the kernel bumps the versions of what it writes itself, with `versions: own`


@dataclass(frozen=True)
class Served:
    """How one operator is served: by which claim, and as which form of it."""

    op: Op
    claim: Claim
    form: str  # own, inplace, out: derived from the functional operator's claim
    source: Op  # the claimed operator


@dataclass(frozen=True)
class Plan:
    """The whole surface with its ways; every operator is in exactly one of the three."""

    surface: Surface
    served: dict[str, Served]
    python: dict[str, Claim]  # served by upstream's decomposition: no code of ours
    refused: dict[str, str]  # full name -> reason


def dtype_bits(names: Any, where: str) -> int:
    bits = 0
    for name in names or ():
        for member in DTYPE_GROUPS.get(name, [name]):
            if member not in DTYPES:
                raise ClaimError(f"{where}: unknown dtype '{member}'; known: {', '.join([*DTYPES, *DTYPE_GROUPS])}")
            bits |= 1 << DTYPES[member]
    return bits


def _entries(path: Path) -> list[tuple[str, dict[str, Any], int]]:
    """The entries of a claims file with their lines; a key that stands twice is an error."""
    root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    if root is None:
        return []
    found, seen = [], dict[str, int]()
    for key, value in root.value:
        line = key.start_mark.line + 1
        if key.value in seen:
            raise ClaimError(f"{path.name}:{line}: '{key.value}' is claimed twice (first in line {seen[key.value]})")
        seen[key.value] = line
        loader = yaml.CSafeLoader("")
        found.append((key.value, loader.construct_document(value), line))
    return found


def read_family(path: Path) -> list[Claim]:
    """Parses one family's yaml; shape errors only, names are checked by `plan`."""
    family, claims = path.parent.name, []
    for op, body, line in _entries(path):
        where = f"kernels/{family}/{path.name}:{line}"
        if not isinstance(body, dict):
            raise ClaimError(f"{where}: '{op}': expected a mapping with one of {', '.join(WAYS)}, got {body!r}")
        unknown = set(body) - FIELDS
        ways = [w for w in WAYS if w in body]
        if unknown or len(ways) != 1:
            raise ClaimError(f"{where}: '{op}': expected one of {', '.join(WAYS)}, got {', '.join(map(str, body))}")
        way = ways[0]
        slot = body["slot"] if way == "slot" else ""
        if way == "slot" and slot not in ("pointwise", "structured"):
            raise ClaimError(f"{where}: '{op}': expected slot pointwise or structured, got '{slot}'")
        claims.append(
            Claim(
                op=op,
                way=way,
                family=family,
                where=where,
                slot=slot,
                text=str(body[way]) if way in ("compose", "refuse") else "",
                dtypes=dtype_bits(body.get("dtypes"), where),
                meta=bool(body.get("meta", False)),
                include=tuple(body.get("include", ())),
                conj=body.get("conj") == "aware",
                forms=bool(body.get("forms", True)),
                versions=body.get("versions") == "own",
            )
        )
    return claims


def _check(claim: Claim, op: Op) -> None:
    """A claim must not change an operator's class, which is upstream's."""
    reads_tensors = any("Tensor" in a.type and not a.is_write for a in op.args)
    if claim.way in ("slot", "raw") and op.implicit and "CPU" not in op.keys and reads_tensors:
        raise ClaimError(f"{claim.where}: '{op.full}' is composite implicit upstream: expected compose, got {claim.way}")
    if claim.way == "slot" and op.kind not in ("functional", "out"):
        raise ClaimError(f"{claim.where}: '{op.full}' is {op.kind}: claim the functional form, or use raw")
    if not op.typed and claim.way not in ("refuse", "python"):
        raise ClaimError(f"{claim.where}: '{op.full}' has a type without typed code; it can only be refused")
    if claim.way == "slot" and claim.slot == "pointwise" and not claim.dtypes:
        raise ClaimError(f"{claim.where}: '{op.full}': a pointwise slot needs dtypes")


def plan(surface: Surface, kernels: Path, only: frozenset[str] | None = None) -> Plan:
    """Assigns every operator its way. `only` keeps a subset of the claims: a selective build."""
    claims: dict[str, Claim] = {}
    for path in sorted(kernels.glob("*/*.yaml")):
        for claim in read_family(path):
            if claim.op not in surface.by_name:
                raise ClaimError(f"{claim.where}: unknown operator '{claim.op}' in upstream {surface.version}")
            if claim.op in claims:
                raise ClaimError(f"{claim.where}: '{claim.op}' is claimed already in {claims[claim.op].where}")
            _check(claim, surface.by_name[claim.op])
            claims[claim.op] = claim
    rules = [(re.compile(r["match"]), r["reason"]) for r in _refusal_rules(kernels.parent)]
    served: dict[str, Served] = {}
    refused: dict[str, str] = {}
    python: dict[str, Claim] = {}
    for op in surface.ops:
        served_by = _way_of(op, claims, surface)
        if served_by is not None and (only is None or served_by.source.full in only):
            served[op.full] = served_by
            continue
        claim = claims.get(op.full)
        if claim is not None and claim.way == "python":
            python[op.full] = claim
            continue
        reason = "left out of this build" if served_by is not None else claim.text if claim is not None else ""
        refused[op.full] = reason or next((why for rule, why in rules if rule.search(op.full)), "no kernel yet")
    return Plan(surface, served, python, refused)


def _way_of(op: Op, claims: dict[str, Claim], surface: Surface) -> Served | None:
    own = claims.get(op.full)
    if own is not None:
        return None if own.way in ("refuse", "python") else Served(op, own, "own", op)
    base = claims.get(op.functional) if op.functional else None
    if base is None or base.way in ("refuse", "python") or not base.forms or not op.typed:
        return None
    source = surface.by_name[op.functional]
    if op.full == op.inplace:
        return Served(op, base, "inplace", source)
    # Of list results only those over lists: views into one tensor copy themselves into out= lists by their own rules.
    list_out = source.result == "std::vector<Tensor>" and op.name.startswith("_foreach_")
    if op.full == op.out and (list_out or all("Tensor" == r for r in _result_parts(source))):
        return Served(op, base, "out", source)
    return None


def _result_parts(op: Op) -> list[str]:
    return op.result.removeprefix("std::tuple<").removesuffix(">").split(", ")


def _refusal_rules(root: Path) -> list[dict[str, str]]:
    path = root / "codegen" / "refusals.yaml"
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else []
