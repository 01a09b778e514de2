#!/usr/bin/env python3
"""Checks the walls of the house (docs/design.md): includes point down only, each list exists once, and nothing outside
a folder switches over what that folder owns. Exit status 0, or 1 with a list of what is wrong."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SRC = os.path.join(ROOT, "src")

# Folders from the bottom up; those on one line may not include each other.
TENSOR = [["base"], ["simd"], ["type"], ["kern", "graph"], ["ops"], ["alloc", "gguf"], ["device"], ["backend", "opt"]]
LLM = [["memory", "vocab", "grammar"], ["block"], ["arch"], ["model"], ["run"], ["sample", "chat"]]
# Headers that stand lower than their folder: the names of the ISA levels are needed wherever code is compiled per level.
LOWER = {"kern/isa.h": "base", "kern/isa.def": "base"}
# type < kern < graph: a kernel may use type tables, and so may graphs; kernels know no graph.
ALLOWED = {("graph", "kern")}

problems = []


def problem(path, line, text):
    problems.append(f"{os.path.relpath(path, ROOT)}:{line}: {text}")


def rank(table, folder):
    for i, level in enumerate(table):
        if folder in level:
            return i
    return None


def sources():
    for folder, _, files in os.walk(SRC):
        for f in sorted(files):
            if f.endswith((".c", ".h", ".def")):
                yield os.path.join(folder, f)


def includes(path):
    for i, line in enumerate(open(path, encoding="utf-8"), 1):
        m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if m:
            yield i, m.group(1)


def part_of(path):
    """(part, folder) of a source: ("tensor", "ops"), ("base", "base"), ("llm", "arch"), ("app", "cli")."""
    parts = os.path.relpath(path, SRC).split(os.sep)
    return (parts[0], parts[1] if len(parts) > 2 else parts[0])


def public(name):
    return os.path.exists(os.path.join(ROOT, "include", name))


def check_tensor(path, folder, line, name):
    target = LOWER.get(name, name.split("/")[0])
    mine, theirs = rank(TENSOR, folder), rank(TENSOR, target)
    if theirs is None:
        problem(path, line, f'includes "{name}", which is no folder of src/tensor or src/base')
    elif target != folder and (theirs > mine or (theirs == mine and (folder, target) not in ALLOWED)):
        problem(path, line, f'{folder} may not include "{name}": {target} does not stand below it')


def check_llm(path, folder, line, name):
    target = name.removeprefix("llm/").split("/")[0]
    if target == "base":
        return
    mine, theirs = rank(LLM, folder), rank(LLM, target)
    if theirs is None:
        if rank(TENSOR, target) is not None or name.startswith("tensor/"):
            problem(path, line, f'src/llm sees tensors through the public headers alone, not "{name}"')
    elif mine is not None and target != folder and theirs > mine:
        problem(path, line, f'{folder} may not include "{name}": {target} does not stand below it')


def check_includes(path):
    part, folder = part_of(path)
    for line, name in includes(path):
        here = os.path.join(os.path.dirname(path), name)
        if public(name) or os.path.exists(here):
            continue
        if name.endswith("_int.h") and part_of(os.path.join(SRC, name))[1] != folder and f"{folder}/" not in name:
            problem(path, line, f'"{name}" is private to its folder')
        if part == "base" and not name.startswith("base/"):
            problem(path, line, f'base may not include "{name}"')
        elif part == "tensor":
            check_tensor(path, folder, line, name)
        elif part == "llm":
            check_llm(path, folder, line, name)
        elif part == "app" and name.split("/")[0] not in ("base", "app", "cli", "tools"):
            problem(path, line, f'the program sees public headers and base alone, not "{name}"')


# ---- lists ---------------------------------------------------------------------------------------------------------------

def entries(path):
    for i, line in enumerate(open(path, encoding="utf-8"), 1):
        m = re.match(r"([A-Z_]+)\(\s*(\w+)(?:\s*,\s*(\w+))?", line)
        if m:
            yield i, m.group(2), m.group(3)


def check_def(path):
    """An entry must not occur twice, and no other .def may have the same entries."""
    seen = {}
    for line, first, _ in entries(path):
        if first in seen:
            problem(path, line, f"{first} is listed twice (line {seen[first]})")
        seen[first] = line
    return frozenset(seen)


def enum_names(header, enum):
    text = open(os.path.join(ROOT, "include", header), encoding="utf-8").read()
    body = re.search(rf"enum {enum} \{{(.*?)\}}", text, re.S).group(1)
    return re.findall(r"(\w+)\s*=", body)


def check_against_enum(path, header, enum, prefix, whole):
    wanted = [n[len(prefix):] for n in enum_names(header, enum) if not n.endswith("_COUNT")]
    found = [first for _, first, _ in entries(path)]
    if whole and found != wanted:
        problem(path, 1, f"is not in the order of enum {enum}, or incomplete: {set(found) ^ set(wanted) or 'order'}")
    if not whole and [n for n in wanted if n in found] != found:
        problem(path, 1, f"is not in the order of enum {enum}")


def check_descriptors():
    ops = os.path.join(SRC, "tensor", "ops")
    text = {f: open(os.path.join(ops, f), encoding="utf-8").read() for f in os.listdir(ops) if f.endswith(".c")}
    for line, _, name in entries(os.path.join(ops, "ops.def")):
        owners = [f for f, t in text.items() if re.search(rf"^const struct op op_{name} =", t, re.M)]
        made_by_macro = any(re.search(rf"\(\s*\w+\s*,\s*{name}\b", t) for t in text.values())
        if len(owners) > 1 or (not owners and not made_by_macro):
            problem(os.path.join(ops, "ops.def"), line, f"op_{name} is defined {len(owners)} times: {owners}")


# pattern, the half it is looked for in, the folders that own it
OWNERS = [(r"case GGML_OP_\w+:", "tensor", ("ops",), "operations"),
          (r"case GGML_TYPE_\w+:", "tensor", ("type", "kern"), "element types"),
          (r"case LLM_ARCH_\w+:", "llm", ("arch",), "architectures")]


def check_switches(path):
    part, folder = part_of(path)
    text = open(path, encoding="utf-8").read()
    for pattern, half, owners, what in OWNERS:
        if part != half:
            continue
        for m in re.finditer(pattern, text):
            if folder not in owners:
                problem(path, text.count("\n", 0, m.start()) + 1, f"a switch over {what} outside {'/'.join(owners)}")
                break


def check_options():
    """A name must say one thing in each command: of two options the first in the list would hide the other."""
    path = os.path.join(SRC, "app", "cli", "options.def")
    commands, seen = {}, {}
    for folder, _, files in os.walk(os.path.join(SRC, "app", "tools")):
        for f in files:
            m = re.search(r"\.groups = ([^,]+),", open(os.path.join(folder, f), encoding="utf-8").read())
            if m:
                commands[f] = set(re.findall(r"G_\w+", m.group(1))) | {"G_ALL"}
    for line, text in enumerate(open(path, encoding="utf-8"), 1):
        names, groups = re.search(r'"(-[^"]*)"', text), set(re.findall(r"\bG_\w+", re.sub(r'"[^"]*"', "", text)))
        if not re.match(r"[A-Z]+\(", text) or not names:
            continue
        for name in names.group(1).split(","):
            for command in (c for c, has in commands.items() if has & groups):
                if (name, command) in seen:
                    problem(path, line, f"{name} of {command} is already that of line {seen[name, command]}")
                seen[name, command] = line


def main():
    lists = {}
    for path in sources():
        check_includes(path)
        if path.endswith(".def"):
            names = check_def(path)
            if len(names) > 3 and names in lists:
                problem(path, 1, f"the same list as {os.path.relpath(lists[names], ROOT)}")
            lists[names] = path
        else:
            check_switches(path)
    ops, kinds = os.path.join(SRC, "tensor", "ops"), "ggml/op_enums.h"
    check_against_enum(os.path.join(ops, "ops.def"), kinds, "ggml_op", "GGML_OP_", True)
    check_against_enum(os.path.join(ops, "unary.def"), kinds, "ggml_unary_op", "GGML_UNARY_OP_", True)
    check_against_enum(os.path.join(ops, "glu.def"), kinds, "ggml_glu_op", "GGML_GLU_OP_", True)
    check_against_enum(os.path.join(SRC, "tensor", "type", "type.def"), "ggml/enums.h", "ggml_type", "GGML_TYPE_", False)
    check_descriptors()
    check_options()
    for p in problems:
        print(p)
    print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
