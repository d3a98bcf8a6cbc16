"""The Vagrantfile is right by Vagrant's own word."""

import os
import shutil
import subprocess
from pathlib import Path

VAGRANT = Path(__file__).parents[2] / "vagrant"


def test_vagrant_validates_it(tmp_path: Path) -> None:
    assert shutil.which("vagrant"), "vagrant is missing: apt-get install vagrant vagrant-libvirt"
    own = {
        "VAGRANT_CWD": str(VAGRANT),
        "VAGRANT_HOME": str(tmp_path),
        "VAGRANT_DOTFILE_PATH": str(tmp_path / "data"),
    }
    result = subprocess.run(["vagrant", "validate"], env=os.environ | own, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
