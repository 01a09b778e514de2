"""JSON schemas as grammars, judged by the Python package jsonschema: what fits is accepted, what doesn't is refused, what is generated fits.

usage: schema.py BUILD_FOLDER MODEL.gguf      needs jsonschema. The last line is "N passed, N failed".

For each schema, documents made to fit it (properties in its order) must be accepted in every way of writing JSON, changed ones that the judge refuses must be
refused; the model's text under it must parse and fit. Schemas that cannot be kept to must be refused with the place.
"""
import ctypes as C
import json
import os
import random
import subprocess
import sys

import jsonschema

BUILD, MODEL = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
N_DOCS = 40
PERSON = {"type": "object", "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 120},
                                           "mail": {"type": ["string", "null"], "maxLength": 10}}, "required": ["name", "age"], "additionalProperties": False}
SCHEMAS = {
    "any": {"type": "object", "maxLength": 3},
    "person": PERSON,
    "optional only": {"type": "object", "properties": {"a": {"type": "boolean"}, "ab": {"type": "null"}, "c": {"const": 1}}, "additionalProperties": False},
    "additional": {"type": "object", "properties": {"a": {"type": "integer", "maximum": 9, "minimum": 0}, "ab": {"type": "boolean"}, "\u00e9\"\n": {"type": "null"}}, "required": ["ab"],
                   "additionalProperties": {"type": "string", "maxLength": 4}},
    "map": {"type": "object", "additionalProperties": {"type": "integer", "minimum": -5, "maximum": 17}},
    "enum": {"enum": ["red", 3, 2.5, None, True, {"a": [1]}, [], "\u4e2d\"\\"]},
    "typed enum": {"type": ["string", "integer"], "enum": ["x", 4, 1.5, None]},
    "const": {"const": {"k": [1, "v", {}]}},
    "array": {"type": "array", "items": {"type": "integer", "minimum": 10, "maximum": 999}, "minItems": 2, "maxItems": 5},
    "tuple": {"type": "array", "prefixItems": [{"type": "string", "maxLength": 3}, {"type": "integer", "minimum": 1, "maximum": 3}], "items": {"type": "boolean"}, "minItems": 1, "maxItems": 4},
    "closed tuple": {"type": "array", "prefixItems": [{"type": "boolean"}, {"type": "null"}], "items": False, "minItems": 2},
    "empty array": {"type": "array", "maxItems": 0},
    "lengths": {"type": "string", "minLength": 3, "maxLength": 6},
    "pattern": {"type": "string", "pattern": "^[A-Z]{2}-\\d{3,4}(x|y+)?$"},
    "open pattern": {"type": "string", "pattern": "a[^b\"]c|z$", },
    "escaped pattern": {"type": "string", "pattern": "^\\\"\\w+\\\\[\\s.]\\u00e9\\.$"},
    "date": {"type": "string", "format": "date"},
    "date-time": {"type": "string", "format": "date-time"},
    "time": {"type": "string", "format": "time"},
    "uuid": {"type": "string", "format": "uuid"},
    "above": {"type": "integer", "minimum": 37},
    "below": {"type": "integer", "exclusiveMaximum": -12},
    "across": {"type": "integer", "minimum": -105, "maximum": 2013},
    "fractions": {"type": "number", "minimum": 0, "exclusiveMaximum": 10},
    "negative fractions": {"type": "number", "exclusiveMinimum": -3, "maximum": 7},
    "any of": {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 9}, {"type": "string", "maxLength": 2}, {"type": "null"}]},
    "one of with more": {"type": "object", "properties": {"v": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["v"],
                         "oneOf": [{"properties": {"kind": {"const": "a"}}, "required": ["kind"]}, {"properties": {"kind": {"const": "b"}, "w": {"type": "boolean"}}, "required": ["kind", "w"]}]},
    "all of": {"allOf": [{"type": "object", "properties": {"a": {"type": "integer", "minimum": 2}}, "required": ["a"]}, {"$ref": "#/$defs/more"}],
               "$defs": {"more": {"properties": {"a": {"maximum": 30}, "b": {"type": "boolean"}}, "required": ["b"]}}},
    "tree": {"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer", "minimum": 0, "maximum": 99}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
                                                        "required": ["v", "next"], "additionalProperties": False}}},
    "nested": {"type": "array", "items": {"type": "array", "items": PERSON, "maxItems": 2}, "maxItems": 2},
    "nullable": {"type": "object", "properties": {"a": {"type": "string", "nullable": True, "maxLength": 3}}, "required": ["a"], "additionalProperties": False},
}
REFUSED = {
    "{": "line 1", "[]": "#:", '{"type":"strng"}': "'strng'", '{"properties":{"a":{"not":{}}}}': "#/properties/a", '{"$ref":"#/x"}': "not there", '{"$ref":"http://a"}': "outside",
    '{"items":{"pattern":"a(?=b)"}}': "#/items/pattern", '{"type":"integer","minimum":5,"maximum":3}': "no whole number", '{"$ref":"#"}': "itself", '{"allOf":[{"$ref":"#"}]}': "itself",
    '{"properties":{"a":{"anyOf":[{"$ref":"#/properties/a"}]}}}': "itself", '{"type":"string","pattern":"("}': "parenthesis", '{"type":"string","pattern":"[z-a]"}': "range",
    '{"type":"string","pattern":"a","minLength":3}': "together", '{"type":"array","minItems":3,"maxItems":1}': "at least 3", '{"type":"array","minItems":1e9}': "100000",
    '{"enum":[]}': "no value", '{"type":"object","properties":{"a":false}}': "#/properties/a", '{"required":["a"],"additionalProperties":false}': "not allowed",
    '{"type":"array","uniqueItems":true}': "uniqueItems", '{"type":"number","minimum":0.5}': "whole", '{"allOf":[{"type":"string"},{"type":"integer"}]}': "common",
    '{"properties":' * 200 + "{}" + "}" * 200: "deeper", '{"items":' * 100 + "{}" + "}" * 100: "deeper", '{"type":"string","pattern":"' + "(" * 200 + '"}': "deep",
}


