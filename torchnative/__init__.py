"""torchnative: PyTorch for devices. `import torch` is the library; this package is what stands on top of it.

Importing it imports neither torch nor anything else heavy; its modules do when they are imported.
"""

__version__ = "0.1.0"
