"""Model -> files. Pure: each function returns {path under generated/: text}; the C++ itself stands in templates/."""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import jinja2
import yaml

from codegen import foreach_nodes, python_tables
from codegen.claims import DTYPES, Plan, Served
from codegen.derivatives import SHARDS as AUTOGRAD_SHARDS
from codegen.derivatives import Derivatives
from codegen.literals import DefaultPool, c_string, cpp_default
from codegen.model import Arg, Op

TEMPLATES = Path(__file__).resolve().parents[1] / "templates"
SCHEMAS = Path(__file__).resolve().parent / "schemas"
AUTOCAST = Path(__file__).resolve().parent / "autocast.yaml"
FUNCTION_SHARDS = 8
ADAPTER_SHARDS = 4

# Values of upstream's DispatchKey, for the lists of registered keys.
_KEY_VALUES = {
    "CPU": 49, "Meta": 64, "QuantizedCPU": 66, "QuantizedMeta": 81, "SparseCPU": 83, "SparseMeta": 98, "SparseCsrCPU": 100,
    "SparseCsrMeta": 115, "MkldnnCPU": 7, "NestedTensorCPU": 117, "NestedTensorMeta": 132, "ZeroTensor": 18,
    "CompositeImplicitAutograd": 151, "CompositeExplicitAutograd": 154, "CompositeExplicitAutogradNonFunctional": 155,
    "CompositeImplicitAutogradNestedTensor": 153,
}  # fmt: skip
_WAYS = {"slot": "Kernel", "raw": "Raw", "compose": "Compose"}


