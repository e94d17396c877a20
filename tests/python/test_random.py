"""Random numbers through the public API: the rows recorded from upstream in rng_streams.tsv, and what rows can't say."""

import importlib.util
import pathlib
import zlib

import pytest
import torch

DATA = pathlib.Path(__file__).parents[1] / "data"
spec = importlib.util.spec_from_file_location("record_rng", DATA / "record_rng.py")
record = importlib.util.module_from_spec(spec)
spec.loader.exec_module(record)


def rows():
    lines = (DATA / "rng_streams.tsv").read_text().splitlines()
    table = [line.split("\t") for line in lines if not line.startswith("#")]
    by_op = {}
    for row in table:
        by_op.setdefault((row[0], row[1]), []).append(row)
    return by_op


ROWS = rows()
MADE_OF_DOUBLES = {
    "log_normal",
    "exponential",
    "cauchy",
    "geometric",
    "poisson",
    "binomial",
    "standard_gamma",
    "multinomial_once",
}


def same_libm():
    head = next(line for line in (DATA / "rng_streams.tsv").read_text().splitlines() if line.startswith("# libm "))
    return head.split()[-1] == record.libm()


SAME_LIBM = same_libm()


def numbers(text, kind):
    return () if text == "-" else tuple(kind(part) for part in text.split(","))


@pytest.mark.parametrize(("op", "dtype"), sorted(ROWS))
def test_matches_upstream(op, dtype):
    name = op.partition(":")[0]
    if not SAME_LIBM and (name in MADE_OF_DOUBLES or name == "normal"):
        pytest.skip("this machine's libm rounds otherwise than the recording one's, and upstream's numbers with it")
    for _, _, sizes, strides, args, seed, results, state, first in ROWS[op, dtype]:
        layout = (numbers(sizes, int), numbers(strides, int))
        integers = name.startswith(("random", "multinomial"))
        torch.manual_seed(int(seed))
        made = [record.call(op, getattr(torch, dtype), layout, numbers(args, int if integers else float)) for _ in range(2)]
        where = (op, dtype, layout, args, first)
        assert f"{zlib.crc32(record.data(made[1]), zlib.crc32(record.data(made[0]))):08x}" == results, where
        assert f"{zlib.crc32(bytes(torch.get_rng_state().tolist())):08x}" == state, where


# The first numbers after manual_seed(0), as upstream 2.13.0 prints them.
KNOWN = [
    (lambda: torch.rand(3), [0.49625658988952637, 0.7682217955589294, 0.08847743272781372]),
    (lambda: torch.randn(3), [1.5409960746765137, -0.293428897857666, -2.1787893772125244]),
    (lambda: torch.randn(17)[-3:], [0.946298360824585, -0.843676745891571, 0.9318265914916992]),
    (lambda: torch.randint(0, 10, (5,)), [4, 9, 3, 0, 3]),
    (lambda: torch.randperm(5), [4, 0, 1, 3, 2]),
    (lambda: torch.bernoulli(torch.full((5,), 0.5)), [1, 0, 1, 1, 1]),
    (lambda: torch.multinomial(torch.tensor([1.0, 2, 3, 4]), 3), [2, 1, 3]),
    (lambda: torch.normal(2.0, 3.0, (3,)), [6.622988224029541, 1.119713306427002, -4.536368370056152]),
    (lambda: torch.normal(torch.arange(3.0), torch.ones(3)), [1.5409960746765137, 0.706571102142334, -0.17878937721252441]),
    (lambda: torch.empty(3).exponential_(), [3.508326292037964, 1.2303847074508667, 0.615044116973877]),
    (lambda: torch.nn.functional.dropout(torch.ones(8), 0.5), [0, 0, 2, 0, 0, 0, 2, 2]),
    (
        lambda: torch.native_dropout(torch.ones(5), 0.25, True)[0],
        [0, 1.3333333730697632, 1.3333333730697632, 0, 1.3333333730697632],
    ),
    (
        lambda: torch.nn.functional.alpha_dropout(torch.ones(4), 0.5, True),
        [-0.7791939377784729, -0.7791939377784729, 1.6655988693237305, -0.7791939377784729],
    ),
    (lambda: torch.nn.functional.dropout2d(torch.ones(1, 4, 1, 1), 0.5).flatten(), [0, 0, 2, 0]),
    # A transposed tensor is filled in the order of its memory.
    (lambda: torch.rand_like(torch.ones(2, 2).t())[1], [0.7682217955589294, 0.13203048706054688]),
]


@pytest.mark.parametrize("case", range(len(KNOWN)))
def test_first_numbers(case):
    call, expected = KNOWN[case]
    torch.manual_seed(0)
    assert call().tolist() == expected


def test_generator_objects():
    a, b = torch.Generator(), torch.Generator()
    assert a.initial_seed() == 67280421310721
    assert torch.rand(5, generator=a).tolist() == torch.rand(5, generator=b).tolist()
    state = a.get_state()
    assert state.dtype == torch.uint8 and state.shape == (5056,)
    first = torch.randn(3, generator=a)  # leaves a normal in the cache, which is part of the state
    b.set_state(state)
    assert torch.randn(3, generator=b).equal(first)
    assert torch.equal(a.get_state(), b.get_state())
    with pytest.raises(RuntimeError, match="Expected a CPUGeneratorImplState of size 5056"):
        a.set_state(state[:10])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: torch.empty(3).normal_(0, -1), RuntimeError, "normal expects std >= 0.0, but found std -1"),
        (
            lambda: torch.empty(3, dtype=torch.int32).normal_(),
            NotImplementedError,
            "\"normal_kernel_cpu\" not implemented for 'Int'",
        ),
        (lambda: torch.empty(3).expand(2, 3).normal_(), RuntimeError, "more than one element of the written-to tensor"),
        (
            lambda: torch.empty(3).bernoulli_(torch.tensor([2.0, 1, 1])),
            RuntimeError,
            "Expected p_in >= 0 && p_in <= 1 to be true",
        ),
        (lambda: torch.empty(3, dtype=torch.int16).random_(0, 100000), RuntimeError, "to - 1 is out of bounds for short int"),
        (lambda: torch.randperm(3000, dtype=torch.float16), RuntimeError, "n cannot be greater than 2049 for Half type."),
        (lambda: torch.multinomial(torch.tensor([-1.0, 2]), 1), RuntimeError, "probability tensor contains either"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error) as raised:
        call()
    assert message in str(raised.value)
