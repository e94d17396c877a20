"""Turns codegen/surface/*.tsv into the constant tables behind every name of torch._C that only has to exist."""

import ast
import fnmatch
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

ROOT = Path(__file__).resolve().parent.parent
SURFACE = ROOT / "codegen" / "surface"

# Values of the C++ enum Stage; `load` names exist when the module object does.
STAGES = {
    "load": "kLoad",
    "_autograd_init": "kAutograd",
    "_c10d_init": "kC10d",
    "_rpc_init": "kRpc",
    "_dist_autograd_init": "kDistAutograd",
    "_initExtension": "kFunctions",
}
FOREIGN_BASES = {
    "builtins.object": "kObject",
    "pybind11_builtins.pybind11_object": "kPybindObject",
    "builtins.RuntimeError": "kRuntimeError",
    "builtins.Exception": "kException",
}
METACLASSES = {
    "builtins.type": "kType",
    "pybind11_builtins.pybind11_type": "kPybindType",
    "torch._opaque_base.OpaqueBaseMeta": "kOpaqueBaseMeta",
    "torch._C._distributed_c10d._ReduceOpMeta": "kReduceOpMeta",
}
# Every type has these already, so their presence needs no entry, and a refusing __repr__ would hide the real error.
OBJECT_MEMBERS = frozenset(dir(object)) | {"__getstate__", "__hash__"}


class SurfaceError(Exception):
    """A row of a data file is not what the table can hold; the text starts with file:line."""


@dataclass(frozen=True)
class Row:
    file: str
    line: int
    cells: dict

    def __getitem__(self, key: str) -> str:
        return self.cells[key]

    def error(self, text: str) -> SurfaceError:
        return SurfaceError(f"codegen/surface/{self.file}:{self.line}: {text}")


def read_rows(file: str) -> list[Row]:
    lines = (SURFACE / file).read_text().splitlines()
    header = lines[0].split("\t")
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        cells = line.split("\t")
        if len(cells) != len(header):
            raise SurfaceError(f"codegen/surface/{file}:{number}: expected {len(header)} cells, got {len(cells)}")
        rows.append(Row(file, number, dict(zip(header, cells, strict=True))))
    return rows


def c_string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


@dataclass(frozen=True)
class Literal:
    """A constant as the C++ table holds it."""

    kind: str
    integer: int = 0
    real: str = "0"
    text: str = ""

    @property
    def c_text(self) -> str:
        return c_string(self.text) if self.kind in ("kStr", "kEnum") else "nullptr"


@dataclass(frozen=True)
class Callable:
    """A function or a method: its name and what a call does."""

    name: str
    action: str
    argument: int
    module: int = 0
    stage: str = "kLoad"
    kind: str = "kMethod"

    @property
    def c_name(self) -> str:
        return c_string(self.name)


@dataclass(frozen=True)
class ClassEntry:
    path: str
    attribute: str
    spec_name: str
    qualname: str
    module: int
    parent: int
    stage: str
    base: str
    base_index: int
    metaclass: str
    flags: str
    reason: int
    first_member: int
    member_count: int
    first_value: int
    value_count: int


def in_order(rows: list[Row]) -> list[Row]:
    """Bases before classes and owners before nested classes, else the order of the file."""
    by_path = {row["class"]: row for row in rows}
    done: dict[str, Row] = {}

    def visit(row: Row) -> None:
        for needed in (row["bases"], row["class"].rpartition(".")[0]):
            if needed in by_path and needed not in done:
                visit(by_path[needed])
        done.setdefault(row["class"], row)

    for row in rows:
        visit(row)
    return list(done.values())


