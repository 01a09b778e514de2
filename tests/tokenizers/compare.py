#!/usr/bin/env python3
"""compare.py [-n STRINGS] [--ids PROGRAM] [--kinds spm,ugm,wpm,bpe] [--shared DIR]: our token ids against the reference libraries'.

Trains small models on local text with the packages sentencepiece (SPM, UGM) and tokenizers (WPM), writes each as a GGUF file, and
compares the ids of random strings; BPE compares the vocabularies of DIR/vocab with tokenizers. PROGRAM is tests/tokenizers/ids.c,
built when not given. Needs Python packages sentencepiece and tokenizers (pip install, in a virtual environment)."""
import argparse, os, random, struct, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
u32 = lambda v: struct.pack('<I', v)
u64 = lambda v: struct.pack('<Q', v)
S = lambda b: u64(len(b)) + b


def value(v):
    if isinstance(v, bool): return u32(7) + bytes([v])
    if isinstance(v, int): return u32(4) + u32(v)
    if isinstance(v, str): return u32(8) + S(v.encode())
    if isinstance(v, bytes): return u32(9) + u32(0) + u64(len(v)) + v
    if isinstance(v[0], str): return u32(9) + u32(8) + u64(len(v)) + b''.join(S(x.encode('utf-8', 'surrogateescape')) for x in v)
    if isinstance(v[0], float): return u32(9) + u32(6) + u64(len(v)) + struct.pack('<%df' % len(v), *v)
    return u32(9) + u32(5) + u64(len(v)) + struct.pack('<%di' % len(v), *v)


def write_gguf(path, keys):
    with open(path, 'wb') as f:
        f.write(b'GGUF' + u32(3) + u64(0) + u64(len(keys)))
        for k, v in keys.items(): f.write(S(k.encode()) + value(v))


def our_ids(program, model, strings):
    data = b''.join(u32(len(s)) + s for s in strings)
    out = subprocess.run([program, model], input=data, stdout=subprocess.PIPE, check=True).stdout
    at, res = 0, []
    for _ in strings:
        n, = struct.unpack_from('<I', out, at)
        res.append(list(struct.unpack_from('<%di' % n, out, at + 4)))
        at += 4 + 4 * n
    return res


def corpus():
    import pydoc_data.topics as topics
    return '\n'.join(topics.topics.values())


WORDS = None
ODD = [' ', '  ', '   ', '\n', '\t', '\u3000', '\u00a0', '!', '!!!!!!', '...', 'é', 'É', 'ö', 'ß', 'İ', 'ﬁ', '½', '²', '①', 'Ａ', '１', '中', '文字', 'ひらがな',
       'カタカナ', 'ｶﾅ', '한국어', '🦙', '😶‍🌫️', 'a\u0301', '\u0301', 'Ω', 'Å', '\u2581', '<unk>', '<s>', '<0x41>', "don't", '[UNK]', '‧', '—', '“q”', '\u200b', '\u00ad', '\x01', '\x7f',
       'ǅ', 'Kantō', 'lǜshi', 'Goražde', 'Modrić', '台北‧08月20日', 'x=1;', '0', '42', '3.14', '_', '$', '+', 'ĲĲ', '𝔘𝔫', '\ufffd']


def random_string(rng):
    parts = []
    for _ in range(rng.randrange(0, 12)):
        r = rng.random()
        if r < 0.5: parts.append(rng.choice(WORDS))
        elif r < 0.8: parts.append(rng.choice(ODD))
        elif r < 0.9: parts.append(''.join(chr(rng.choice([rng.randrange(32, 127), rng.randrange(160, 0x250), rng.randrange(0x370, 0x600),
                                                         rng.randrange(0x4e00, 0x4e80), rng.randrange(0xac00, 0xac80)])) for _ in range(rng.randrange(1, 6))))
        else: parts.append(' ')
        if rng.random() < 0.5: parts.append(' ')
    return ''.join(parts)


