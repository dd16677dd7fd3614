"""`make bench`: every benchmark that this machine can run, one after the other."""

import importlib.util
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def has_gpu() -> bool:
    if importlib.util.find_spec("torch") is None:
        print("no torch, so no GPU benchmarks: the peers cuBLAS and cuDNN are called through it", file=sys.stderr)
        return False
    import torch

    return torch.cuda.is_available()


def main() -> int:
    names = ["compile.py", "cpu.py"]
    if has_gpu():
        names += ["gpu.py", "memory.py", "kernels.py", "launch.py", "tuned.py"]
        names += ["ops.py"] if importlib.util.find_spec("triton") else []
    failed = [name for name in names if subprocess.run([sys.executable, str(HERE / name)]).returncode]
    subprocess.run([sys.executable, str(HERE / "readme.py")], check=True)
    for name in failed:
        print(f"bench: {name} failed", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