class Library:
    def __init__(self):
        self.ggml = C.CDLL(os.path.join(BUILD, "lib", "libggml.so"), mode=C.RTLD_GLOBAL)
        self.lib = C.CDLL(os.path.join(BUILD, "lib", "libllama.so"))
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
        self.ggml.ggml_last_error.restype = C.c_char_p
        self.lib.llama_json_schema_to_grammar.argtypes = [C.c_char_p, C.c_char_p, C.c_int32]

    def grammar(self, schema):
        n = self.lib.llama_json_schema_to_grammar(schema.encode(), None, 0)
        if n < 0:
            raise ValueError(self.ggml.ggml_last_error().decode())
        buf = C.create_string_buffer(n + 1)
        assert self.lib.llama_json_schema_to_grammar(schema.encode(), buf, n + 1) == n
        return buf.value.decode()


def accepts(grammar, texts):
    """By the test program that matches whole texts."""
    data = grammar.encode() + b"\0" + b"".join(t.encode() + b"\0" for t in texts)
    p = subprocess.run([os.path.join(BUILD, "bin", "grammar-match")], input=data, capture_output=True, timeout=120)
    assert p.returncode == 0, p.stderr.decode()
    return [c == "1" for c in p.stdout.decode()]


# ---- documents -----------------------------------------------------------------------------------------------------------------
def text(rng, lo, hi):
    return "".join(rng.choice("abz XY09\u00e9\u4e2d\U0001f642\"\\/\n\t_") for _ in range(rng.randint(lo, hi)))


def anything(rng, depth=0):
    k = rng.randrange(7 if depth < 2 else 5)
    return [None, True, rng.randint(-999, 999), round(rng.uniform(-9, 9), 3), text(rng, 0, 5)][k] if k < 5 else \
        [anything(rng, depth + 1) for _ in range(rng.randrange(3))] if k == 5 else {text(rng, 1, 4): anything(rng, depth + 1) for _ in range(rng.randrange(3))}


def matching(rng, pattern):
    """Text for the patterns above."""
    return {"^[A": lambda: rng.choice(["AB-123", "ZZ-9999x", "QA-000yyy"]), "a[^": lambda: rng.choice(["xxa\n\u00e9c"[0:3] + "azc", "a\\c", "aac!", "b\"z", "z"]),
            "^\\\"": lambda: rng.choice(["\"ab_1\\ \u00e9.", "\"x\\.\u00e9.", "\"Z\\\t\u00e9."])}[pattern[:3]]()


