"""Builds libcrosstalk.so with CMake and puts it into the package.

CMAKE_ARGS           options for CMake, e.g. "-DCT_WITH_CUDA=OFF"
CROSSTALK_BUILD_DIR  a CMake build folder of this source tree to build in; default build/cmake
"""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent


def version() -> str:
    text = (SOURCE / "CMakeLists.txt").read_text()
    return re.search(r"project\(crosstalk VERSION ([0-9.]+)", text)[1]


def build_library(folder: Path) -> Path:
    """libcrosstalk.so, built in a folder; what is up to date there is kept."""
    if not (folder / "CMakeCache.txt").exists():
        options = ["-DCMAKE_BUILD_TYPE=Release", "-DCT_BUILD_TESTS=OFF", "-DCT_BUILD_BENCH=OFF"]
        if shutil.which("ninja"):
            options += ["-G", "Ninja"]
        given = shlex.split(os.environ.get("CMAKE_ARGS", ""))
        subprocess.run(["cmake", "-S", SOURCE, "-B", folder, *options, *given], check=True)
    subprocess.run(["cmake", "--build", folder, "--parallel", "--target", "crosstalk_shared"], check=True)
    return folder / "libcrosstalk.so"


class BuildPy(build_py):
    """Also builds the library, unless the package is installed where it lies (pip install -e)."""

    def run(self):
        super().run()
        if getattr(self, "editable_mode", False):
            return
        folder = os.environ.get("CROSSTALK_BUILD_DIR")
        library = build_library(Path(folder).resolve() if folder else HERE / "build" / "cmake")
        shutil.copy(library, Path(self.build_lib) / "crosstalk" / "libcrosstalk.so")


class Wheel(bdist_wheel):
    """The library is called through ctypes: of this machine's kind, but of any Python 3."""

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


class Binary(Distribution):
    def has_ext_modules(self):
        return True


setup(version=version(), distclass=Binary, cmdclass={"build_py": BuildPy, "bdist_wheel": Wheel})