class Emitter:
    """Renders templates with the head that every generated file has."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.surface = plan.surface
        self.env = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES),
            undefined=jinja2.StrictUndefined,
            keep_trailing_newline=True,
            autoescape=False,
        )
        self.env.filters["quoted"] = c_string

    def render(self, template: str, **names: Any) -> str:
        return self.env.get_template(template).render(template=template, version=self.surface.version, **names)

    def files(self, more: dict[str, str]) -> dict[str, str]:
        """Everything below generated/; `more` are files that other generators made."""
        files = {"op_ids.h": self.render("op_ids.h.j2", ops=self.surface.ops)}
        files["op_table.cpp"] = self._op_table()
        files["extra_ops.cpp"] = self.render("extra_ops.cpp.j2", ops=extra_ops())
        files["autocast_table.cpp"] = self.render("autocast_table.cpp.j2", rows=self._autocast())
        files |= self._families() | self._typed_api() | self._bindings()
        files |= Derivatives(self.plan).files(self.render)
        files |= foreach_nodes.files(self.plan, self.render)
        files |= more
        files["manifest.json"] = self._manifest()
        sources = sorted(name for name in files if name.endswith(".cpp"))
        files["sources.cmake"] = self.render("sources.cmake.j2", sources=sources)
        return files

    # ---- the operator table ----------------------------------------------------------------------------------

    def _op_table(self) -> str:
        tag_values = self._tag_values()
        lists: dict[str, str] = {}
        rows = []
        for op in self.surface.ops:
            keys = ", ".join(str(_KEY_VALUES[k]) for k in op.keys)
            name = lists.setdefault(f"{keys}, 0" if keys else "0", f"keys_{len(lists)}")
            served = self.plan.served.get(op.full)
            rows.append(
                {
                    "name": op.name,
                    "overload": op.overload,
                    "ident": op.ident,
                    "schema": c_string(op.schema),
                    "reason": c_string(self.plan.refused[op.full]) if op.full in self.plan.refused else "nullptr",
                    "tags": hex(sum(1 << tag_values[t] for t in op.tags)),
                    "key_list": name,
                    "num_args": len(op.args),
                    "num_returns": op.num_returns,
                    "way": self._way(op),
                    "flags": self._flags(op, served),
                }
            )
        lacking = [op.ident for op in self.surface.ops if op.lacks_derivative and op.full in self.plan.served]
        return self.render("op_table.cpp.j2", ops=rows, key_lists=lists.items(), lacking=lacking)

    def _autocast(self) -> list[tuple[str, str]]:
        """The operators of autocast.yaml with their policies, as far as the surface has them."""
        names = {"lower_precision": "LowerPrecision", "fp32": "Fp32", "promote": "Promote"}
        data = yaml.load(AUTOCAST.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        rows = [(op, names[policy]) for policy, ops in data.items() for op in ops]
        return sorted((self.surface.by_name[op].ident, policy) for op, policy in rows if op in self.surface.by_name)

    def _way(self, op: Op) -> str:
        served = self.plan.served.get(op.full)
        return _WAYS[served.claim.way] if served else "Python" if op.full in self.plan.python else "Refuse"

    def _tag_values(self) -> dict[str, int]:
        """torch.Tag's values: upstream numbers the tags of tags.yaml in sorted order."""
        from torchgen.gen import parse_tags_yaml

        tags = parse_tags_yaml(str(self.surface.tree / "torchgen/packaged/ATen/native/tags.yaml"))
        return {tag: i for i, tag in enumerate(sorted(tags))}

    @staticmethod
    def _flags(op: Op, served: Served | None) -> int:
        flags = 1 if op.view else 0
        flags |= 2 if any(a.is_write for a in op.args) else 0
        flags |= 4 if op.kind == "inplace" else 8 if op.kind == "out" else 0
        flags |= 16 if op.implicit else 0
        flags |= 32 if served is not None and served.claim.conj else 0
        # Lists take their elements' own nodes.
        differentiable = op.has_derivative or (op.lacks_derivative and served is not None)
        flags |= 64 if differentiable and not op.name.startswith("_foreach_") else 0
        flags |= 128 if op.list_return else 0
        return flags

    # ---- kernels by family -----------------------------------------------------------------------------------

    def _families(self) -> dict[str, str]:
        by_family: dict[str, list[Served]] = defaultdict(list)
        for served in self.plan.served.values():
            by_family[served.claim.family].append(served)
        signatures = {s.op.signature for s in self.plan.served.values()}
        files = {}
        for family, members in sorted(by_family.items()):
            files[f"slots/{family}.h"] = self._slots(family, members)
            files[f"kernels/{family}.cpp"] = self._kernels(family, members)
        shards: dict[int, list[tuple[str, str]]] = defaultdict(list)
        for signature in sorted(signatures):
            shards[python_tables.shard_of(signature, ADAPTER_SHARDS)].append((adapter_name(signature), signature))
        for i in range(ADAPTER_SHARDS):
            files[f"adapters/adapters_{i}.cpp"] = self.render("adapters.cpp.j2", adapters=sorted(shards[i]))
        files["registry.cpp"] = self.render(
            "registry.cpp.j2",
            families=[*sorted(by_family), *(f"autograd_{i}" for i in range(AUTOGRAD_SHARDS)), "autograd_manual"],
        )
        return files

    def _slots(self, family: str, members: list[Served]) -> str:
        own = [s for s in members if s.form == "own"]

        def rows(way: str, slot: str = "") -> list[dict[str, str]]:
            chosen = [s.op for s in own if s.claim.way == way and s.claim.slot == slot]
            return [
                {
                    "ident": op.ident,
                    "result": op.result,
                    "params": parameters(op.args),
                    "more_params": "".join(f", {p}" for p in parameter_list(op.args)),
                }
                for op in chosen
            ]

        return self.render(
            "slots.h.j2",
            family=family,
            pointwise=rows("slot", "pointwise"),
            structured=rows("slot", "structured"),
            raw=rows("raw"),
        )

    def _kernels(self, family: str, members: list[Served]) -> str:
        # Functional forms first: derived ones call them.
        ordered = sorted(members, key=lambda s: (s.form != "own", s.op.full))
        kernels = [kernel_row(s) for s in ordered]
        includes = sorted({i for s in members for i in s.claim.include})
        adapters = sorted({k["adapter"] for k in kernels})
        return self.render("kernels.cpp.j2", family=family, kernels=kernels, includes=includes, adapters=adapters)

    # ---- the typed C++ API -----------------------------------------------------------------------------------

    def _typed_api(self) -> dict[str, str]:
        by_base: dict[str, list[Op]] = defaultdict(list)
        for served in self.plan.served.values():
            by_base[base_name(served.op.name)].append(served.op)
        return {
            f"ops/{base}.h": self.render("ops.h.j2", base=base, ops=[api_row(op, ops) for op in ops])
            for base, ops in sorted(by_base.items())
        }

    # ---- bindings --------------------------------------------------------------------------------------------

    def _bindings(self) -> dict[str, str]:
        pool = DefaultPool()
        tables = python_tables.tables(self.surface, pool)
        shards: dict[int, list[Any]] = defaultdict(list)
        for f in tables.functions:
            shards[python_tables.shard_of(f.ident, FUNCTION_SHARDS)].append(f)
        by_name = {name: items for items, name in pool.arrays.items()}
        numbers = {name: (element, values) for (element, values), name in pool.numbers.items()}
        files = {}
        for i in range(FUNCTION_SHARDS):
            functions = shards[i]
            used = sorted({s.defaults for f in functions for s in f.signatures if s.defaults in by_name})
            arrays = [(name, ", ".join(by_name[name])) for name in used]
            needed = [n for n in numbers if any(f" {n}," in text for _, text in arrays)]
            groups: dict[str, list[Any]] = defaultdict(list)
            for f in functions:
                groups[f.group].append(f)
            files[f"bindings/functions_{i}.cpp"] = self.render(
                "functions.cpp.j2",
                shard=i,
                functions=functions,
                numbers=[(n, numbers[n][0], ", ".join(numbers[n][1])) for n in needed],
                defaults=arrays,
                groups=sorted(groups.items()),
            )
        files["bindings/function_groups.cpp"] = self.render(
            "function_groups.cpp.j2", shards=FUNCTION_SHARDS, return_types=tables.return_types
        )
        return files

    # ---- the manifest ----------------------------------------------------------------------------------------

    def _manifest(self) -> str:
        ops = {}
        for op in self.surface.ops:
            served = self.plan.served.get(op.full)
            if op.full in self.plan.python:
                ops[op.full] = {"way": "python", "family": self.plan.python[op.full].family}
                continue
            if served is None:
                ops[op.full] = {"way": "refuse", "reason": self.plan.refused[op.full]}
                continue
            row: dict[str, Any] = {"way": served.claim.way, "family": served.claim.family}
            if served.claim.slot:
                row["way"] = served.claim.slot
            if served.form != "own":
                row["from"] = served.source.full
            if served.claim.dtypes:
                row["dtypes"] = [d for d, v in DTYPES.items() if served.claim.dtypes >> v & 1]
            ops[op.full] = row
        plan = self.plan
        head = {"upstream": self.surface.version, "served": len(plan.served)}
        head |= {"python": len(plan.python), "refused": len(plan.refused)}
        for op in self.surface.ops:  # a bump's report tells by it which schemas changed
            ops[op.full]["schema"] = f"{zlib.crc32(op.schema.encode()):08x}"
        lines = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in ops.items()]
        body = ",\n".join(lines)
        return f'{{"summary": {json.dumps(head)},\n "ops": {{\n{body}\n }}\n}}\n'