def make(rng, s, root, depth=0):
    if s is True or s == {}:
        return anything(rng, 1)
    if "$ref" in s:
        target = root
        for k in s["$ref"][2:].split("/"):
            target = target[k]
        return make(rng, target, root, depth + 1)
    if "allOf" in s:
        return {"a": rng.randint(2, 30), "b": rng.random() < 0.5}
    for k in ("anyOf", "oneOf"):
        if k in s and "properties" in s:
            base = {n: make(rng, v, root) for n, v in s["properties"].items()}
            one = rng.choice(s[k])
            return {**base, **{n: make(rng, v, root) for n, v in one["properties"].items()}}
        if k in s:
            return make(rng, s[k][-1] if depth > 6 else rng.choice(s[k]), root, depth + 1)
    if "enum" in s:
        t = s.get("type")
        return rng.choice([v for v in s["enum"] if not t or isinstance(v, (str, int)) and not isinstance(v, bool)])
    if "const" in s:
        return s["const"]
    t = s["type"] if isinstance(s["type"], str) else rng.choice(s["type"])
    if t == "integer":
        lo, hi = s.get("minimum", -10**6), s.get("maximum", 10**6)
        hi = s["exclusiveMaximum"] - 1 if "exclusiveMaximum" in s else hi
        return rng.choice([lo, hi, rng.randint(lo, hi)])
    if t == "number":
        lo, hi = s.get("minimum", s.get("exclusiveMinimum", -100)), s.get("maximum", s.get("exclusiveMaximum", 100))
        x = rng.choice([round(rng.uniform(lo, hi), 3), rng.randint(lo + 1, hi - 1), float(rng.randint(lo + 1, hi - 1)), s.get("minimum", s.get("maximum"))])
        return x if x not in (s.get("exclusiveMinimum"), s.get("exclusiveMaximum")) else 1
    if t == "string":
        if "pattern" in s:
            return matching(rng, s["pattern"])
        f = s.get("format")
        date = "%04d-%02d-%02d" % (rng.randint(1, 9999), rng.randint(1, 12), rng.randint(1, 28)) if rng.random() < 0.8 else rng.choice(["2024-02-29", "2000-02-29", "1999-12-31", "2023-04-30"])
        time = "%02d:%02d:%02d%s%s" % (rng.randint(0, 23), rng.randint(0, 59), rng.randint(0, 59), rng.choice(["", ".5", ".123456"]), rng.choice(["Z", "+02:00", "-11:30"]))
        if f:
            return {"date": date, "time": time, "date-time": date + "T" + time, "uuid": "%08x-%04x-%04x-%04x-%012x" % tuple(rng.getrandbits(b) for b in (32, 16, 16, 16, 48))}[f]
        return text(rng, s.get("minLength", 0), s.get("maxLength", 8))
    if t == "array":
        n = rng.randint(s.get("minItems", 0), s.get("maxItems", len(s.get("prefixItems", [])) + (3 if s.get("items") is not False else 0)))
        pre = s.get("prefixItems", [])
        return [make(rng, pre[i] if i < len(pre) else s.get("items", True), root, depth + 1) for i in range(n)]
    if t == "object":
        if "properties" not in s and "additionalProperties" not in s:
            return {text(rng, 1, 3): anything(rng, 1) for _ in range(rng.randrange(3))}
        out = {k: make(rng, v, root, depth + 1) for k, v in s.get("properties", {}).items() if k in s.get("required", []) or rng.random() < 0.5}
        if isinstance(s.get("additionalProperties"), dict):
            for _ in range(rng.randrange(3)):
                k = rng.choice(["", "aa", "abc", "b", "\u00e9", "\u00e9\"", "q\"\\\n", "A"])
                out[k] = make(rng, s["additionalProperties"], root, depth + 1)
        return out
    return rng.random() < 0.5 if t == "boolean" else None


def change(rng, v):
    """Something near it."""
    if isinstance(v, dict) and v and rng.random() < 0.8:
        k = rng.choice(list(v))
        r = rng.randrange(3)
        return {a: b for a, b in v.items() if a != k} if r == 0 else {**v, k: change(rng, v[k])} if r == 1 else {**v, rng.choice(["zz", "a", "abx", k + "x"]): anything(rng, 1)}
    if isinstance(v, list) and rng.random() < 0.8:
        r = rng.randrange(3)
        return v[:-1] if r == 0 else v + [anything(rng, 1)] if r == 1 else [change(rng, x) for x in v]
    if isinstance(v, str):
        return rng.choice([v + "x", v[1:], v.upper(), v.replace("0", "7"), v + v, "", 5, v[:-1] + "9", v[:5] + "99" + v[7:]])
    if isinstance(v, (int, float)) and not isinstance(v, bool):
        return rng.choice([-v, v + 1, v - 1, v * 10, v * 1000 + 7, str(v), v + 0.5])
    return anything(rng)


