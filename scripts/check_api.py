#!/usr/bin/env python3
"""Compares the public headers with the tables of the interface, and the exported symbols with the headers.

  check_api.py layout SHARED_API_DIR [--cc CC]   constants, typedefs, enum values, struct layouts, function types
  check_api.py alone [--cc CC --cxx CXX]         every header compiles alone, as C11 and as C++17
  check_api.py symbols LIB...                    what the libraries export is what the headers declare

Exit status 0 when all agree, 1 with a list of differences, 77 (skipped) when the tables are not there.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INCLUDE = os.path.join(ROOT, "include")
# What comes with later devices; see the notes of the interface.
LATER = {"ggml-vulkan.h"}


def headers():
    for folder, _, files in os.walk(INCLUDE):
        for f in sorted(files):
            if f.endswith(".h"):
                yield os.path.relpath(os.path.join(folder, f), INCLUDE)


def sections(path):
    """The parts of a table: (title, [fields of each line])."""
    title, lines = None, []
    for line in open(path, encoding="utf-8"):
        line = line.rstrip("\n")
        if line.startswith("["):
            if title:
                yield title, lines
            title, lines = line, []
        elif line and not line.startswith("#"):
            lines.append(line.split("\t"))
    if title:
        yield title, lines


def declare(ctype, name):
    """A declaration of `name` with a type spelled as in the tables."""
    return f"__typeof__({ctype}) {name}"


def checks_of(title, lines):
    """Lines of C that compile only if the headers say what the table says."""
    if title == "[constants]":
        for name, value in (l[:2] for l in lines):
            if name in ("GGML_NORETURN", "GGML_RESTRICT"):
                continue
            same = f"!__builtin_strcmp({name}, {value})" if value.startswith('"') else f"({name}) == ({value})"
            yield f'_Static_assert({same}, "{name}");'
    elif title == "[typedefs]":
        for name, ctype in (l[:2] for l in lines):
            if "{" not in ctype:
                yield f'_Static_assert(__builtin_types_compatible_p({name}, __typeof__({ctype})), "typedef {name}");'
    elif title.startswith("[enum"):
        for name, value in (l[:2] for l in lines):
            yield f'_Static_assert((long long) {name} == {value}, "{name}");'
    elif title.startswith("[struct"):
        name, size = re.match(r"\[(struct \w+)\] size (\d+)", title).groups()
        yield f'_Static_assert(sizeof({name}) == {size}, "size of {name}");'
        for offset, ctype, field in (l[:3] for l in lines if len(l) >= 3):
            if not re.fullmatch(r"\w+", field):
                continue
            yield f'_Static_assert(offsetof({name}, {field}) == {offset}, "{name}.{field}");'
            if "{" not in ctype and "union" not in ctype:
                yield (f'_Static_assert(__builtin_types_compatible_p(__typeof__((({name} *) 0)->{field}), '
                       f'__typeof__({ctype})), "type of {name}.{field}");')
    elif title == "[functions]":
        for l in lines:
            name, result, params = l[0], l[1], l[2] if len(l) > 2 else "void"
            params = re.sub(r"([^,]*?)(\[\d+\]) (\w+)", r"\1 \3\2", params)  # int[4] sections -> int sections[4]
            if "(*" in result:
                yield f"extern __typeof__({result}) {name}({params or 'void'});"
            else:
                yield f"extern {result} {name}({params or 'void'});"


def run(command):
    p = subprocess.run(command, capture_output=True, text=True)
    return p.returncode, p.stderr


def layout(tables, cc):
    if not os.path.isdir(tables):
        print(f"skipped: {tables} is not there")
        return 77
    bad = n = 0
    for table in sorted(os.listdir(tables)):
        header = table.removesuffix(".tsv")
        if not table.endswith(".tsv") or header in LATER:
            continue
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "check.c")
            with open(path, "w", encoding="utf-8") as f:
                f.write(f'#include <stddef.h>\n#include <stdio.h>\n#include "{header}"\n#include "ggml-backend.h"\n')
                for title, lines in sections(os.path.join(tables, table)):
                    for line in checks_of(title, lines):
                        f.write(line + "\n")
                        n += 1
            status, err = run([cc, "-std=gnu11", "-w", "-fsyntax-only", "-fmax-errors=0" if "clang" not in cc else
                               "-ferror-limit=0", "-I", INCLUDE, path])
        if status:
            bad += 1
            print(f"{header}:\n" + "\n".join(l for l in err.splitlines() if "error" in l))
    print(f"{n} facts compared, {bad} headers differ")
    return 1 if bad else 0


def alone(cc, cxx):
    bad = 0
    for header in headers():
        languages = [([cxx, "-x", "c++", "-std=c++17"], "C++17")]
        if not header.endswith("-cpp.h"):
            languages.append(([cc, "-x", "c", "-std=c11"], "C11"))
        for command, language in languages:
            # twice: once alone, once more after itself
            source = f'#include "{header}"\n#include "{header}"\n'
            p = subprocess.run(command + ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused-variable", "-fsyntax-only",
                                          "-I", INCLUDE, "-"], input=source, capture_output=True, text=True)
            if p.returncode:
                bad += 1
                print(f"{header} as {language}:\n{p.stderr}")
    print(f"{bad} headers fail")
    return 1 if bad else 0


def declared():
    names = set()
    for header in headers():
        text = open(os.path.join(INCLUDE, header), encoding="utf-8").read()
        text = re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.S))
        # results may be function pointers or carry attributes: the name is the last word before the parameters
        for m in re.finditer(r"\b(?:GGML|LLAMA|GGML_BACKEND)_API\b([^;{]*);", text):
            decl = m.group(1)
            if decl.lstrip().startswith("GGML_NORETURN"):
                decl = decl.replace("GGML_NORETURN", "")
            words = re.findall(r"\b((?:ggml|gguf|llama)_\w+)\s*\(", decl)
            if words:
                names.add(words[0])
    return names


def symbols(libs):
    exported = set()
    for lib in libs:
        out = subprocess.run(["nm", "-D", "--defined-only", lib], capture_output=True, text=True, check=True).stdout
        exported |= {l.split()[-1].split("@")[0] for l in out.splitlines() if l.split()[-2] in "TDBRVW"}
    names = declared()
    if not any("libllama" in l for l in libs):
        names = {n for n in names if not n.startswith("llama_")}
    extra, missing = sorted(exported - names), sorted(names - exported)
    for n in extra:
        print(f"exported but not declared: {n}")
    for n in missing:
        print(f"declared but not exported: {n}")
    print(f"{len(exported)} symbols, {len(extra)} too many, {len(missing)} missing")
    return 1 if extra or missing else 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["layout", "alone", "symbols"])
    p.add_argument("args", nargs="*")
    p.add_argument("--cc", default=os.environ.get("CC", "cc"))
    p.add_argument("--cxx", default=os.environ.get("CXX", "c++"))
    a = p.parse_args()
    if a.what == "layout":
        shared = os.environ.get("LAMINA_SHARED") or os.path.join(ROOT, "..", "shared")
        return layout(a.args[0] if a.args else os.path.join(shared, "api"), a.cc)
    return alone(a.cc, a.cxx) if a.what == "alone" else symbols(a.args)


if __name__ == "__main__":
    sys.exit(main())
