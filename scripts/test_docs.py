#!/usr/bin/env python3
"""Compiles and runs every ```c run block of docs/*.md against build/lib and compares what it prints with the ```text block after it."""
import glob, os, re, subprocess, sys, tempfile

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
lib = os.path.abspath(os.path.join(root, "build/lib"))
passed = failed = 0
with tempfile.TemporaryDirectory() as tmp:
    for page in sorted(glob.glob(os.path.join(root, "docs/*.md"))):
        blocks = re.findall(r"```c run\n(.*?)```\n```text\n(.*?)```", open(page).read(), re.S)
        for i, (code, want) in enumerate(blocks):
            src, exe = os.path.join(tmp, "x.c"), os.path.join(tmp, "x")
            open(src, "w").write("#include <stdio.h>\n" + code)
            cc = subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", src, "-o", exe, f"-I{root}/include", f"-L{lib}", f"-Wl,-rpath,{lib}",
                                 "-lllama", "-lggml", "-lm"], capture_output=True, text=True)
            got = cc.stderr if cc.returncode else subprocess.run([exe], capture_output=True, text=True, timeout=60).stdout
            ok = cc.returncode == 0 and got == want and not cc.stderr
            passed, failed = passed + ok, failed + (not ok)
            print("ok  " if ok else "FAIL", os.path.basename(page), i + 1)
            if not ok:
                print(f"--- wanted\n{want}--- got\n{got}{cc.stderr}")
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
