"""__torch_dispatch__: what classes and modes are told, what they may answer, and how calls go on below them."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten


class Recording(TorchDispatchMode):
    def __init__(self):
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def wrapper(policy=None, answer=None, **more):
    """A class without memory whose answers to operators are those of a function of the operator."""

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, data):
            return torch.Tensor._make_wrapper_subclass(
                cls, data.shape, dtype=data.dtype, dispatch_sizes_strides_policy=policy, **more
            )

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return answer(func) if answer else NotImplemented

    return Wrapper


def sub_tensor():
    class Sub(torch.Tensor):
        called = []

        @staticmethod
        def __new__(cls, elem):
            return torch.Tensor._make_subclass(cls, elem, elem.requires_grad)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            cls.called.append(func)
            return super().__torch_dispatch__(func, types, args, kwargs)

    return Sub


def test_super_runs_the_operator_below_autograd():
    cls = sub_tensor()
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    y = cls(x).neg()
    assert cls.called == [aten.neg.default]
    assert torch.equal(y.detach(), torch.tensor([-1.0, 2.0]))


def test_super_takes_a_list_of_arguments():
    class Sub(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return super().__torch_dispatch__(func, types, list(args), kwargs)

    x = torch.arange(3.0)
    assert torch.equal(torch.Tensor._make_subclass(Sub, x).neg(), -x)


@pytest.mark.parametrize(
    "policy,ask,name",
    [
        ("strides", lambda t: t.stride(), "aten.sym_stride"),
        ("strides", lambda t: t.is_contiguous(), "aten.is_contiguous"),
        ("strides", lambda t: t.contiguous(), "aten.is_contiguous"),
        ("sizes", lambda t: t.size(), "aten.sym_size"),
        ("sizes", lambda t: t.shape, "aten.sym_size"),
        ("sizes", lambda t: t.dim(), "aten.dim"),
        ("sizes", lambda t: t.numel(), "aten.sym_numel"),
        ("sizes", lambda t: t.storage_offset(), "aten.sym_storage_offset"),
    ],
)
def test_a_class_that_declines_its_geometry_is_an_error(policy, ask, name):
    t = wrapper(policy)(torch.ones(3, 2))
    with pytest.raises(TypeError, match=f"Multiple dispatch failed for 'torch.ops.{name}'"):
        ask(t)


def test_a_class_answers_its_geometry():
    answers = {
        aten.sym_stride.default: (4, 2),
        aten.sym_size.default: (5, 3),
        aten.dim.default: 2,
        aten.sym_numel.default: 15,
        aten.is_contiguous.default: False,
        aten.is_contiguous.memory_format: True,
    }
    t = wrapper("sizes", lambda f: answers.get(f, NotImplemented))(torch.ones(2, 2))
    assert t.stride() == (4, 2) and t.stride(-1) == 2
    assert t.shape == torch.Size((5, 3)) and t.size(0) == 5 and type(t.shape) is torch.Size
    assert (t.dim(), t.ndim, t.numel()) == (2, 2, 15)
    assert not t.is_contiguous() and t.is_contiguous(memory_format=torch.channels_last)
    with pytest.raises(IndexError, match="Dimension out of range"):
        t.size(2)


def test_none_stands_for_the_headers_geometry():
    t = wrapper("sizes", lambda f: 2 if f is aten.dim.default else None)(torch.ones(4, 2))
    assert (t.size(), t.stride(), t.numel(), t.is_contiguous()) == (torch.Size((4, 2)), (2, 1), 8, True)
    assert aten.sym_size.default(t) == [4, 2] and aten.is_non_overlapping_and_dense.default(t)


def test_an_answer_of_another_type_is_an_error():
    t = wrapper("sizes", lambda f: "two")(torch.ones(4, 2))
    with pytest.raises(TypeError, match="dim returned invalid type str, expected int"):
        t.dim()
    with pytest.raises(TypeError, match="is_contiguous returned invalid type str, expected bool"):
        t.is_contiguous()


def test_a_class_answers_its_device_and_layout():
    t = wrapper(answer=lambda f: torch.device("meta"), dispatch_device=True)(torch.ones(3))
    assert t.device.type == "meta" and t.is_meta and not t.is_cpu
    assert torch.ones(1).type_as(t).device.type == "meta"
    t = wrapper(answer=lambda f: torch.sparse_csr, dispatch_layout=True)(torch.ones(3))
    assert t.layout is torch.sparse_csr and t.is_sparse_csr


def test_extra_keys_of_a_wrapper():
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.NestedTensor)
    t = wrapper(answer=lambda f: None, _extra_dispatch_keys=keys)(torch.ones(3))
    assert torch._C._dispatch_keys(t).has(torch._C.DispatchKey.NestedTensor)


def test_a_wrappers_storage_has_no_memory():
    storage = wrapper(answer=lambda f: None)(torch.ones(3)).untyped_storage()
    assert storage.size() == 12
    for call in (storage.data_ptr, lambda: storage.resize_(0), lambda: storage.fill_(0)):
        with pytest.raises(RuntimeError, match=r"Attempted to call \w+\(\) on an invalid python storage"):
            call()


def test_a_modes_handler_is_no_classmethod():
    class Mode(TorchDispatchMode):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    x = torch.ones(2)
    with Mode(), pytest.raises(RuntimeError, match="classmethod is not supported, please make it a plain method"):
        x + x


def test_streams_reach_modes_and_come_back():
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            assert func is aten.record_stream.default
            assert (args[1].stream_id, args[1].device_index, args[1].device_type) == (1, 2, 3)

    x = torch.ones(2)
    with Mode():
        x.record_stream(torch.Stream(stream_id=1, device_index=2, device_type=3))
    with torch.library._scoped_library("tn_streams", "DEF") as lib:
        lib.define("one(Tensor self) -> Stream")
        lib.impl("one", lambda _: torch.Stream(stream_id=4, device_index=1, device_type=2), "CPU")
        made = torch.ops.tn_streams.one(torch.ones(1))
        assert isinstance(made, torch.Stream) and (made.stream_id, made.device_type) == (4, 2)


def test_a_subclass_of_another_class_is_not_remade():
    class Foo(torch.Tensor):
        pass

    class Bar(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return wrapper(answer=lambda f: None)(torch.ones(2))

    bar = torch.Tensor._make_subclass(Bar, torch.ones(2))
    for make in (lambda: torch.Tensor._make_subclass(Foo, bar), lambda: bar.as_subclass(Foo)):
        with pytest.raises(RuntimeError, match="subclass Foo but.*already associated to a python object of type"):
            make()


def test_making_a_subclass_is_not_told_to_modes():
    class Foo(torch.Tensor):
        pass

    with Recording() as mode:
        torch.Tensor._make_subclass(Foo, torch.ones(2).detach())
    assert mode.seen == ["aten.ones.default", "aten.detach.default"]


def test_lists_of_torch_ops_are_lists():
    assert type(aten.split.Tensor(torch.ones(4), 2)) is list
    assert type(torch.split(torch.ones(4), 2)) is tuple


def test_a_library_block_has_one_key():
    with torch.library._scoped_library("aten", "IMPL", "CPU") as lib:
        with pytest.raises(RuntimeError, match="inconsistent with the dispatch key"):
            lib.impl("sum", lambda x: x, "Conjugate")


def test_a_missing_kernel_is_reported_first():
    with torch.library._scoped_library("tn_missing", "DEF") as lib:
        lib.define("foo(Tensor x) -> Tensor")
        handle = torch._C._dispatch_find_schema_or_throw("tn_missing::foo", "")
        keys = []
        torch._C._dispatch_set_report_error_callback(handle, keys.append)
        with pytest.raises(NotImplementedError, match="tn_missing::foo"):
            torch.ops.tn_missing.foo(torch.ones(1))
        assert keys == ["CPU"]


def test_overrides_can_be_switched_on_again():
    class A(torch.Tensor):
        pass

    x = torch.randn(5).as_subclass(A)
    with torch._C.DisableTorchFunctionSubclass():
        on = torch._C._EnableTorchFunction()
        assert isinstance(torch.sum(x), A)
        del on
        assert not isinstance(torch.sum(x), A)


def test_function_modes_see_devices_and_what_is_refused():
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func.__name__ if func is not torch.device else "device"

    with Mode():
        assert torch.device("cpu") == "device"
        assert torch.sparse_coo_tensor(1, 1, 1) == "sparse_coo_tensor"
        assert torch._C._nn._parse_to("cpu") == "_parse_to"


def test_questions_to_the_header_are_no_calls():
    x = torch.ones(2, requires_grad=True)
    with Recording() as mode, torch._C._AutoDispatchBelowAutograd():
        assert not x.is_inference() and not x.is_complex() and x.is_floating_point() and not x.is_conj()
        assert not x.is_neg() and not x._is_zerotensor() and x.is_signed() and not torch.is_complex(x)
    assert mode.seen == []


def test_the_key_of_a_device():
    keys = {d: torch._C._dispatch_key_for_device(d) for d in ("cpu", "cuda", "meta", "privateuseone")}
    assert keys == {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta", "privateuseone": "PrivateUse1"}


def test_the_overload_that_arguments_fit():
    x = torch.ones(2)
    assert torch._C._jit_resolve_packet("aten::sum", x) == "default"
    assert torch._C._jit_resolve_packet("aten::sum", x, dim=[0]) == "dim_IntList"
    with pytest.raises(RuntimeError, match="failed to match any schema"):
        torch._C._jit_resolve_packet("aten::sum", "x")


@pytest.mark.parametrize(
    "schema,hint",
    [("a(int64_t x) -> Tensor", "Use `SymInt` or `int`"), ("a(double x) -> Tensor", "Use `float`")],
)
def test_names_of_types_in_cpp_get_a_hint(schema, hint):
    with torch.library._scoped_library("tn_hints", "FRAGMENT") as lib, pytest.raises(RuntimeError, match=hint):
        lib.define(schema)


def test_lists_of_optional_tensors_may_be_written():
    with torch.library._scoped_library("tn_lists", "FRAGMENT") as lib:
        lib.define("f(Tensor?(a!)[] x) -> ()")
        assert torch.ops.tn_lists.f.default._schema.is_mutable


def test_a_default_device_of_a_new_operator():
    with torch.library._scoped_library("tn_defaults", "FRAGMENT") as lib:
        lib.define(' f(Device d="cpu:0", float x=3.14) -> ()')
        schema = torch.ops.tn_defaults.f.default._schema
        assert [a.default_value for a in schema.arguments] == [torch.device("cpu:0"), 3.14]
