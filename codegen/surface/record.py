"""Records the names of upstream's torch._C as the .tsv files beside this script.

Run with an interpreter that has upstream's torch: `python codegen/surface/record.py`. Nothing here runs in a build.
The stage of a name is the C function that creates it: `load`, or one of the late initialisers in STAGES.
"""

import datetime
import sys
import types
from pathlib import Path

HERE = Path(__file__).resolve().parent
STAGES = ("_initExtension", "_c10d_init", "_rpc_init", "_dist_autograd_init", "_autograd_init")
# Python installs these stand-ins on torch._C itself where CUDA and XPU are absent.
PYTHON_STAGE = "python"
PLUMBING = {"__doc__", "__file__", "__loader__", "__name__", "__package__", "__spec__", "__module__", "__weakref__", "__dict__"}
# Served by the binding of tensors and their companions; only their existence is known here.
ELSEWHERE = {
    "torch._C.TensorBase",
    "torch._C._TensorBase",
    "torch._C._TensorMeta",
    "torch._C._VariableFunctionsClass",
    "torch._C._VariableFunctions",
    "torch._C._return_types",
    "torch._C.Size",
    "torch._C.device",
    "torch._C.dtype",
    "torch._C.layout",
    "torch._C.memory_format",
    "torch._C.qscheme",
    "torch._C.finfo",
    "torch._C.iinfo",
    "torch._C.Generator",
    "torch._C._NodeBase",
    "torch._C._NodeIter",
}

snapshots = []


def walk(module, path, seen, visited):
    visited.add(id(module))
    for name in sorted(vars(module)):
        if name in PLUMBING:
            continue
        value = vars(module)[name]
        if isinstance(value, types.ModuleType):
            if value.__name__.startswith("torch._C") and id(value) not in visited:
                seen[f"{path}.{name}"] = value
                walk(value, f"{path}.{name}", seen, visited)
        else:
            seen[f"{path}.{name}"] = value
    return seen


def snapshot(stage):
    root = sys.modules["torch._C"]
    visited = set()
    seen = walk(root, "torch._C", {}, visited)
    for key in [k for k in sys.modules if k.startswith("torch._C.")]:
        if id(sys.modules[key]) not in visited:
            seen[key] = sys.modules[key]
            walk(sys.modules[key], key, seen, visited)
    snapshots.append((stage, seen))


def profile(_frame, event, arg):
    name = arg.__name__ if type(arg) is types.BuiltinFunctionType else ""
    if event in ("c_call", "c_return") and name in STAGES:
        snapshot(PYTHON_STAGE if event == "c_call" else name)
    elif not snapshots and "torch._C" in sys.modules and hasattr(sys.modules["torch._C"], "_initExtension"):
        snapshot("load")


def record():
    """Returns [(path, stage, value)] in path order."""
    sys.setprofile(profile)
    import torch  # noqa: F401

    sys.setprofile(None)
    snapshot(PYTHON_STAGE)
    names, previous = {}, {}
    for stage, seen in snapshots:
        for path, value in seen.items():
            if path not in previous:
                names[path] = (stage, value)
        previous = {**previous, **seen}
    rows = []
    for path, (stage, value) in names.items():
        # _initExtension imports torch.cuda, whose Python adds dummies: only _functions is C's there.
        if stage == "_initExtension" and not path.startswith("torch._C._functions"):
            stage = PYTHON_STAGE
        if stage != PYTHON_STAGE:
            rows.append((path, stage, value))
    return sorted(rows, key=lambda row: row[0])


def is_enum(cls):
    return isinstance(cls, type) and isinstance(vars(cls).get("__entries"), dict)


def member_kind(value):
    kind = type(value).__name__
    if isinstance(value, type):
        return "class"
    if kind in ("instancemethod", "method_descriptor", "wrapper_descriptor", "classmethod_descriptor", "slot wrapper"):
        return "m"
    if kind in ("staticmethod", "builtin_function_or_method"):
        return "s"
    if kind in ("property", "getset_descriptor", "member_descriptor"):
        return "p"
    if kind == "pybind11_static_property":
        return "q"
    return "c"


def nested(path, stage, cls, out):
    out.append((path, stage, cls))
    for name, value in vars(cls).items():
        # A class attribute that is a class is nested; the metaclass of a tensor type is none of ours.
        if isinstance(value, type) and name not in PLUMBING and value is not cls:
            nested(f"{path}.{name}", stage, value, out)


