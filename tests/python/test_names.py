"""Compares the installed torch._C with the names recorded from upstream (codegen/surface/*.tsv)."""

import ast
import datetime
import pickle
import types
from pathlib import Path

import pytest
import torch

SURFACE = Path(__file__).resolve().parents[2] / "codegen" / "surface"
ABSENT = [
    "_cudart",
    "_cuda_isInBadFork",
    "_CudaDeviceProperties",
    "_cuda_exchangeDevice",
    "_cuda_maybeExchangeDevice",
    "_nvtx",
    "_cudnn",
    "_cusparselt",
    "_xpu_isInBadFork",
    "_CUDAGreenContext",
    "_cuda_getDeviceCount",
    "_distributed_c10d.ProcessGroupNCCL",
    "_distributed_c10d.ProcessGroupMPI",
    "_distributed_c10d.ProcessGroupUCC",
    "_distributed_c10d.ProcessGroupXCCL",
]


def rows(file):
    lines = (SURFACE / file).read_text().splitlines()
    header = lines[0].split("\t")
    return [dict(zip(header, line.split("\t"), strict=True)) for line in lines[1:]]


def find(path):
    value = torch._C
    for part in path.split(".") if path else []:
        value = getattr(value, part)
    return value


def missing(paths):
    absent = []
    for path in paths:
        try:
            find(path)
        except AttributeError:
            absent.append(path)
    return absent


def function_paths():
    for row in rows("functions.tsv"):
        for name in row["names"].split(" "):
            yield f"{row['module']}.{name}" if row["module"] else name


def test_submodules_exist_with_their_names():
    for row in rows("modules.tsv"):
        module = find(row["module"])
        assert isinstance(module, types.ModuleType), row["module"]
        assert module.__name__ == row["name"]
        owner, _, name = row["module"].rpartition(".")
        assert name in dir(find(owner))


def test_no_function_is_missing():
    assert missing(function_paths()) == []


def test_functions_are_builtins():
    wrong = [path for path in function_paths() if not isinstance(find(path), types.BuiltinFunctionType)]
    assert wrong == []


@pytest.mark.parametrize("path", ABSENT)
def test_names_that_upstream_lacks_on_cpu_are_absent(path):
    assert missing([path]) == [path]


def class_facts(row):
    cls = find(row["class"])
    return isinstance(cls, type), cls.__qualname__, cls.__module__


# Taken while the tests are collected: torch.distributed.tensor gives some classes another module once it is imported.
CLASS_FACTS = {row["class"]: class_facts(row) for row in rows("classes.tsv")}


def test_classes_exist_with_their_names():
    wrong = []
    for row in rows("classes.tsv"):
        found = CLASS_FACTS[row["class"]]
        if found != (True, row["qualname"], row["module"]):
            wrong.append((row["class"], found))
    assert wrong == []


def test_class_members_exist():
    absent = []
    for row in rows("classes.tsv"):
        if "e" in row["flags"] or not row["members"]:
            continue
        names = [member.rsplit(":", 1)[0] for member in row["members"].split(" ")]
        absent += missing(f"{row['class']}.{name}" for name in names)
    assert absent == []


def test_class_bases():
    wrong = []
    for row in rows("classes.tsv"):
        bases = [base for base in row["bases"].split(",") if not base.startswith(("builtins.", "pybind11_builtins."))]
        if not all(issubclass(find(row["class"]), find(base)) for base in bases):
            wrong.append(row["class"])
    assert wrong == []


def test_classes_accept_or_refuse_subclasses_as_upstream():
    wrong = []
    for row in rows("classes.tsv"):
        cls = find(row["class"])
        if bool(cls.__flags__ & (1 << 10)) != ("b" in row["flags"]):
            wrong.append(row["class"])
    assert wrong == []


ENUMS = sorted({row["enum"] for row in rows("enums.tsv")})


