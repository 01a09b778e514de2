#!/usr/bin/env python3
"""Programs as other people write them (tests/compat/programs): each is compiled against the built libraries under the names the field
links, run on a model, and must end with status 0.

  programs.py LIB_DIR MODEL [NAME...]
"""
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def one(name, lib, model, folder):
    exe = os.path.join(folder, name)
    source = os.path.join(HERE, "programs", name)
    cc = ["cc", "-std=c11", "-D_GNU_SOURCE"] if name.endswith(".c") else ["g++", "-std=c++17"]
    libs = ["-ldl"] if name == "dlopen.c" else ["-lllama", "-lggml", "-lggml-base", "-lggml-cpu"]
    build = subprocess.run([*cc, "-O1", "-Wall", "-Wextra", source, "-o", exe, f"-I{ROOT}/include", f"-L{lib}", f"-Wl,-rpath,{lib}", *libs, "-lm", "-lpthread"],
                           capture_output=True, text=True)
    if build.returncode or build.stderr:
        return name, build.stderr
    extra = [os.path.join(lib, "libllama.so")] if name == "dlopen.c" else []
    env = {**os.environ, "LAMINA_SIM": "2"} if name == "simple_backend.cpp" else os.environ
    run = subprocess.run([exe, model, *extra], capture_output=True, text=True, errors="replace", timeout=280, env=env)
    return name, "" if run.returncode == 0 else f"status {run.returncode}\n{run.stdout[-1500:]}{run.stderr[-1500:]}"


def main():
    lib, model, only = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
    names = sorted(n for n in os.listdir(os.path.join(HERE, "programs")) if not n.endswith(".hpp") and (not only or n in only))
    failed = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        for name, why in pool.map(lambda n: one(n, lib, model, folder), names):
            failed += bool(why)
            print(f"FAIL {name}\n{why}" if why else f"ok   {name}")
    print(f"{len(names) - failed} programs passed, {failed} failed")
    return failed != 0


sys.exit(main())