def collect(rows):
    """Splits the rows in (modules, functions, classes, constants, aliases)."""
    modules, functions, classes, constants, aliases, owner = [], [], [], [], [], {}
    for path, stage, value in rows:
        if path in ELSEWHERE or path.startswith("torch._C._return_types."):
            continue
        if isinstance(value, types.ModuleType):
            modules.append((path, stage, value.__name__))
        elif isinstance(value, type):
            if id(value) in owner:
                aliases.append((path, stage, owner[id(value)]))
                continue
            owner[id(value)] = path
            found = []
            nested(path, stage, value, found)
            for item in found:
                owner.setdefault(id(item[2]), item[0])
            classes.extend(found)
        elif isinstance(value, types.BuiltinFunctionType):
            functions.append((path, stage))
        else:
            constants.append((path, stage, value))
    return modules, functions, classes, constants, aliases, owner


def write(name, header, rows):
    lines = ["\t".join(header)] + ["\t".join(str(cell) for cell in row) for row in rows]
    (HERE / name).write_text("\n".join(lines) + "\n")
    print(name, len(rows))


def short(path):
    return path.removeprefix("torch._C.")


def type_path(cls, owner):
    if id(cls) in owner:
        return short(owner[id(cls)])
    return f"{cls.__module__}.{cls.__qualname__}"


def literal(value):
    if isinstance(value, datetime.timedelta):
        return ("timedelta", repr(value.total_seconds()))
    if type(value) in (bool, int, float, str, type(None)):
        return (type(value).__name__, repr(value))
    return None


def main():
    modules, functions, classes, constants, aliases, owner = collect(record())
    write("modules.tsv", ("module", "stage", "name"), [(short(p), s, name) for p, s, name in modules])
    grouped = {}
    for path, stage in functions:
        parent, name = path.rsplit(".", 1)
        grouped.setdefault((parent, stage), []).append(name)
    write(
        "functions.tsv",
        ("module", "stage", "names"),
        [(short(p) if p != "torch._C" else "", s, " ".join(n)) for (p, s), n in sorted(grouped.items())],
    )

    class_rows, enum_rows, const_rows = [], [], []
    depth = {short(path): len(cls.__mro__) for path, _, cls in classes}
    for path, stage, cls in classes:
        members = []
        if not is_enum(cls):
            for name, value in vars(cls).items():
                kind = member_kind(value)
                if name in PLUMBING or kind == "class" or name in ("__new__", "__init__", "_pybind11_conduit_v1_"):
                    continue
                if isinstance(value, (types.FunctionType, property)) and hasattr(getattr(value, "fget", value), "__code__"):
                    continue  # added by upstream's Python
                if kind == "c":
                    if name in ("__hash__", "__doc__") or "pybind11_module_local" in name:
                        continue
                    const_rows.append((f"{short(path)}.{name}", stage, *describe(value, owner)))
                else:
                    members.append(f"{name}:{kind}")
        else:
            arith = "__and__" in vars(cls)
            members = ["arithmetic" if arith else "plain"]
            for name, value in vars(cls)["__entries"].items():
                enum_rows.append((short(path), name, int(value[0])))
            # export_values() also puts the members on the enclosing scope.
        flags = "".join(
            (
                "p" if any(b.__name__ == "pybind11_object" for b in cls.__mro__) else "",
                "b" if cls.__flags__ & (1 << 10) else "",
                "e" if is_enum(cls) else "",
            )
        )
        class_rows.append(
            (
                short(path),
                stage,
                cls.__module__,
                cls.__qualname__,
                ",".join(type_path(b, owner) for b in cls.__bases__),
                type_path(type(cls), owner),
                flags,
                " ".join(sorted(members)),
            )
        )
    # Bases first, then path: the table can be read in one pass.
    nodes = sorted(row[3] for row in class_rows if row[0].startswith("_functions."))
    class_rows = [row for row in class_rows if not row[0].startswith("_functions.")]
    write("autograd_nodes.tsv", ("name",), [(name,) for name in nodes])
    class_rows.sort(key=lambda r: (depth[r[0]], r[0].count("."), r[0]))
    write("classes.tsv", ("class", "stage", "module", "qualname", "bases", "metaclass", "flags", "members"), class_rows)
    write("enums.tsv", ("enum", "member", "value"), sorted(enum_rows, key=lambda r: r[0]))
    for path, stage, value in constants:
        # Addresses of C functions, an internal capsule, and objects that other bindings make.
        if "._torchinductor_" in path:
            value = 0
        elif type(value).__name__ in ("PyCapsule", "DispatchKeySet", "Generator"):
            continue
        const_rows.append((short(path), stage, *describe(value, owner)))
    write("constants.tsv", ("name", "stage", "type", "value"), sorted(const_rows))
    if aliases:
        raise SystemExit(f"a class has two names, which the table cannot say: {aliases}")


def describe(value, owner):
    got = literal(value)
    if got:
        return got
    cls = type(value)
    if is_enum(cls):
        return ("enum", f"{type_path(cls, owner)}.{value.name}")
    return ("instance", type_path(cls, owner))


if __name__ == "__main__":
    main()
