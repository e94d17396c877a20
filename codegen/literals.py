"""Default values of schema arguments as C++: for the typed API's declarations and for the tagged default arrays."""

from __future__ import annotations

import ast
import re

from codegen.model import Arg, Op

_NAMED = {"Mean": "1", "Sum": "2", "long": "4", "contiguous_format": "0", "preserve_format": "1"}
_NAMED_CPP = {
    "Mean": "1",
    "long": "ScalarType::Long",
    "contiguous_format": "MemoryFormat::Contiguous",
    "preserve_format": "MemoryFormat::Preserve",
}


def c_string(text: str) -> str:
    """A C++ string literal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class LiteralError(Exception):
    """A default that no rule here covers: a new kind of default in upstream's yaml."""


def _numbers(text: str) -> list[str]:
    return [part.strip() for part in text.strip("[]").split(",") if part.strip()]


def _list_size(type_text: str) -> int:
    found = re.search(r"\[(\d+)\]", type_text)
    return int(found[1]) if found else 0


def cpp_default(arg: Arg) -> str:
    """The default argument in a C++ declaration, or '' without one."""
    text = arg.default
    if text is None:
        return ""
    kind = arg.type.removesuffix("?")
    if text == "None":
        return "{}" if arg.cpp != "GeneratorImpl*" else "nullptr"
    if text in ("True", "False"):
        return text.lower()
    if text in _NAMED_CPP:
        return _NAMED_CPP[text]
    if text.startswith(('"', "'")):
        return c_string(ast.literal_eval(text))
    if "[" in kind:
        if not text.startswith("["):
            text = f"[{', '.join([text] * max(1, _list_size(kind)))}]"
        values = [v.lower() if v in ("True", "False") else v for v in _numbers(text)]
        return f"{arg.cpp}({{{', '.join(values)}}})" if values else f"{arg.cpp}()"
    if re.fullmatch(r"-?\d+", text):
        return f"{text}.0" if kind == "float" else text
    if re.fullmatch(r"-?[\d.]+(e-?\d+)?", text):
        return text
    raise LiteralError(f"{arg.name}: no rule for the default '{text}' of {arg.type}")


class DefaultPool:
    """Arrays of tagged defaults, one a distinct list, with the number arrays they point to."""

    def __init__(self) -> None:
        self.arrays: dict[tuple[str, ...], str] = {}
        self.numbers: dict[tuple[str, tuple[str, ...]], str] = {}

    def array(self, op: Op) -> str:
        items = tuple(self._item(a) for a in op.args)
        if not items:
            return "nullptr"
        return self.arrays.setdefault(items, f"defaults_{len(self.arrays)}")

    def _item(self, arg: Arg) -> str:
        text, kind = arg.default, arg.type.removesuffix("?")
        if text is None or text == "None":
            return "Arg()"
        if text in ("True", "False"):
            if "[" in kind:
                text = f"[{text}]"
            else:
                return f"Arg::of({text.lower()})"
        if text in _NAMED:
            return f"Arg::of(int64_t{{{_NAMED[text]}}})"
        if text.startswith(('"', "'")):
            return f"Arg::of(std::string_view({c_string(ast.literal_eval(text))}))"
        if "[" in kind:
            if not text.startswith("["):
                text = f"[{', '.join([text] * max(1, _list_size(kind)))}]"
            element = "bool" if kind.startswith("bool") else "double" if kind.startswith("float") else "int64_t"
            values = tuple(v.lower() if element == "bool" else v for v in _numbers(text))
            tag = {"bool": "BoolList", "double": "DoubleList", "int64_t": "IntList"}[element]
            if not values:
                return f"Arg::list(Tag::{tag}, nullptr, 0)"
            name = self.numbers.setdefault((element, values), f"numbers_{len(self.numbers)}")
            return f"Arg::list(Tag::{tag}, {name}, {len(values)})"
        if kind == "float" or not re.fullmatch(r"-?\d+", text):
            return f"Arg::of(double{{{text}}})"
        return f"Arg::of(int64_t{{{text}}})"
