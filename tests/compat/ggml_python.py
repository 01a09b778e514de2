#!/usr/bin/env python3
"""The bindings ggml-python 0.0.45 on our libggml: they look up 600 functions when they are imported, and then run their own tests. Of
the source package only the Python files are taken.

  ggml_python.py LIB_DIR SDIST [TEST...]      TEST: files of its folder tests; test_ggml.py and test_utils.py if none is given
"""
import os
import subprocess
import sys
import tarfile
import tempfile

# Three functions of upstream's internal header, asked for on import whether they are used or not. No public header declares them.
INTERNAL = ["ggml_backend_buffer_init", "ggml_backend_buffer_copy_tensor", "ggml_backend_multi_buffer_alloc_buffer"]


def main():
    lib, sdist = os.path.abspath(sys.argv[1]), sys.argv[2]
    tests = sys.argv[3:] or ["test_ggml.py", "test_utils.py"]
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(sdist) as tar:
            top = tar.getnames()[0].split("/")[0]
            keep = [m for m in tar.getmembers() if m.name.endswith(".py") and m.name.split("/")[1] in ("ggml", "tests")]
            tar.extractall(folder, members=keep)
        root = os.path.join(folder, top)
        libs = os.path.join(root, "ggml", "lib")
        os.makedirs(libs)
        for name in ("libggml.so", "libggml-base.so", "libggml-cpu.so"):
            os.symlink(os.path.join(lib, name), os.path.join(libs, name))
        shim = os.path.join(folder, "shim.c")
        with open(shim, "w") as f:
            f.writelines(f"void *{name}(void);\nvoid *{name}(void) {{ return 0; }}\n" for name in INTERNAL)
        # One of the names that it looks for beside libggml.
        subprocess.run(["cc", "-shared", "-fPIC", shim, "-o", os.path.join(libs, "libggml-blas.so")], check=True)
        return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(os.path.join("tests", t) for t in tests)],
                              cwd=root).returncode


sys.exit(main())