def in_order(s, v, judge):
    return judge.is_valid(v)


def nullable(s):
    """OpenAPI's word, for the judge."""
    if isinstance(s, dict):
        s = {k: nullable(v) for k, v in s.items()}
        if s.pop("nullable", False):
            s["type"] = [s["type"], "null"]
    return s


def writings(v):
    return [json.dumps(v, ensure_ascii=False), json.dumps(v), json.dumps(v, ensure_ascii=False, separators=(",", ":")), json.dumps(v, ensure_ascii=False, indent=2)]


def plain_keys(v):
    """json.dumps without ensure_ascii=False writes names in \\u escapes, which grammars accept only in values."""
    return json.dumps(v).isascii() and not any(ord(c) > 126 for c in json.dumps(v, ensure_ascii=False))


def check(lib, name, s):
    rng = random.Random(name)
    judge = jsonschema.Draft202012Validator(nullable(s), format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    grammar = lib.grammar(json.dumps(s))
    good, bad = [], []
    for _ in range(N_DOCS):
        v = make(rng, s, s)
        assert judge.is_valid(v), f"the test's own document {v!r}"
        good += [w for i, w in enumerate(writings(v)) if i != 1 or plain_keys(v)]
        for _ in range(6):
            v = change(rng, v)
            if not judge.is_valid(v):
                bad += writings(v)
                break
    good, bad = list(dict.fromkeys(good)), list(dict.fromkeys(bad))
    bad += [w[:-1] for w in good[:10] if not is_json(w[:-1])] + [w + "," for w in good[:5]]
    for w, ok in zip(good, accepts(grammar, good)):
        assert ok, f"refuses {w}"
    for w, ok in zip(bad, accepts(grammar, bad)):
        assert not ok, f"accepts {w}"
    return f"{len(good)} accepted, {len(bad)} refused"


def is_json(w):
    try:
        json.loads(w)
        return True
    except ValueError:
        return False


def generates(name, s, seed):
    judge = jsonschema.Draft202012Validator(nullable(s), format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    p = subprocess.run([os.path.join(BUILD, "bin", "lamina"), "run", "-m", MODEL, "-q", "-p", f"An example ({name}) as JSON: ", "-n", "250", "-s", str(seed), "--temp", "0.9", "--no-display-prompt",
                        "-j", json.dumps(s)], capture_output=True, timeout=300)
    assert p.returncode == 0, p.stderr.decode()
    out = p.stdout.decode()
    try:
        v = json.loads(out)
    except ValueError:
        raise AssertionError(f"no JSON: {out[:300]!r}")
    judge.validate(v)
    return out.strip()[:60].replace("\n", " ")


def main():
    lib, failed, n = Library(), 0, 0

    def case(what, fn):
        nonlocal failed, n
        n += 1
        try:
            said = fn()
        except (AssertionError, ValueError, jsonschema.ValidationError) as err:
            failed += 1
            said = f"{type(err).__name__} {str(err)[:300]}"
            print(f"FAIL {what}: {said}", flush=True)
            return
        print(f"ok   {what}: {said}", flush=True)

    for name, s in SCHEMAS.items():
        case(name, lambda: check(lib, name, s))
    for schema, place in REFUSED.items():
        def refused():
            try:
                lib.grammar(schema)
            except ValueError as err:
                assert "schema: " in str(err) and place in str(err), f"says {err}"
                return str(err)[:100]
            raise AssertionError("is taken")
        case(schema[:60], refused)
    for name in ("person", "tuple", "pattern", "date-time", "uuid", "across", "fractions", "any of", "one of with more", "all of", "nullable", "typed enum", "array"):
        for seed in (1, 2):
            case(f"{name}, generated", lambda: generates(name, SCHEMAS[name], seed))
    print(f"{n - failed} passed, {failed} failed")
    sys.exit(failed != 0)


main()