def extra_ops() -> list[dict[str, str]]:
    """The operators of codegen/schemas/*.yaml: each file has one reason for all of its schemas."""
    rows = []
    for path in sorted(SCHEMAS.glob("*.yaml")):
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        for schema in data["schemas"]:
            name, _, overload = schema.partition("(")[0].partition(".")
            rows.append({"name": name, "overload": overload, "schema": c_string(schema), "reason": c_string(data["reason"])})
    return rows


def base_name(name: str) -> str:
    """add for add_; dunders keep theirs (__iand__ with __and__)."""
    if name.startswith("__"):
        return name.strip("_").removeprefix("i") if name.startswith("__i") else name.strip("_")
    return name.rstrip("_") if name.endswith("_") else name


def adapter_name(signature: str) -> str:
    return f"adapter_{zlib.crc32(signature.encode()):08x}"


def parameter_list(args: tuple[Arg, ...]) -> list[str]:
    return [f"{a.cpp} {cpp_name(a)}" for a in args]


def parameters(args: tuple[Arg, ...]) -> str:
    return ", ".join(parameter_list(args))


_KEYWORDS = {"default", "new", "operator", "register", "this", "from", "int", "double", "float", "bool"} - {"from"}


def cpp_name(arg: Arg) -> str:
    return f"{arg.name}_" if arg.name in _KEYWORDS else arg.name


def returned(op: Op, targets: list[str]) -> str:
    """The expression that gives back the written arguments; where one is returned of several, it is self or out."""
    if op.result == "void":
        return ""
    return targets[0] if len(targets) == 1 or (targets and op.num_returns == 1) else f"{op.result}({', '.join(targets)})"


def bumped(op: Op, outs: list[str], written: list[str]) -> list[str]:
    """Whose version a write bumps: as upstream, the returned arguments, or all written ones where nothing is returned."""
    if op.kind in ("inplace", "out") or op.num_returns == 0:
        return outs or (written[: op.num_returns] if op.num_returns else written)
    return []


