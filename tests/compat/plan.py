"""`lamina plan` against what is then really allocated and resident: every malloc, mmap and device buffer of a process counted by
plan_probe.c, equal to the byte in ten settings per model and twelve over simulated devices; the resident set after the whole
context has been filled, for two.

usage: plan.py LAMINA MODEL.gguf [MODEL.gguf ...]     The last line is "N passed, N failed".
LAMINA_SHARED: folder with plans/sparse_models.py; without it DeepSeek-V3's shape is not planned.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

EXE, MODELS = os.path.abspath(sys.argv[1]), [os.path.abspath(m) for m in sys.argv[2:]]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIB = os.path.join(os.path.dirname(os.path.dirname(EXE)), "lib")
SHARED = os.environ.get("LAMINA_SHARED", os.path.join(os.path.dirname(ROOT), "shared"))
PARTS = ("weights_mapped", "weights_copied", "kv", "recurrent", "compute", "outputs", "work", "graph", "vocabulary", "program")
SETTINGS = [
    {"c": 512}, {"c": 4096}, {"c": 1024, "ub": 64, "b": 256}, {"c": 768, "ub": 1}, {"c": 2048, "np": 4}, {"c": 1024, "fa": "off"},
    {"c": 1024, "ctk": "q8_0", "ctv": "q8_0"}, {"c": 512, "no_mmap": 1}, {"c": 1024, "t": 1}, {"c": 1024, "swa_full": 1},
]
FILLED = [{"c": 4096, "ub": 256, "b": 512, "t": 2}, {"c": 4096, "b": 2048, "t": 2}]
passed = failed = 0


def check(name, ok, what):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    print(f"{'ok  ' if ok else 'FAIL'} {name}: {what}", flush=True)


def run(*args, env=None):
    p = subprocess.run(args, capture_output=True, text=True, timeout=600, env=dict(os.environ, **(env or {})))
    assert p.returncode == 0, f"{args}: exit {p.returncode}: {p.stderr}"
    return p.stdout


def plan(model, setting, *more, env=None):
    args = []
    for k, v in setting.items():
        args += {"no_mmap": ["--no-mmap"], "swa_full": ["--swa-full"]}.get(k, ["-" + k, str(v)])
    if "t" not in setting:
        args += ["-t", "2"]
    return json.loads(run(EXE, "plan", model, *args, *more, "--json", env=env))


def probe(model, setting, *more, env=None):
    out = run(PROBE, model, *[f"{k}={v}" for k, v in setting.items()], *more, env=env)
    return {k: int(v) for k, v in (l.split() for l in out.splitlines())}


def shape_of(j):
    assert list(j) == ["devices", "fits"], list(j)
    for d in j["devices"]:
        assert set(d) == {"name", "total", *PARTS}, set(d)
        assert d["total"] == sum(d[k] for k in PARTS), d


# Every byte: what the heap, mappings and devices were asked for is what was planned, and decoding asks for nothing more.
def allocated(model, setting, env=None):
    j = plan(model, setting, env=env)
    shape_of(j)
    got = probe(model, setting, env=env)
    devices, host = j["devices"][:-1], j["devices"][-1]
    name = " ".join([os.path.basename(model), str(setting), *(f"{k}={v}" for k, v in (env or {}).items())])
    want = sum(d["total"] - d["program"] for d in j["devices"])
    have = got["heap"] + got["anon"] + got["mapped"] + got["device"]
    check(f"{name} bytes", want == have, f"{want} planned, {have} allocated ({want - have:+d})")
    data = sum(d["weights_copied"] + d["kv"] + d["recurrent"] + d["compute"] for d in devices)
    check(f"{name} parts", data == got["device"] and host["outputs"] == got["anon"],
          f"devices {data - got['device']:+d}, outputs {host['outputs'] - got['anon']:+d}")
    check(f"{name} steady", got["calls"] == 0 and got["grown"] == 0, f"{got['calls']} allocations while decoding")


def resident(model, setting):
    j = plan(model, setting)
    want = sum(d["total"] - d["program"] for d in j["devices"])
    got = probe(model, setting, "fill=1")
    off = got["resident"] / want - 1
    check(f"{os.path.basename(model)} {setting} resident", abs(off) <= 0.01, f"{want} planned, {got['resident']} resident ({100 * off:+.2f} %)")
    check(f"{os.path.basename(model)} {setting} filled", got["calls"] == 0 and got["grown"] == 0, f"{got['calls']} allocations while decoding")


def fast(model):
    best = 1e9
    for _ in range(5):
        t = time.perf_counter()
        run(EXE, "plan", model, "-c", "4096")
        best = min(best, time.perf_counter() - t)
    empty = 1e9
    for _ in range(5):
        t = time.perf_counter()
        run(EXE, "plan", "-h")
        empty = min(empty, time.perf_counter() - t)
    check(f"{os.path.basename(model)} time", best - empty < 0.05, f"{1e3 * (best - empty):.1f} ms over starting the program ({1e3 * empty:.1f} ms)")


def fit(model):
    j = plan(model, {"c": 512}, "--fit")
    f = j["fit"]
    check(f"{os.path.basename(model)} fit", f["ctx"] >= 512 and f["ubatch"] >= 1, str(f))
    # A device too small for all layers: the number found fits, one more does not, neither by plan nor when loaded.
    env = {"LAMINA_SIM": "1", "LAMINA_SIM_MEM": "40"}
    f = plan(model, {"c": 512}, "--fit", env=env)["fit"]
    n = f["gpu_layers"]
    j = plan(model, {"c": 512, "ngl": n}, env=env)
    shape_of(j)
    more = plan(model, {"c": 512, "ngl": n + 1}, env=env)
    check(f"{os.path.basename(model)} fit on a device", 0 <= n and j["fits"] and not more["fits"] and j["devices"][0]["name"] == "SIM0", str(f))
    probe(model, {"c": 512, "ngl": n}, env=env)
    p = subprocess.run([PROBE, model, "c=512", f"ngl={n + 1}"], capture_output=True, text=True, env=dict(os.environ, **env))
    check(f"{os.path.basename(model)} one layer more", p.returncode == 1 and "no room" in p.stderr, p.stderr.strip().split("\n")[0])
    # Where even the output is larger than the device: what is needed and what would fit are said.
    small = plan(model, {"c": 512, "ngl": 99}, "--fit", env=dict(env, LAMINA_SIM_MEM="20"))
    copied = small["devices"][0]["weights_copied"]
    check(f"{os.path.basename(model)} planned for a device too small", not small["fits"] and small["fit"]["gpu_layers"] == 0 and copied > 20 << 20, f"{copied} bytes, {small['fit']}")
    p = subprocess.run([PROBE, model, "c=512", "ngl=99"], capture_output=True, text=True, env=dict(env, LAMINA_SIM_MEM="20", PATH=os.environ["PATH"]))
    check(f"{os.path.basename(model)} a device too small", p.returncode == 1 and re.search(r"no room for the weights.* enough for the weights of 0 of its \d+ layers", p.stderr), p.stderr.strip().split("\n")[0])


def placed(model):
    env = {"LAMINA_SIM": "1"}
    all_on = plan(model, {"c": 512, "ngl": 99}, env=env)["devices"]
    some = plan(model, {"c": 512, "ngl": 99}, "-ot", r"ffn_(up|down)\.weight=CPU", env=env)["devices"]
    moved = all_on[0]["weights_copied"] - some[0]["weights_copied"]
    stay = some[1]["weights_mapped"] - all_on[1]["weights_mapped"]
    # copies are padded to the device's alignment; mappings begin with a page and hold what is small between two weights
    check(f"{os.path.basename(model)} -ot", stay > 0 and abs(moved - stay) <= 0.01 * stay, f"{stay} bytes stay on the CPU, {moved} less on SIM0")
    p = subprocess.run([EXE, "plan", model, "-ot", "ffn=NOWHERE"], capture_output=True, text=True)
    check(f"{os.path.basename(model)} -ot refused", p.returncode == 2 and "no buffer type 'NOWHERE'" in p.stderr, p.stderr.strip())


def page(model):
    path = os.path.join(TMP, "map.html")
    run(EXE, "plan", model, "-c", "4096", "--map", path)
    text = open(path, encoding="utf-8").read()
    data = re.search(r"const D =\n(.*?)\n;\n", text, re.S).group(1)
    data = json.loads(re.sub(r'([{,])([a-z]+):', r'\1"\2":', data))
    j = plan(model, {"c": 4096})
    compute = j["devices"][0]["compute"]
    peak = data["buffers"][0]["peak"]
    check(f"{os.path.basename(model)} map", peak <= compute and (compute == peak or j["devices"][0]["work"] == 4 << 20) and peak == max(t[5] + t[4] for t in data["tensors"]),
          f"{len(data['tensors'])} tensors, peak {peak}")
    live = sum(t[4] for t in data["tensors"] if t[9] & 1)
    taken = sum(t[4] for t in data["tensors"] if t[9] & 1 and t[8] >= 0 and data["tensors"][t[8]][9] & 1)
    check(f"{os.path.basename(model)} map peak", live - taken == data["buffers"][0]["bound"], f"{live - taken} alive at the peak, bound {data['buffers'][0]['bound']}")
    check(f"{os.path.basename(model)} map whole", "http" not in text and text.rstrip().endswith("</html>"), f"{len(text)} bytes, nothing to load")
    assert not os.path.exists(path + ".tmp")


def errors():
    for args, pattern in (([], "no such file|cannot open|plan"), (["--map", "/nonexistent/x.html"], "cannot write /nonexistent/x.html")):
        model = "/nonexistent.gguf" if not args else MODELS[0]
        p = subprocess.run([EXE, "plan", model, "-c", "512", *args], capture_output=True, text=True)
        check(f"error {args}", p.returncode == 1 and re.search(r"error: .*(" + pattern + ")", p.stderr, re.I), p.stderr.strip())


def deepseek():
    script = os.path.join(SHARED, "plans", "sparse_models.py")
    if not os.path.exists(script):
        print(f"skip DeepSeek-V3: {script} is not there")
        return
    run(sys.executable, script, TMP)
    model = next(os.path.join(TMP, f) for f in os.listdir(TMP) if "deepseek-v3" in f.lower())
    t = time.perf_counter()
    j = plan(model, {"c": 4096})
    shape_of(j)
    d = j["devices"][-1]
    check("DeepSeek-V3", d["weights_mapped"] > 300e9 and d["kv"] > 100e6 and not j["fits"],
          f"{d['total'] / 1e9:.1f} GB, fits: {j['fits']}; {1e3 * (time.perf_counter() - t):.0f} ms with starting the program")
    page(model)


with tempfile.TemporaryDirectory() as TMP:
    PROBE = os.path.join(TMP, "probe")
    run("cc", "-std=gnu11", "-O1", "-Wall", "-I" + os.path.join(ROOT, "include"), os.path.join(ROOT, "tests", "compat", "plan_probe.c"), "-o", PROBE, "-L" + LIB,
        "-Wl,-rpath," + LIB, "-lllama", "-lggml", "-lpthread", "-ldl")
    for m in MODELS:
        for s in SETTINGS:
            allocated(m, s)
        for sim in ("1", "2", "2,hostptr"):
            for ngl in (0, 1, 9, 99):
                allocated(m, {"c": 1024, "ngl": ngl}, env={"LAMINA_SIM": sim})
        for s in FILLED:
            resident(m, s)
        fast(m)
        fit(m)
        placed(m)
        page(m)
    errors()
    deepseek()
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