@pytest.mark.parametrize("path", ENUMS)
def test_enum(path):
    cls = find(path)
    expected = [(row["member"], int(row["value"])) for row in rows("enums.tsv") if row["enum"] == path]
    assert [(name, int(member)) for name, member in cls.__members__.items()] == expected
    name, value = expected[0]
    member = getattr(cls, name)
    first = next(n for n, v in expected if v == value)
    assert (member.name, member.value, hash(member)) == (first, value, hash(value))
    assert repr(member) == f"<{cls.__name__}.{first}: {value}>"
    assert str(member) == f"{cls.__name__}.{first}"
    assert member == cls(value) and not member != cls(value) and member != "x"
    assert cls.__index__(member) == value
    assert member.__reduce_ex__(2)[1:3] == ((cls,), value)


def test_enum_pickles_by_value():
    member = torch._C.DispatchKey.CPU
    assert pickle.loads(pickle.dumps(member)) == member


@pytest.mark.parametrize("row", rows("constants.tsv"), ids=lambda row: row["name"])
def test_constant(row):
    value = find(row["name"])
    if row["type"] == "enum":
        assert value == find(row["value"])
    elif row["type"] == "instance":
        assert type(value) is find(row["value"])
    elif row["type"] == "timedelta":
        assert value == datetime.timedelta(seconds=float(row["value"]))
    elif "._torchinductor_" not in row["name"]:
        assert value == ast.literal_eval(row["value"]) and type(value).__name__ == row["type"]


@pytest.mark.parametrize(
    "row", [r for r in rows("flags.tsv") if "-" not in (r["getter"], r["setter"])], ids=lambda row: row["getter"]
)
def test_flag_remembers(row):
    getter, setter = find(row["getter"]), find(row["setter"])
    before = getter()
    if not row["default"].startswith("enum:"):
        assert type(before) is type(ast.literal_eval(row["default"]))
    other = {"bool": lambda: not before, "int": lambda: before + 1, "str": lambda: before + "x"}
    changed = other.get(row["type"].removeprefix("swap:"), lambda: before)()
    answer = setter(changed)
    try:
        assert getter() == changed
        if row["type"].startswith("swap:"):
            assert answer == before
    finally:
        setter(before)


@pytest.mark.parametrize("path, word", [("Graph", "construction"), ("_jit_pass_inline", "call")])
def test_refusal_names_itself_and_the_reason(path, word):
    with pytest.raises(NotImplementedError) as caught:
        find(path)()
    assert str(caught.value) == (
        f"torchnative: torch._C.{path} refused: {word}; reason: TorchScript is not part of torchnative"
    )


def test_only_a_callable_frame_hook_is_refused():
    set_eval_frame = torch._C._dynamo.eval_frame.set_eval_frame
    before = set_eval_frame(None)
    assert set_eval_frame(False) is None
    assert set_eval_frame(before) is False
    with pytest.raises(NotImplementedError, match="set_eval_frame refused: a callable; reason: torch.compile"):
        set_eval_frame(lambda *args: None)
    with pytest.raises(TypeError, match="expected a callable"):
        set_eval_frame(3)


def test_docstring_is_added_once():
    target = torch._C._jit_pass_inline
    assert target.__doc__ is None
    assert torch._C._add_docstr(target, "text") is target
    assert target.__doc__ == "text"
    with pytest.raises(RuntimeError, match="function '_jit_pass_inline' already has a docstring"):
        torch._C._add_docstr(target, "text")
    with pytest.raises(TypeError, match="don't know how to add docstring to type 'int'"):
        torch._C._add_docstr(3, "text")


def test_float32_precision_follows_its_parents():
    get, put = torch._C._get_fp32_precision_getter, torch._C._set_fp32_precision_setter
    assert (get("cuda", "conv"), get("cuda", "matmul"), get("mkldnn", "all")) == ("tf32", "none", "none")
    put("generic", "all", "ieee")
    assert get("cuda", "conv") == get("mkldnn", "rnn") == "ieee"
    put("generic", "all", "none")
    assert get("cuda", "conv") == "tf32"
    with pytest.raises(RuntimeError, match="does not support precision 'bf16'"):
        put("cuda", "all", "bf16")


def test_placements_are_values():
    placements = torch._C._distributed
    assert placements.Shard(1) == placements.Shard(1) != placements.Shard(2)
    assert placements.Shard(1) != placements.StridedShard(1, split_factor=2)
    assert placements.Partial().reduce_op == "sum"
    assert not placements.StridedShard(1, split_factor=2).is_shard()
    assert pickle.loads(pickle.dumps(placements.Shard(3))).dim == 3
