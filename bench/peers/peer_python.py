"""Where the peers' PyTorch lives: a virtual environment of its own, made when it is first needed."""
import pathlib
import subprocess
import sys
import venv

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DEFAULT_VENV = ROOT / "build" / "venv-peers"


def peer_python(directory=DEFAULT_VENV):
    """The interpreter of the environment; installs requirements.txt first if it is not there as it stands now."""
    directory = pathlib.Path(directory)
    python = directory / "bin" / "python"
    wanted = (HERE / "requirements.txt").read_text()
    mark = directory / "installed-requirements.txt"
    if not (mark.is_file() and mark.read_text() == wanted):
        print(f"installing PyTorch into {directory}, once: some minutes and 5.5 GB", file=sys.stderr)
        venv.create(directory, with_pip=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--requirement", HERE / "requirements.txt"]
        subprocess.run(pip, check=True)
        mark.write_text(wanted)
    return python