def report(name, strings, ours, theirs):
    bad = [i for i in range(len(strings)) if ours[i] != theirs[i]]
    print(f'{name}: {len(strings)} strings, {len(bad)} differ', flush=True)
    for i in bad[:5]: print(f'  {strings[i]!r}\n    ours   {ours[i]}\n    theirs {theirs[i]}')
    return len(bad)


def sentencepiece_model(kind, tmp, text, **options):
    import sentencepiece as sp
    path = os.path.join(tmp, kind)
    with open(path + '.txt', 'w') as f: f.write(text)
    sp.SentencePieceTrainer.train(input=path + '.txt', model_prefix=path, vocab_size=2000, model_type={'ugm': 'unigram', 'spm': 'bpe'}[kind],
                                  minloglevel=2, **options)
    p = sp.SentencePieceProcessor(model_file=path + '.model')
    from sentencepiece import sentencepiece_model_pb2 as pb
    proto = pb.ModelProto.FromString(open(path + '.model', 'rb').read())
    types = [{1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6}[x.type] for x in proto.pieces]
    keys = {'general.architecture': 'llama', 'tokenizer.ggml.model': {'ugm': 't5', 'spm': 'llama'}[kind],
            'tokenizer.ggml.tokens': [x.piece for x in proto.pieces], 'tokenizer.ggml.scores': [float(x.score) for x in proto.pieces],
            'tokenizer.ggml.token_type': types, 'tokenizer.ggml.unknown_token_id': p.unk_id(), 'tokenizer.ggml.add_space_prefix': True,
            'tokenizer.ggml.remove_extra_whitespaces': bool(proto.normalizer_spec.remove_extra_whitespaces)}
    if kind == 'ugm': keys['tokenizer.ggml.precompiled_charsmap'] = proto.normalizer_spec.precompiled_charsmap
    write_gguf(path + '.gguf', keys)
    return path + '.gguf', p


def compare_sentencepiece(kind, a, tmp, rng):
    bad = 0
    for options in ([dict(byte_fallback=True), dict(byte_fallback=False), dict(byte_fallback=True, remove_extra_whitespaces=False, user_defined_symbols=['<sep>'])]
                    if kind == 'ugm' else [dict(byte_fallback=True, normalization_rule_name='identity', remove_extra_whitespaces=False)]):
        model, p = sentencepiece_model(kind, tmp, corpus(), **options)
        strings = [random_string(rng) for _ in range(a.n)]
        bad += report(f'{kind} {options}', strings, our_ids(a.ids, model, [s.encode() for s in strings]), p.encode(strings))
    return bad


def compare_wpm(a, tmp, rng):
    from tokenizers import BertWordPieceTokenizer
    t = BertWordPieceTokenizer(lowercase=True)
    path = os.path.join(tmp, 'wpm.txt')
    with open(path, 'w') as f: f.write(corpus())
    t.train([path], vocab_size=3000, show_progress=False)
    vocab = sorted(t.get_vocab().items(), key=lambda x: x[1])
    special = {'[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'}
    tokens = [w if w in special else w[2:] if w.startswith('##') else '\u2581' + w for w, _ in vocab]
    write_gguf(path + '.gguf', {'general.architecture': 'bert', 'tokenizer.ggml.model': 'bert', 'tokenizer.ggml.tokens': tokens,
               'tokenizer.ggml.token_type': [3 if w in special else 1 for w, _ in vocab], 'tokenizer.ggml.unknown_token_id': t.token_to_id('[UNK]')})
    strings = [random_string(rng).replace('[UNK]', '[UNKx]') for _ in range(a.n)]
    theirs = [e.ids for e in t.encode_batch(strings, add_special_tokens=False)]
    return report('wpm', strings, our_ids(a.ids, path + '.gguf', [s.encode() for s in strings]), theirs)


