#!/usr/bin/env python3
"""Draws the pictures of docs/tensors.md and docs/loading.md into docs/img (plain SVG, no libraries)."""
import os

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "img")
INK, SOFT, LINE = "#1f2933", "#616e7c", "#9aa5b1"
FILL = ["#dbeafe", "#dcfce7", "#fef3c7", "#fce7f3", "#ede9fe", "#e0f2fe"]


class Svg:
    def __init__(self, w, h):
        self.w, self.h, self.body = w, h, []

    def rect(self, x, y, w, h, fill="none", stroke=LINE, dash=None, width=1):
        d = f' stroke-dasharray="{dash}"' if dash else ""
        self.body.append(f'<rect x="{x}" y="{y}" width="{w}" height="{h}" fill="{fill}" stroke="{stroke}" stroke-width="{width}"{d}/>')

    def text(self, x, y, s, size=13, color=INK, anchor="start", mono=False, bold=False):
        family = "ui-monospace,Menlo,monospace" if mono else "system-ui,Segoe UI,sans-serif"
        weight = ' font-weight="600"' if bold else ""
        s = s.replace("&", "&amp;").replace("<", "&lt;")
        self.body.append(f'<text x="{x}" y="{y}" font-size="{size}" fill="{color}" text-anchor="{anchor}" font-family="{family}"{weight}>{s}</text>')

    def line(self, x1, y1, x2, y2, color=LINE, arrow=False, width=1.5):
        a = ' marker-end="url(#a)"' if arrow else ""
        self.body.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{color}" stroke-width="{width}"{a}/>')

    def cells(self, x, y, labels, w=34, h=28, fill=FILL[0], size=12):
        for i, s in enumerate(labels):
            f = fill[i] if isinstance(fill, list) else fill
            self.rect(x + i * w, y, w, h, f)
            self.text(x + i * w + w / 2, y + h / 2 + 4, s, size, anchor="middle", mono=True)

    def save(self, name):
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.w} {self.h}" width="{self.w}" height="{self.h}">'
                f'<defs><marker id="a" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
                f'<path d="M0 0L10 5L0 10z" fill="{SOFT}"/></marker></defs><rect width="{self.w}" height="{self.h}" fill="#ffffff"/>')
        with open(os.path.join(OUT, name), "w") as f:
            f.write(head + "\n" + "\n".join(self.body) + "\n</svg>\n")


def strides():
    s = Svg(720, 250)
    s.text(20, 26, "x: F32, ne = {4, 3}, nb = {4, 16}", 15, bold=True)
    for r in range(3):
        s.cells(60, 44 + r * 30, [f"{r},{c}" for c in range(4)], fill=FILL[r])
        s.text(20, 64 + r * 30, f"i1={r}", 12, SOFT)
    s.text(205, 60, "one step along i0: nb[0] = 4 bytes (one element)", 13, SOFT)
    s.text(205, 90, "one step along i1: nb[1] = 16 bytes (one row)", 13, SOFT)
    s.text(205, 120, "address of (i0, i1) = data + i0*nb[0] + i1*nb[1]", 13, SOFT, mono=True)
    s.text(20, 172, "in memory", 13, bold=True)
    s.cells(20, 184, [f"{r},{c}" for r in range(3) for c in range(4)], w=54, fill=[FILL[r] for r in range(3) for _ in range(4)])
    for i in range(13):
        if i % 4 == 0:
            s.text(20 + i * 54, 232, f"{i * 4}", 11, SOFT, anchor="middle", mono=True)
    s.save("strides.svg")


