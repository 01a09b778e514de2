#!/usr/bin/env python3
"""Writes src/tensor/type/codebook.c from the table of codebooks (quant_tables.tsv, facts of the file formats).

    python3 scripts/make_codebook.py ../shared/tables/quant_tables.tsv > src/tensor/type/codebook.c

Each grid entry is 8 (or 4) values out of 3 (or 8) levels, so it is written as a code of 2 (or 3) bits per value, lowest
first; macros expand the codes to the bytes that decoders read. Entries are in rising order of their codes. Needed only when a format is added.
"""
import sys

GRIDS = [  # name, name in the table, values, bits per value
    ("iq2_xxs", "iq2xxs_grid", 8, 2),
    ("iq2_xs", "iq2xs_grid", 8, 2),
    ("iq2_s", "iq2s_grid", 8, 2),
    ("iq3_xxs", "iq3xxs_grid", 4, 3),
    ("iq3_s", "iq3s_grid", 4, 3),
    ("iq1", "iq1s_grid", 8, 2),
]


def read(path):
    tables = {}
    for line in open(path):
        if not line.startswith("#"):
            name, _, count, values = line.rstrip("\n").split("\t")
            tables[name] = [int(v, 0) for v in values.split()]
            assert len(tables[name]) == int(count)
    return tables


def lines(items, per_line, indent="    ", end=""):
    rows = [indent + " ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
    return (end + "\n").join(rows)


def grid(name, values, dims, bits):
    signed = lambda b: b - 256 if b > 127 else b
    entries = [[signed((v >> (8 * i)) & 255) for i in range(dims)] for v in values]
    levels = sorted({x for e in entries for x in e})
    codes = [sum(levels.index(x) << (bits * i) for i, x in enumerate(e)) for e in entries]
    assert codes == sorted(codes) and len(levels) <= 1 << bits
    half = dims * bits // 2
    start = [sum(c >> half < h for c in codes) for h in range((1 << half) + 1)]
    up = name.upper()
    word = "uint64_t" if dims == 8 else "uint32_t"
    level = sum((x & 255) << (8 * i) for i, x in enumerate(levels))
    n = len(codes)
    print(f"// {name}: {n} entries of {dims} values out of {{{', '.join(map(str, levels))}}}")
    print(f"#define {up}(X) \\")
    print(lines([f"X({c:#06x})" for c in codes], 11, end=" \\"))
    halves = " | ".join(f"FOUR({word}, {level:#x}ull, {bits}, c, {i})" for i in range(0, dims, 4))
    print(f"#define ENTRY_{up}(c) {halves},")
    print(f"static const uint16_t start_{name}[] = {{")
    print(lines([f"{v}," for v in start], 20))
    print("};")
    print(f"GRID({name}, {up}, {word}, {n}, {', '.join(f'{x}.0f' for x in levels)})\n")


MACROS = """\
#define CODE(c) c,
// Bytes of an entry: value i is the level that `bits` bits of the code name, and stands at byte i.
#define BYTE(word, levels, bits, c, i) (((word) ((levels) >> (8 * ((c) >> ((bits) * (i)) & ((1 << (bits)) - 1))) & 255)) << (8 * (i)))
#define FOUR(word, levels, bits, c, i) \\
    (BYTE(word, levels, bits, c, i) | BYTE(word, levels, bits, c, i + 1) | BYTE(word, levels, bits, c, i + 2) | BYTE(word, levels, bits, c, i + 3))
// The table that decoders read, and what encoders search.
#define GRID(name, UP, word, n, ...) \\
    const word codebook_##name[n] = {UP(ENTRY_##UP)}; \\
    static const uint16_t codes_##name[n] = {UP(CODE)}; \\
    const struct codebook codebook_search_##name = {.codes = codes_##name, .start = start_##name, .levels = {__VA_ARGS__}};
"""


def main():
    tables = read(sys.argv[1])
    print("// Codebooks of the table-driven formats. Made by scripts/make_codebook.py: change that, not this. Compiled once.")
    print("// clang-format off")
    print('#include "type/codebook.h"\n')
    print(MACROS)
    for name, key, dims, bits in GRIDS:
        grid(name, tables[key], dims, bits)
    print("// Byte of signs for 7 stored bits: the eighth makes the number of minus signs even.")
    print("const uint8_t codebook_signs[128] = {")
    print(lines([f"{v}," for v in tables["ksigns_iq2xs"]], 20))
    print("};\n")
    for name, key in (("iq4_nl", "kvalues_iq4nl"), ("fp4", "kvalues_fp4")):
        print(f"const int8_t codebook_{name}[16] = {{{', '.join(map(str, tables[key]))}}};")


main()