def kernel_row(served: Served) -> dict[str, Any]:
    """What templates/kernels.cpp.j2 needs to write one operator's kernel."""
    op, source, claim = served.op, served.source, served.claim
    names = [cpp_name(a) for a in op.args]
    outs = [cpp_name(a) for a in op.args if a.is_out]
    written = [cpp_name(a) for a in op.args if a.is_write]
    form = "functional" if served.form == "own" and op.kind == "functional" else op.kind
    body = claim.slot if claim.way == "slot" else claim.way
    if claim.way in ("raw", "compose") and served.form != "own":
        body = f"derived_{served.form}"
    # Names of the functional operator's arguments: what its shape function, expression or kernel takes.
    functional_names = [cpp_name(a) for a in source.args]
    out_form_names = set(names)
    passed = [n if n in out_form_names else "{}" for n in functional_names]
    inputs = [a for a in source.args if a.is_tensor]
    if body == "raw":
        call = f"native::{op.ident}({', '.join(names)})"
    elif body == "compose":
        call = claim.text.replace("$op", f"kOp_{op.ident}")
    else:
        call = f"k_{source.ident}({', '.join(passed)})"
    viewed = next((cpp_name(a) for a in op.args if a.is_tensor and not a.is_write), "") if op.view else ""
    # Detached values, and those read as another dtype, are no views to differentiate through, so they have no base.
    # Upstream tracks what in-place and out= forms write, and nothing that other schemas say they change.
    writes = bool(written) and op.kind in ("inplace", "out")
    tracked = (
        not op.implicit
        and not claim.versions
        and op.full not in ("detach", "view.dtype")
        and (writes or (op.view and op.kind == "functional"))
    )
    kind = "kImplicit" if op.implicit else "kBackendAndMeta" if claim.way != "raw" or claim.meta else "kBackend"
    gate = next((cpp_name(a) for a in source.args if a.cpp in ("const Tensor&", "TensorList")), "")
    results = source.num_returns
    take = ", ".join(f"outs.take({i})" for i in range(results))
    if form == "functional":
        structured_return = take if results == 1 else f"{op.result}({take})"
    else:
        structured_return = returned(op, outs or written)
    return {
        "ident": op.ident,
        "slot": source.ident,
        "name": f"k_{op.ident}",
        "result": op.result,
        "signature": op.signature,
        "params": parameters(op.args),
        "body": body,
        "form": form,
        "inputs": ", ".join(f"&{n}" if a.cpp == "const Tensor&" else f"&*{n}" for a, n in _named(inputs)),
        "packed": ", ".join(f"door::pack<{a.cpp}>({n})" for a, n in _named([a for a in source.args if not a.is_tensor]))
        or "Arg()",
        "dtypes": hex(claim.dtypes),
        "gate": gate if claim.dtypes else "",
        "given": ", ".join(f"&{n}" for n in (outs or written)),
        "outs_form": "Out" if form == "out" else "Inplace",
        "outs": outs[0] if outs else "",
        "out_names": outs,
        "single": len(outs) == 1,
        "target": written[0] if written else "",
        "returned": structured_return if body == "structured" else returned(op, outs or written),
        "more_names": "".join(f", {n}" for n in passed),
        "more_names_all": "".join(f", {n}" for n in names),
        "call": call,
        "tracked": tracked,
        "view_of": viewed if tracked and not written else "",
        "written": bumped(op, outs, written),
        "keep_result": "" if _returns_arguments(op) else "auto result = ",
        "returned_tracked": returned(op, outs or written) if _returns_arguments(op) else "result",
        "kind": kind,
        "adapter": adapter_name(op.signature),
    }


def _returns_arguments(op: Op) -> bool:
    return "const Tensor&" in op.result


def _named(args: list[Arg]) -> list[tuple[Arg, str]]:
    return [(a, cpp_name(a)) for a in args]


def api_row(op: Op, siblings: list[Op]) -> dict[str, str]:
    """A declaration with defaults; out= forms take their results first, as upstream's C++ API does.

    A default that would make a call fit a shorter overload as well is left out.
    """
    ordered = api_order(op)
    last_required = max((i for i, a in enumerate(ordered) if not cpp_default(a)), default=-1)
    shorter = [[a.cpp for a in api_order(s)] for s in siblings if s is not op and s.name == op.name]
    while last_required + 1 < len(ordered) and [a.cpp for a in ordered[: last_required + 1]] in shorter:
        last_required += 1
    declaration = []
    for i, a in enumerate(ordered):
        default = cpp_default(a) if i > last_required else ""
        declaration.append(f"{a.cpp} {cpp_name(a)}" + (f" = {default}" if default else ""))
    return {
        "schema": op.schema,
        "result": op.result,
        "cpp_name": f"{op.name}_out" if op.kind == "out" and not op.name.endswith("_out") else op.name,
        "declaration": ", ".join(declaration),
        "signature": op.signature,
        "ident": op.ident,
        "more_names": "".join(f", {cpp_name(a)}" for a in op.args),
    }


def api_order(op: Op) -> list[Arg]:
    return [a for a in op.args if a.is_out] + [a for a in op.args if not a.is_out]
