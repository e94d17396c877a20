"""Each part of the package imports by itself in a fresh interpreter, also without numpy, and quickly enough to be used."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

MODULES = [
    "torch", "torch.nn", "torch.nn.functional", "torch.nn.utils", "torch.optim", "torch.optim.lr_scheduler",
    "torch.autograd", "torch.autograd.functional", "torch.utils.data", "torch.utils.checkpoint", "torch.utils._pytree",
    "torch.testing", "torch.fx", "torch.library", "torch.distributions", "torch.linalg", "torch.fft", "torch.special",
    "torch.sparse", "torch.nested", "torch.func", "torch.export", "torch.jit", "torch.cuda", "torch.mps", "torch.amp",
    "torch.ao.quantization", "torch.multiprocessing", "torch.distributed", "torch.distributed.tensor", "torch.onnx",
    "torch.profiler", "torch.compiler", "torch.package", "torch.hub", "torch._dynamo", "torch._refs", "torch._prims",
    "torch._decomp", "torch._subclasses.fake_tensor", "functorch", "torchgen.model",
    "torch.testing._internal.common_methods_invocations", "transformers",
]  # fmt: skip
TIMEOUT = 120


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("module", MODULES)
def test_imports_alone(module: str) -> None:
    if importlib.util.find_spec(module.partition(".")[0]) is None:
        pytest.skip(f"{module} is not installed")
    run(f"import {module}")


def test_imports_and_computes_without_numpy() -> None:
    code = "import sys; sys.modules['numpy'] = None; import torch; print(torch.relu(torch.tensor([-1., 2.])))"
    assert run(code) == "tensor([0., 2.])\n"


def test_numpy_refused_where_it_is_missing() -> None:
    code = (
        "import sys; sys.modules['numpy'] = None; import torch\n"
        "try: torch.ones(2).numpy()\n"
        "except RuntimeError as error: print(error)\n"
    )
    assert "Numpy is not available" in run(code)


def test_torch_is_this_core() -> None:
    """The tests must not meet an installed upstream."""
    assert run("import torch; print(hasattr(torch._C, '_torchnative'))") == "True\n"