class Surface:
    """All tables, with indices resolved."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.reason_rules = [(row["pattern"], row["reason"]) for row in read_rows("reasons.tsv")]
        self.rules = {row["class"]: row["rule"] for row in read_rows("classes_special.tsv")}
        self.literals: list[Literal] = []
        module_rows = read_rows("modules.tsv")
        self.modules = [("", "kLoad", "torch._C")]
        self.modules += [(row["module"], STAGES[row["stage"]], row["name"]) for row in module_rows]
        self.module_index = {path: index for index, (path, _, _) in enumerate(self.modules)}
        class_rows = in_order([row for row in read_rows("classes.tsv") if self.rules.get(row["class"]) != "elsewhere"])
        self.class_index = {row["class"]: index for index, row in enumerate(class_rows)}
        self.answers = {row["name"]: self.literal(row, "value") for row in read_rows("answers.tsv")}
        self.flags = [(row, self.literal(row, "default")) for row in read_rows("flags.tsv")]
        self.getters = {row["getter"]: index for index, (row, _) in enumerate(self.flags) if row["getter"] != "-"}
        self.setters = {row["setter"]: index for index, (row, _) in enumerate(self.flags) if row["setter"] != "-"}
        self.used: set[str] = set()
        self.members: list[Callable] = []
        self.values: list[tuple[str, int]] = []
        self.functions = self.read_functions()
        self.classes = [self.class_entry(row, class_rows) for row in class_rows]
        self.constants = self.read_constants()
        self.nodes = [c_string(row["name"]) for row in read_rows("autograd_nodes.tsv")]
        self.node_reason = self.reason("_functions.x")
        unused = (set(self.answers) | set(self.getters) | set(self.setters)) - self.used
        if unused:
            raise SurfaceError(f"codegen/surface: answers.tsv and flags.tsv name unknown functions: {sorted(unused)}")

    def reason(self, path: str) -> int:
        for pattern, reason in self.reason_rules:
            if fnmatch.fnmatchcase(path, pattern):
                if reason not in self.reasons:
                    self.reasons.append(reason)
                return self.reasons.index(reason)
        raise SurfaceError(f"codegen/surface/reasons.tsv:1: no rule matches {path}")

    def literal(self, row: Row, column: str) -> int:
        """Index of the literal written in a cell: a Python constant, enum:<member> or instance:<class>."""
        text = row[column]
        if text.startswith("enum:"):
            owner, _, member = text.removeprefix("enum:").rpartition(".")
            value = Literal("kEnum", self.class_of(row, owner), text=member)
        elif text.startswith("instance:"):
            value = Literal("kInstance", self.class_of(row, text.removeprefix("instance:")))
        elif text.startswith("timedelta:"):
            value = Literal("kTimedelta", real=text.removeprefix("timedelta:"))
        else:
            value = self.python_literal(row, text)
        if value not in self.literals:
            self.literals.append(value)
        return self.literals.index(value)

    def class_of(self, row: Row, path: str) -> int:
        if path not in self.class_index:
            raise row.error(f"unknown class {path}")
        return self.class_index[path]

    @staticmethod
    def python_literal(row: Row, text: str) -> Literal:
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError) as error:
            raise row.error(f"expected a constant, got {text!r}") from error
        if value is None:
            return Literal("kNone")
        if isinstance(value, bool):
            return Literal("kBool", int(value))
        if isinstance(value, int):
            return Literal("kInt", value)
        if isinstance(value, float):
            return Literal("kFloat", real=repr(value))
        if isinstance(value, str):
            return Literal("kStr", text=value)
        if value == []:
            return Literal("kList")
        raise row.error(f"expected None, bool, int, float, str or [], got {text!r}")

    def action(self, path: str) -> tuple[str, int]:
        if path in self.answers:
            self.used.add(path)
            return "kAnswer", self.answers[path]
        if path in self.getters:
            self.used.add(path)
            return "kGet", self.getters[path]
        if path in self.setters:
            self.used.add(path)
            return "kSet", self.setters[path]
        return "kRefuse", self.reason(path)

    def read_functions(self) -> list[Callable]:
        functions = []
        for row in read_rows("functions.tsv"):
            prefix = row["module"] + "." if row["module"] else ""
            for name in row["names"].split(" "):
                action, argument = self.action(prefix + name)
                functions.append(Callable(name, action, argument, self.module_index[row["module"]], STAGES[row["stage"]]))
        return functions

    def fields(self, row: Row) -> list[str]:
        rule = self.rules.get(row["class"], "")
        return rule.removeprefix("record:").split(" ") if rule.startswith("record:") else []

    def add_members(self, row: Row) -> tuple[int, int]:
        first = len(self.members)
        fields = self.fields(row)
        self.members.extend(Callable(name, "kRefuse", 0, kind="kField") for name in fields)
        if "e" not in row["flags"] and row["members"]:
            for member in row["members"].split(" "):
                name, kind = member.rsplit(":", 1)
                if name not in OBJECT_MEMBERS and name not in fields:
                    action, argument = self.action(f"{row['class']}.{name}")
                    kinds = {"m": "kMethod", "s": "kStatic", "p": "kProperty", "q": "kStaticProperty"}
                    self.members.append(Callable(name, action, argument, kind=kinds[kind]))
        return first, len(self.members) - first

    def add_values(self, row: Row) -> tuple[int, int]:
        if not hasattr(self, "enum_rows"):
            self.enum_rows = read_rows("enums.tsv")
        first = len(self.values)
        self.values.extend((c_string(r["member"]), int(r["value"])) for r in self.enum_rows if r["enum"] == row["class"])
        return first, len(self.values) - first

    def class_entry(self, row: Row, class_rows: list[Row]) -> ClassEntry:
        path = row["class"]
        owner, _, attribute = path.rpartition(".")
        parent = self.class_index.get(owner, -1)
        if parent < 0 and owner not in self.module_index:
            raise row.error(f"unknown owner of {path}")
        if parent >= self.class_index[path]:
            raise row.error("a nested class must stand after its owner")
        base, base_index = FOREIGN_BASES.get(row["bases"]), -1
        if base is None:
            base, base_index = "kOwn", self.class_of(row, row["bases"])
            if base_index >= self.class_index[path]:
                raise row.error("a base must stand before the class")
        flags = ["kIsBase"] if "b" in row["flags"] else []
        flags += ["kIsEnum"] if "e" in row["flags"] else []
        flags += ["kIsArithmetic"] if row["members"] == "arithmetic" else []
        flags += ["kIsException"] if base in ("kRuntimeError", "kException") or self.is_exception(row, class_rows) else []
        flags += ["kIsConstructible"] if self.rules.get(path) == "constructible" else []
        flags += ["kIsRecord"] if self.fields(row) else []
        first_member, member_count = self.add_members(row)
        first_value, value_count = self.add_values(row)
        tail = row["qualname"].rsplit(".", 1)[-1]
        return ClassEntry(
            path=c_string(path),
            attribute=c_string(attribute),
            spec_name=c_string(f"{row['module']}.{tail}"),
            qualname=c_string(row["qualname"]) if "." in row["qualname"] else "nullptr",
            module=-1 if parent >= 0 else self.module_index[owner],
            parent=parent,
            stage=STAGES[row["stage"]],
            base=base,
            base_index=base_index,
            metaclass=METACLASSES[row["metaclass"]],
            flags=" | ".join(flags) or "0",
            reason=self.reason(path),
            first_member=first_member,
            member_count=member_count,
            first_value=first_value,
            value_count=value_count,
        )

    def is_exception(self, row: Row, class_rows: list[Row]) -> bool:
        base = row["bases"]
        while base in self.class_index:
            base = class_rows[self.class_index[base]]["bases"]
        return base in ("builtins.RuntimeError", "builtins.Exception")

    def read_constants(self) -> list[tuple[int, int, str, str, int]]:
        """(module or -1, owning class or -1, stage, quoted name, literal)"""
        constants = []
        for row in read_rows("constants.tsv"):
            prefix = {"enum": "enum:", "instance": "instance:", "timedelta": "timedelta:"}.get(row["type"], "")
            cell = Row(row.file, row.line, {"value": prefix + row["value"]})
            owner, _, name = row["name"].rpartition(".")
            constants.append(
                (
                    self.module_index.get(owner, -1),
                    self.class_index.get(owner, -1),
                    STAGES[row["stage"]],
                    c_string(name),
                    self.literal(cell, "value"),
                )
            )
        return constants

    def flag_entries(self) -> list[dict]:
        entries = []
        for row, default in self.flags:
            kind = row["type"].removeprefix("swap:")
            if kind not in ("bool", "int", "str", "any"):
                raise row.error(f"expected type bool, int, str or any, got {kind}")
            entries.append(
                {"type": "k" + kind.capitalize(), "swap": str(row["type"].startswith("swap:")).lower(), "literal": default}
            )
        return entries


def files() -> dict[str, str]:
    """The tables as {path under generated/: text}."""
    surface = Surface()
    environment = Environment(
        loader=FileSystemLoader(ROOT / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return {
        f"bindings/{name}.cpp": environment.get_template(f"{name}.cpp.j2").render(
            surface=surface,
            modules=[(c_string(path), stage, c_string(title)) for path, stage, title in surface.modules],
            reasons=[c_string(reason) for reason in surface.reasons],
            flags=surface.flag_entries(),
        )
        for name in ("names_functions", "names_classes")
    }