def mul_mat():
    s = Svg(720, 270)
    s.text(20, 26, "mul_mat(a {K, M}, b {K, N}) gives {M, N}: every row of b meets every row of a", 15, bold=True)
    for r in range(3):
        s.cells(40, 60 + r * 30, [""] * 4, fill=FILL[0] if r != 1 else FILL[2])
    s.text(108, 168, "a: M = 3 rows of K = 4", 12, SOFT, anchor="middle")
    for r in range(2):
        s.cells(250, 75 + r * 30, [""] * 4, fill=FILL[1] if r != 1 else FILL[2])
    s.text(318, 168, "b: N = 2 rows of K = 4", 12, SOFT, anchor="middle")
    for r in range(2):
        s.cells(480, 75 + r * 30, ["·", "dot" if r == 1 else "·", "·"], fill=["#ffffff", FILL[2] if r == 1 else "#ffffff", "#ffffff"])
    s.text(531, 168, "result: N rows of M", 12, SOFT, anchor="middle")
    s.text(205, 110, "×", 20, SOFT)
    s.text(430, 110, "=", 20, SOFT)
    s.text(20, 206, "result[m, n] = sum over k of a[k, m] * b[k, n]: in the notation of a textbook, b times a transposed.", 13, SOFT)
    s.text(20, 230, "Both are read along their rows, where memory is contiguous. That is why a weight matrix is stored", 13, SOFT)
    s.text(20, 250, "with its inputs innermost: ne = {n_in, n_out}.", 13, SOFT)
    s.save("mul_mat.svg")


def kv_views():
    s = Svg(760, 330)
    s.text(20, 26, "The K cache of one layer is one flat tensor; three views look at it", 15, bold=True)
    n = 8
    s.cells(20, 50, [f"pos {i}" for i in range(n)], w=86, h=34, fill=[FILL[0]] * 5 + [FILL[2]] * 2 + ["#ffffff"])
    s.text(20, 104, "each position: n_embd = 768 floats = 3072 bytes; n_past = 5, two new tokens, L = 7", 12, SOFT)
    rows = [("1  store", "view_1d(k, N*768, 3072*n_past)", 20 + 5 * 86, 2, "where the new keys are copied to", FILL[2]),
            ("2  read", "view_1d(k, L*768, 0)", 20, 7, "all keys so far, still flat", FILL[0]),
            ("3  shape", "permute(reshape_3d(., 64, 12, L), 0, 2, 1, 3)", 20, 7, "ne {64, L, 12}, nb {4, 3072, 256}: head by head, nothing moved", FILL[1])]
    for i, (a, b, x, w, note, f) in enumerate(rows):
        y = 136 + i * 62
        s.rect(x, y, w * 86, 18, f)
        s.text(20, y - 6, a, 13, bold=True)
        s.text(100, y - 6, b, 12, mono=True)
        s.text(20, y + 34, note, 12, SOFT)
    s.save("kv_views.svg")


def permute():
    s = Svg(760, 300)
    s.text(20, 26, "permute swaps labels, cont moves bytes", 15, bold=True)
    s.text(20, 58, "x: ne {3, 2}, nb {4, 12}", 12, mono=True)
    for r in range(2):
        s.cells(20, 70 + r * 30, [f"{'ab'[r]}{c}" for c in range(3)], fill=FILL[r])
    s.text(270, 58, "transpose(x): ne {2, 3}, nb {12, 4}", 12, mono=True)
    for r in range(3):
        s.cells(270, 70 + r * 30, [f"a{r}", f"b{r}"], fill=[FILL[0], FILL[1]])
    s.text(550, 58, "cont(.): ne {2, 3}, nb {4, 8}", 12, mono=True)
    for r in range(3):
        s.cells(550, 70 + r * 30, [f"a{r}", f"b{r}"], fill=[FILL[0], FILL[1]])
    s.text(20, 200, "memory", 12, SOFT)
    s.cells(20, 208, ["a0", "a1", "a2", "b0", "b1", "b2"], w=36, fill=[FILL[0]] * 3 + [FILL[1]] * 3)
    s.text(270, 200, "the same memory, read in another order", 12, SOFT)
    s.cells(270, 208, ["a0", "a1", "a2", "b0", "b1", "b2"], w=36, fill=[FILL[0]] * 3 + [FILL[1]] * 3)
    s.text(550, 200, "new memory", 12, SOFT)
    s.cells(550, 208, ["a0", "b0", "a1", "b1", "a2", "b2"], w=30, fill=[FILL[0], FILL[1]] * 3)
    s.text(20, 270, "A row of the transposed view is not contiguous (nb[0] = 12): mul_mat refuses it as its first operand, cont makes it fit.", 12, SOFT)
    s.save("permute.svg")