def read_vocab(path):
    """Tokens, merges, types of a GGUF file, read here so that no other library is needed."""
    d = open(path, 'rb').read()
    at = 8
    n_tensor, n_kv = struct.unpack_from('<QQ', d, at)
    at += 16
    size = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
    def string():
        nonlocal at
        n, = struct.unpack_from('<Q', d, at)
        at += 8 + n
        return d[at - n:at]
    out = {}
    for _ in range(n_kv):
        key = string().decode()
        t, = struct.unpack_from('<I', d, at)
        at += 4
        if t == 8: out[key] = string()
        elif t == 9:
            t, n = struct.unpack_from('<IQ', d, at)
            at += 12
            if t == 8: out[key] = [string() for _ in range(n)]
            else:
                out[key] = struct.unpack_from('<%d%s' % (n, {4: 'I', 5: 'i', 6: 'f'}.get(t, 'B')), d, at) if t in (4, 5, 6) else None
                at += n * size[t]
        else: at += size[t]
    return out


def compare_bpe(a, tmp, rng):
    from tokenizers import AddedToken, Tokenizer, Regex, models, pre_tokenizers
    import json
    pre = json.load(open(os.path.join(a.shared, 'vocab', 'pre_tokenizers.json')))
    bad = 0
    for name in ('gpt-2', 'qwen2', 'llama-bpe', 'starcoder', 'deepseek-coder', 'deepseek-llm', 'falcon'):
        path = os.path.join(a.shared, 'vocab', f'ggml-vocab-{name}.gguf')
        v = read_vocab(path)
        info = pre['pre'][v['tokenizer.ggml.pre'].decode()]
        types = v['tokenizer.ggml.token_type']
        vocab = {t.decode(): i for i, t in enumerate(v['tokenizer.ggml.tokens']) if types[i] in (1, 4)}
        merges = [tuple(m.decode().split(' ', 1)) for m in v['tokenizer.ggml.merges']]
        merges = [m for m in merges if m[0] in vocab and m[1] in vocab and m[0] + m[1] in vocab]
        t = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=info.get('ignore_merges', False)))
        steps = [pre_tokenizers.Split(Regex(p), 'isolated') for p in pre['patterns'][info['type']]]
        t.pre_tokenizer = pre_tokenizers.Sequence(steps + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        t.add_tokens([AddedToken(x.decode(), normalized=False) for i, x in enumerate(v['tokenizer.ggml.tokens']) if types[i] == 4])
        strings = [random_string(rng) for _ in range(a.n)]
        theirs = [e.ids for e in t.encode_batch(strings, add_special_tokens=False)]
        bad += report(f'bpe {name}', strings, our_ids(a.ids, path, [s.encode() for s in strings]), theirs)
    return bad


def build(tmp):
    out = os.path.join(tmp, 'ids')
    lib = os.path.join(ROOT, 'build', 'lib')
    subprocess.run(['cc', '-O2', '-D_GNU_SOURCE', *(f'-I{ROOT}/{d}' for d in ('include', 'src', 'src/llm')), f'{ROOT}/tests/tokenizers/ids.c', f'{lib}/libllama.a',
                    f'{lib}/libggml.a', '-o', out, '-lpcre2-32', '-lpcre2-8', '-lutf8proc', '-lm', '-lpthread', '-ldl', '-Wl,--unresolved-symbols=ignore-all'], check=True)
    return out


def main():
    global WORDS
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument('-n', type=int, default=20000)
    ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('--ids')
    ap.add_argument('--kinds', default='spm,ugm,wpm,bpe')
    ap.add_argument('--shared', default=os.environ.get('LAMINA_SHARED', os.path.join(ROOT, '..', 'shared')))
    a = ap.parse_args()
    WORDS = corpus().split()
    rng, bad = random.Random(a.seed), 0
    with tempfile.TemporaryDirectory() as tmp:
        a.ids = a.ids or build(tmp)
        for kind in a.kinds.split(','):
            bad += {'spm': lambda: compare_sentencepiece('spm', a, tmp, rng), 'ugm': lambda: compare_sentencepiece('ugm', a, tmp, rng),
                    'wpm': lambda: compare_wpm(a, tmp, rng), 'bpe': lambda: compare_bpe(a, tmp, rng)}[kind]()
    sys.exit(1 if bad else 0)


if __name__ == '__main__': main()
