"""dtypes, devices, sizes, generators, storages and archives: the answers that upstream gives."""

import copy
import gc
import io
import pickle
import weakref
import zipfile

import pytest
import torch


def test_dtype_is_one_object():
    assert torch.float is torch.float32
    assert repr(torch.float32) == "torch.float32"
    for t in torch._C._get_all_dtypes():
        assert pickle.loads(pickle.dumps(t)) is t
        assert copy.deepcopy(t) is t


def test_dtype_parts():
    assert torch.complex64.to_real() is torch.float32
    assert torch.bfloat16.to_complex() is torch.complex64
    with pytest.raises(RuntimeError, match="Unknown Complex ScalarType for Char"):
        torch.int8.to_complex()


@pytest.mark.parametrize(
    "text,message",
    [
        ("cpu:-1", "Invalid device string: 'cpu:-1'"),
        ("cuda:01", "Invalid device string: 'cuda:01'"),
        ("", "Device string must not be empty"),
        ("foo", "Expected one of cpu, cuda, ipu, xpu, .* device type at start of device string: foo"),
    ],
)
def test_device_errors(text, message):
    with pytest.raises(RuntimeError, match=message):
        torch.device(text)


def test_device_hash_and_pickle():
    d = torch.device("cuda", 1)
    assert hash(d) == 65537 and hash(torch.device("meta")) == 917759
    assert pickle.loads(pickle.dumps(d)) == d


def test_size_is_closed():
    s = torch.Size([2, 3])
    for r in (s[0:1], s + (1,), (1,) + s, s * 2, 2 * s, pickle.loads(pickle.dumps(s))):
        assert type(r) is torch.Size
    assert s.numel() == 6
    with pytest.raises(TypeError, match=r"takes an iterable of 'int' \(item 0 is 'str'\)"):
        torch.Size(["a"])


def test_generator_state_round_trip():
    g = torch.Generator().manual_seed(5)
    state = g.get_state()
    assert state.shape == (5056,) and g.initial_seed() == 5
    h = torch.Generator()
    h.set_state(state)
    assert torch.equal(h.get_state(), state)
    with pytest.raises(RuntimeError, match="manual_seed expected a long, but got str"):
        g.manual_seed("a")


def test_storage_object_survives():
    t = torch.tensor([1.0, 2.0])
    s = t.untyped_storage()
    s.mark, address = 3, id(s)
    del s
    assert t.untyped_storage().mark == 3 and id(t.untyped_storage()) == address


def test_storage_weak_reference_dies():
    t = torch.tensor([1.0])
    w = t.untyped_storage()._weak_ref()
    assert not torch.UntypedStorage._expired(w)
    assert torch.UntypedStorage._new_with_weak_ptr(w) is t.untyped_storage()
    del t
    assert torch.UntypedStorage._expired(w)
    torch.UntypedStorage._free_weak_ref(w)


def test_shared_memory_keeps_the_values():
    t = torch.tensor([1.0, 2.0]).share_memory_()
    assert t.is_shared() and t.tolist() == [1.0, 2.0]
    fd, size = t.untyped_storage()._share_fd_cpu_()
    other = torch.UntypedStorage._new_shared_fd_cpu(fd, size)
    other[0] = 255
    assert list(t.untyped_storage()) == list(other)


@pytest.mark.parametrize("mmap", [False, True])
def test_save_and_load(tmp_path, mmap):
    path = tmp_path / "x.pt"
    torch.save({"a": torch.tensor([1.0, 2.0])}, path)
    with zipfile.ZipFile(path) as z:
        assert z.testzip() is None
    assert torch.load(path, mmap=mmap)["a"].tolist() == [1.0, 2.0]


def test_record_offsets_are_aligned():
    b = io.BytesIO()
    w = torch._C.PyTorchFileWriter(b)
    w.write_record("data.pkl", b"x", 1)
    w.write_record("data/0", b"abc", 3)
    w.write_end_of_file()
    r = torch._C.PyTorchFileReader(io.BytesIO(b.getvalue()))
    assert r.get_record_offset("data/0") % 64 == 0
    assert r.get_record_offset("data/0") == r.get_record_offset_no_read(r.get_record_header_offset("data/0"), "data/0", 3, 64)


@pytest.mark.parametrize("fix", [True, False])
def test_a_tensor_out_of_a_weak_reference_lives_on(fix):
    x = torch.tensor([1.0, 2.0])
    x.tag = "kept"
    ref, y = weakref.ref(x), torch.empty(2)
    y.grad = x
    del x
    x = ref()
    if fix:
        x._fix_weakref()
    del y
    gc.collect()
    assert x.tolist() == [1.0, 2.0] and x.tag == "kept" and x.sigmoid().shape == (2,)
    x.add_(1)
    assert ref() is x and x.tolist() == [2.0, 3.0]