def objects():
    s = Svg(760, 300)
    s.text(20, 26, "Four kinds of thing", 15, bold=True)
    boxes = [(20, 50, 210, 110, FILL[0], "context", ["a pool of memory for", "headers: tensors, graphs", "ggml_init / ggml_free"]),
             (270, 50, 210, 110, FILL[1], "tensor", ["type, ne, nb, name, op, src", "data: where its values are", "(NULL until someone decides)"]),
             (520, 50, 220, 110, FILL[2], "graph", ["nodes in evaluation order", "leafs: weights and inputs", "built whole before anything runs"]),
             (270, 200, 210, 84, FILL[3], "buffer", ["memory of a device", "tensors' values live here"])]
    for x, y, w, h, f, name, lines in boxes:
        s.rect(x, y, w, h, f)
        s.text(x + 12, y + 24, name, 14, bold=True)
        for i, t in enumerate(lines):
            s.text(x + 12, y + 46 + i * 19, t, 12, SOFT)
    s.line(230, 105, 268, 105, SOFT, True)
    s.text(249, 97, "holds", 11, SOFT, "middle")
    s.line(520, 105, 482, 105, SOFT, True)
    s.text(501, 97, "lists", 11, SOFT, "middle")
    s.line(375, 160, 375, 198, SOFT, True)
    s.text(384, 183, "data points into", 11, SOFT)
    s.save("objects.svg")


def loading():
    s = Svg(760, 330)
    s.text(20, 26, "From a file's offset to a tensor's address", 15, bold=True)
    parts = [("header", 70, FILL[4]), ("keys", 120, FILL[4]), ("tensor infos", 130, FILL[2]), ("pad", 40, "#ffffff"), ("blk.0.attn_q", 130, FILL[0]),
             ("blk.0.attn_k", 100, FILL[1]), ("...", 120, "#ffffff")]
    x = 20
    at = {}
    for name, w, f in parts:
        s.rect(x, 60, w, 34, f)
        s.text(x + w / 2, 82, name, 12, anchor="middle", mono=True)
        at[name] = (x, w)
        x += w
    s.text(20, 52, "the file", 12, SOFT)
    d = at["blk.0.attn_q"][0]
    k = at["blk.0.attn_k"][0]
    s.line(d, 96, d, 128, SOFT)
    s.text(d, 142, "gguf_get_data_offset", 11, SOFT, "middle", mono=True)
    s.line(d, 112, k, 112, SOFT, True)
    s.text(k + 8, 116, "gguf_get_tensor_offset", 11, SOFT, mono=True)
    s.text(20, 180, "the mapping (one per run of neighbouring tensors on one device)", 12, SOFT)
    s.rect(d, 190, 350, 34, "none", INK, "4 3")
    s.rect(d, 190, 130, 34, FILL[0])
    s.rect(k, 190, 100, 34, FILL[1])
    s.text(d + 65, 212, "attn_q", 12, anchor="middle", mono=True)
    s.text(k + 50, 212, "attn_k", 12, anchor="middle", mono=True)
    s.line(k, 262, k, 228, SOFT, True)
    s.text(k, 278, "tensor->data = base + data offset + tensor offset", 12, INK, "middle", mono=True)
    s.text(k, 300, "tensor->buffer = the mapping as a buffer; no byte has been copied", 12, SOFT, "middle")
    s.save("loading.svg")


for f in (strides, mul_mat, kv_views, permute, objects, loading):
    f()
