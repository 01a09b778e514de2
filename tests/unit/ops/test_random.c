// Operations on shapes, layouts and values that nobody would write down as a case: sizes of 0 and 1, broadcasts in any dimension, views
// of views, infinities and not-a-numbers. Each result is compared with the definition computed in double precision, element by element,
// and must have the same bits with 1, 2, 3 and 5 threads. The levels of the instruction set are compared by running this at each of them.
#include "support/random_op.h"

// ---- element by element ---------------------------------------------------------------------------------------------------

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double gelu(double x) {
    return isinf(x) ? (x > 0 ? x : NAN) : 0.5 * x * (1 + tanh(0.79788456080286535588 * x * (1 + 0.044715 * x * x)));
}
static double gelu_erf(double x) { return 0.5 * x * (1 + erf(x / sqrt(2.0))); }
static double gelu_quick(double x) { return x * sigmoid(1.702 * x); }
static double silu(double x) { return x * sigmoid(x); }

static double unary(enum ggml_unary_op op, double x) {
    switch (op) {
        case GGML_UNARY_OP_ABS: return fabs(x);
        case GGML_UNARY_OP_SGN: return x > 0 ? 1 : x < 0 ? -1 : 0;
        case GGML_UNARY_OP_NEG: return -x;
        case GGML_UNARY_OP_STEP: return x > 0;
        case GGML_UNARY_OP_TANH: return tanh(x);
        case GGML_UNARY_OP_ELU: return x > 0 ? x : expm1(x);
        case GGML_UNARY_OP_RELU: return x > 0 ? x : 0;
        case GGML_UNARY_OP_SIGMOID: return sigmoid(x);
        case GGML_UNARY_OP_GELU: return gelu(x);
        case GGML_UNARY_OP_GELU_QUICK: return gelu_quick(x);
        case GGML_UNARY_OP_GELU_ERF: return gelu_erf(x);
        case GGML_UNARY_OP_SILU: return silu(x);
        case GGML_UNARY_OP_HARDSWISH: return x * fmin(1, fmax(0, (x + 3) / 6));
        case GGML_UNARY_OP_HARDSIGMOID: return fmin(1, fmax(0, (x + 3) / 6));
        case GGML_UNARY_OP_EXP: return exp(x);
        case GGML_UNARY_OP_EXPM1: return expm1(x);
        case GGML_UNARY_OP_SOFTPLUS: return x > 20 ? x : log1p(exp(x));
        case GGML_UNARY_OP_FLOOR: return floor(x);
        case GGML_UNARY_OP_CEIL: return ceil(x);
        case GGML_UNARY_OP_ROUND: return round(x);
        case GGML_UNARY_OP_TRUNC: return trunc(x);
        default: return NAN;
    }
}

// Where the definition itself gives no number (infinity times zero) or what a comparison with a NaN gives is the field's convention, any
// answer that is not a wrong number will do.
static bool open_question(double x, double want) { return isnan(x) || (isinf(x) && isnan(want)) || (isinf(x) && want == 0); }

static void test_unary(void **state) {
    CASES(400) {
        C *c = begin();
        int64_t ne[4];
        shape(ne, 20000);
        const enum ggml_unary_op op = (enum ggml_unary_op) rnd(GGML_UNARY_OP_COUNT);
        if (op != GGML_UNARY_OP_XIELU) {
            T *a = tensor(c, some_float(), ne, 0, rnd(2) ? 1 : 0), *o = ggml_unary(c, a, op);
            now = ggml_unary_op_name(op);
            compute(c, o);
            WANT(o, 3e-6, {
                const double x = AT(a, i0, i1, i2, i3);
                want = unary(op, x);
                if (open_question(x, want)) continue;
            });
        }
        ggml_free(c);
    }
    CASES(200) {
        C *c = begin();
        int64_t ne[4];
        shape(ne, 20000);
        T *a = tensor(c, some_float(), ne, 0, rnd(2)), *o;
        const double s = real() * 3, b = real() * 3;
        const int kind = (int) rnd(6);
        const bool inplace = rnd(3) == 0;
        double *x = malloc(sizeof(double) * (size_t) (ggml_nelements(a) + 1));
        int64_t n = 0;
        EACH(ne) x[n++] = AT(a, i0, i1, i2, i3);
        static const char *const names[] = {"sqr", "sqrt", "log", "scale_bias", "clamp", "leaky_relu"};
        now = names[kind];
        switch (kind) {
            case 0: o = inplace ? ggml_sqr_inplace(c, a) : ggml_sqr(c, a); break;
            case 1: o = inplace ? ggml_sqrt_inplace(c, a) : ggml_sqrt(c, a); break;
            case 2: o = inplace ? ggml_log_inplace(c, a) : ggml_log(c, a); break;
            case 3:
                o = inplace ? ggml_scale_bias_inplace(c, a, (float) s, (float) b)
                            : ggml_scale_bias(c, a, (float) s, (float) b);
                break;
            case 4:
                o = inplace ? ggml_clamp_inplace(c, a, (float) -fabs(s), (float) fabs(b))
                            : ggml_clamp(c, a, (float) -fabs(s), (float) fabs(b));
                break;
            default: o = ggml_leaky_relu(c, a, (float) s, inplace);
        }
        compute(c, o);
        n = 0;
        WANT(o, 2e-6, {
            const double v = x[n++];
            switch (kind) {
                case 0: want = v * v; break;
                case 1: want = sqrt(v); break;
                case 2: want = log(v); break;
                case 3: want = v * (double) (float) s + (double) (float) b; break;
                case 4: want = isnan(v) ? v : fmin(fmax(v, -fabs(s)), fabs(b)); break;
                default: want = v > 0 ? v : v * (double) (float) s;
            }
            if (fabs(want) > 3e38 && !isinf(want)) want = want > 0 ? INFINITY : -INFINITY;
        });
        free(x);
        ggml_free(c);
    }
}

static void test_binary(void **state) {
    CASES(400) {
        C *c = begin();
        int64_t ne[4], nb[4];
        shape(ne, 20000);
        for (int i = 0; i < 4; i++) nb[i] = ne[i];
        for (int i = 0; i < 4; i++) {  // a divisor of the size: 1, itself, or half of it
            const uint32_t k = rnd(3);
            nb[i] = ne[i] == 0 ? 1 : k == 0 ? 1 : k == 1 || ne[i] % 2 ? ne[i] : ne[i] / 2;
        }
        const int kind = (int) rnd(4);
        T *a = tensor(c, some_float(), ne, 0, rnd(2)), *b = tensor(c, some_float(), nb, 0, rnd(2));
        double *x = malloc(sizeof(double) * (size_t) (ggml_nelements(a) + 1));
        int64_t n = 0;
        EACH(ne) x[n++] = AT(a, i0, i1, i2, i3);
        T *(*const ops[2][4])(C *, T *, T *) = {{ggml_add, ggml_sub, ggml_mul, ggml_div},
                                                {ggml_add_inplace, ggml_sub_inplace, ggml_mul_inplace, ggml_div_inplace}};
        static const char *const names[] = {"add", "sub", "mul", "div"};
        now = names[kind];
        T *o = ops[rnd(3) == 0][kind](c, a, b);
        compute(c, o);
        n = 0;
        WANT(o, 1e-6, {
            const double v = x[n++], w = AT(b, i0 % nb[0], i1 % nb[1], i2 % nb[2], i3 % nb[3]);
            want = kind == 0 ? v + w : kind == 1 ? v - w : kind == 2 ? v * w : v / w;
            if (!isinf(want) && fabs(want) > 3.4028e38) want = want > 0 ? INFINITY : -INFINITY;
        });
        free(x);
        ggml_free(c);
    }
}

static void test_glu(void **state) {
    CASES(200) {
        C *c = begin();
        int64_t ne[4], half[4];
        shape(half, 8000);
        memcpy(ne, half, sizeof ne);
        ne[0] *= 2;
        static const enum ggml_glu_op ops[] = {GGML_GLU_OP_REGLU, GGML_GLU_OP_GEGLU, GGML_GLU_OP_SWIGLU,
                                               GGML_GLU_OP_GEGLU_ERF, GGML_GLU_OP_GEGLU_QUICK};
        const enum ggml_glu_op op = ops[rnd(5)];
        const bool swapped = rnd(2), split = rnd(2);
        const enum ggml_type type = some_float();
        T *a = tensor(c, type, split ? half : ne, ROWS, 0), *b = split ? tensor(c, type, half, ROWS, 0) : NULL;
        T *o = split ? ggml_glu_split(c, a, b, op) : ggml_glu(c, a, op, swapped);
        now = "glu";
        compute(c, o);
        WANT(o, 3e-6, {
            const int64_t h = half[0];
            const double x = split ? AT(a, i0, i1, i2, i3) : AT(a, i0 + (swapped ? h : 0), i1, i2, i3);
            const double y = split ? AT(b, i0, i1, i2, i3) : AT(a, i0 + (swapped ? 0 : h), i1, i2, i3);
            const double f = op == GGML_GLU_OP_REGLU       ? fmax(x, 0)
                             : op == GGML_GLU_OP_GEGLU     ? gelu(x)
                             : op == GGML_GLU_OP_SWIGLU    ? silu(x)
                             : op == GGML_GLU_OP_GEGLU_ERF ? gelu_erf(x)
                                                           : gelu_quick(x);
            want = f * y;
        });
        ggml_free(c);
    }
}

// ---- moving elements ------------------------------------------------------------------------------------------------------

static void test_copies(void **state) {
    CASES(300) {
        C *c = begin();
        int64_t ne[4], to[4];
        shape(ne, 20000);
        T *a = tensor(c, some_float(), ne, 0, rnd(2));
        const int64_t n = ggml_nelements(a);
        // the same elements in another shape: cpy takes them in logical order
        memcpy(to, ne, sizeof to);
        if (rnd(2))
            to[0] = n, to[1] = to[2] = to[3] = 1;
        else if (rnd(2))
            to[0] = ne[1], to[1] = ne[0];
        T *d = tensor(c, some_float(), to, 0, 0), *o = ggml_cpy(c, a, d);
        double *x = malloc(sizeof(double) * (size_t) (n + 1));
        int64_t k = 0;
        EACH(ne) x[k++] = AT(a, i0, i1, i2, i3);
        now = "cpy";
        compute(c, o);
        k = 0;
        WANT(o, 0, want = x[k++]);
        T *(*const whole[])(C *, T *) = {ggml_cont, ggml_dup};
        o = whole[rnd(2)](c, a);
        now = "cont";
        compute(c, o);
        k = 0;
        WANT(o, 0, want = x[k++]);
        if (n) {
            o = ggml_cont_2d(c, a, n / ne[0], ne[0]);
            now = "cont_2d";
            compute(c, o);
            k = 0;
            WANT(o, 0, want = x[k++]);
        }
        free(x);
        ggml_free(c);
    }
}

static void test_rows(void **state) {
    CASES(200) {
        C *c = begin();
        int64_t ne[4], ids[4];
        shape(ne, 20000);
        if (ne[1] == 0) ne[1] = 1;
        static const enum ggml_type types[] = {F32, F16, BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q5_1};
        const enum ggml_type type = types[rnd(6)];
        const bool quantized = ggml_is_quantized(type);
        if (quantized) ne[0] = 32 * (1 + rnd(4));
        ids[0] = rnd(20), ids[1] = ne[2], ids[2] = ne[3], ids[3] = 1;
        T *a, *idx = tensor(c, rnd(2) ? I32 : I64, ids, 0, 0);
        EACH(ids) put(idx, place(idx, i0, i1, i2, i3), rnd((uint32_t) ne[1]));
        float row[128];
        if (quantized) {
            a = ggml_new_tensor_4d(c, type, ne[0], ne[1], ne[2], ne[3]);
            for (int64_t r = 0; r < ggml_nrows(a); r++) {
                for (int64_t i = 0; i < ne[0]; i++) row[i] = (float) real();
                ggml_quantize_chunk(type, row, (char *) a->data + (size_t) r * a->nb[1], 0, 1, ne[0], NULL);
            }
        } else {
            a = tensor(c, type, ne, ROWS, rnd(2));
        }
        T *o = ggml_get_rows(c, a, idx);
        now = "get_rows";
        compute(c, o);
        WANT(o, quantized ? 1e-6 : 0, {
            const char *p = place(a, 0, (int64_t) AT(idx, i1, i2, i3, 0), i2, i3);
            if (!quantized) {
                want = get(a, p + (size_t) i0 * a->nb[0]);
            } else {
                ggml_get_type_traits(type)->to_float(p, row, ne[0]);
                want = (double) row[i0];
            }
        });
        if (!quantized && ggml_nelements(a)) {  // and back: later rows win
            int64_t src[4] = {ne[0], ids[0], ne[2], ne[3]};
            T *b = tensor(c, F32, src, ROWS, 0), *d = tensor(c, type, ne, ROWS, 0);
            T *before = ggml_cont(c, d);
            now = "cont";
            compute(c, before);
            o = ggml_set_rows(c, d, b, idx);
            now = "set_rows";
            compute(c, o);
            WANT(o, 0, {
                want = AT(before, i0, i1, i2, i3);
                for (int64_t r = 0; r < ids[0]; r++)
                    if ((int64_t) AT(idx, r, i2, i3, 0) == i1) want = AT(b, i0, r, i2, i3);
            });
        }
        ggml_free(c);
    }
}

static void test_joined(void **state) {
    CASES(200) {
        C *c = begin();
        int64_t ne[4], nb[4], big[4];
        shape(ne, 8000);
        memcpy(nb, ne, sizeof nb);
        const int dim = (int) rnd(4);
        nb[dim] = rnd(5);
        const enum ggml_type type = rnd(2) ? F32 : rnd(2) ? F16 : I32;
        T *a = tensor(c, type, ne, 0, 0), *b = tensor(c, type, nb, 0, 0), *o = ggml_concat(c, a, b, dim);
        now = "concat";
        compute(c, o);
        WANT(o, 0, {
            int64_t i[4] = {i0, i1, i2, i3};
            const bool second = i[dim] >= ne[dim];
            if (second) i[dim] -= ne[dim];
            want = AT(second ? b : a, i[0], i[1], i[2], i[3]);
        });
        for (int i = 0; i < 4; i++) big[i] = ne[i] * (1 + rnd(2));
        o = ggml_repeat_4d(c, a, big[0], big[1], big[2], big[3]);
        now = "repeat";
        compute(c, o);
        WANT(o, 0, want = AT(a, i0 % ne[0], i1 % ne[1], i2 % ne[2], i3 % ne[3]));
        if (type == F32) {
            T *w = tensor(c, F32, big, 0, 0);
            o = ggml_repeat_back(c, w, a);
            now = "repeat_back";
            compute(c, o);
            WANT(o, 1e-5,
                 for (int64_t k3 = i3; k3 < big[3];
                      k3 += ne[3]) for (int64_t k2 = i2; k2 < big[2];
                                        k2 += ne[2]) for (int64_t k1 = i1; k1 < big[1];
                                                          k1 += ne[1]) for (int64_t k0 = i0; k0 < big[0]; k0 += ne[0])
                     want += AT(w, k0, k1, k2, k3));
        }
        ggml_free(c);
    }
}

static void test_windows(void **state) {
    CASES(200) {
        C *c = begin();
        int64_t ne[4], nb[4], at[4];
        do shape(ne, 8000);
        while (ne[0] * ne[1] * ne[2] * ne[3] == 0);
        for (int i = 0; i < 4; i++) nb[i] = 1 + rnd((uint32_t) ne[i]), at[i] = rnd((uint32_t) (ne[i] - nb[i] + 1));
        T *a = tensor(c, F32, ne, PLAIN, 0), *b = tensor(c, F32, nb, 0, 0);
        size_t offset = 0;
        for (int i = 0; i < 4; i++) offset += (size_t) at[i] * a->nb[i];
        const bool add = rnd(2);
        T *o = (add ? ggml_acc : ggml_set)(c, a, b, a->nb[1], a->nb[2], a->nb[3], offset);
        now = add ? "acc" : "set";
        compute(c, o);
        WANT(o, 1e-6, {
            const bool in = i0 >= at[0] && i0 < at[0] + nb[0] && i1 >= at[1] && i1 < at[1] + nb[1] && i2 >= at[2] &&
                            i2 < at[2] + nb[2] && i3 >= at[3] && i3 < at[3] + nb[3];
            want = AT(a, i0, i1, i2, i3);
            if (in) want = (add ? want : 0) + AT(b, i0 - at[0], i1 - at[1], i2 - at[2], i3 - at[3]);
        });
        ggml_free(c);
    }
}

static int64_t mod(int64_t a, int64_t n) { return ((a % n) + n) % n; }

static void test_shifted(void **state) {
    CASES(300) {
        C *c = begin();
        int64_t ne[4];
        int l[4], r[4];
        do shape(ne, 5000);
        while (ne[0] * ne[1] * ne[2] * ne[3] == 0);
        for (int i = 0; i < 4; i++) l[i] = (int) rnd(3), r[i] = (int) rnd(3);
        T *a = tensor(c, some_float(), ne, 0, rnd(2)), *o;
        const bool around = rnd(2) && l[0] <= ne[0] && l[1] <= ne[1] && l[2] <= ne[2] && l[3] <= ne[3];
        o = (around ? ggml_pad_ext_circular : ggml_pad_ext)(c, a, l[0], r[0], l[1], r[1], l[2], r[2], l[3], r[3]);
        now = "pad_ext";
        compute(c, o);
        WANT(o, 0, {
            const int64_t k[4] = {i0 - l[0], i1 - l[1], i2 - l[2], i3 - l[3]};
            const bool in = k[0] >= 0 && k[0] < ne[0] && k[1] >= 0 && k[1] < ne[1] && k[2] >= 0 && k[2] < ne[2] &&
                            k[3] >= 0 && k[3] < ne[3];
            if (in || around) want = AT(a, mod(k[0], ne[0]), mod(k[1], ne[1]), mod(k[2], ne[2]), mod(k[3], ne[3]));
        });
        int s[4];
        for (int i = 0; i < 4; i++) s[i] = (int) rnd(2 * (uint32_t) ne[i] - 1) - (int) ne[i] + 1;
        o = ggml_roll(c, a, s[0], s[1], s[2], s[3]);
        now = "roll";
        compute(c, o);
        WANT(o, 0, want = AT(a, mod(i0 - s[0], ne[0]), mod(i1 - s[1], ne[1]), mod(i2 - s[2], ne[2]), mod(i3 - s[3], ne[3])));
        const int p0 = (int) rnd((uint32_t) ne[0]), p1 = (int) rnd((uint32_t) ne[0]);
        o = ggml_pad_reflect_1d(c, a, p0, p1);
        now = "pad_reflect_1d";
        compute(c, o);
        WANT(o, 0, {
            int64_t k = i0 - p0;
            k = k < 0 ? -k : k >= ne[0] ? 2 * (ne[0] - 1) - k : k;
            want = AT(a, k, i1, i2, i3);
        });
        const int n_past = (int) rnd(5);
        const bool zero = rnd(2);
        o = (zero ? ggml_diag_mask_zero : ggml_diag_mask_inf)(c, a, n_past);
        now = "diag_mask";
        compute(c, o);
        WANT(o, 0, want = i0 > n_past + i1 ? (zero ? 0 : -INFINITY) : AT(a, i0, i1, i2, i3));
        ggml_free(c);
    }
}

// ---- along rows -----------------------------------------------------------------------------------------------------------

static void test_reduce(void **state) {
    CASES(300) {
        C *c = begin();
        int64_t ne[4];
        shape(ne, 20000);
        T *a = tensor(c, some_float(), ne, 0, 0), *o = ggml_sum_rows(c, a);
        now = "sum_rows";
        compute(c, o);
        WANT(o, 1e-4, for (int64_t k = 0; k < ne[0]; k++) want += AT(a, k, i1, i2, i3));
        if (ne[0]) {
            o = ggml_mean(c, a);
            now = "mean";
            compute(c, o);
            WANT(o, 1e-5, for (int64_t k = 0; k < ne[0]; k++) want += AT(a, k, i1, i2, i3) / (double) ne[0]);
        }
        o = ggml_cumsum(c, a);
        now = "cumsum";
        compute(c, o);
        WANT(o, 1e-5, for (int64_t k = 0; k <= i0; k++) want += AT(a, k, i1, i2, i3));
        double all = 0;
        EACH(ne) all += AT(a, i0, i1, i2, i3);
        o = ggml_sum(c, a);
        now = "sum";
        compute(c, o);
        WANT(o, 1e-4, want = all);
        ggml_free(c);
    }
}

static void test_order(void **state) {
    CASES(300) {
        C *c = begin();
        int64_t ne[4];
        shape(ne, 8000);
        if (ne[0] == 0) ne[0] = 1;
        T *a = tensor(c, some_float(), ne, 0, (int) rnd(3));
        const bool down = rnd(2);
        T *o = ggml_argsort(c, a, down ? GGML_SORT_ORDER_DESC : GGML_SORT_ORDER_ASC);
        now = "argsort";
        compute(c, o);
        WANT(o, 0, {  // stable order: a place is the number of elements before
            const double got_at = AT(o, i0, i1, i2, i3), v = AT(a, (int64_t) got_at, i1, i2, i3);
            for (int64_t k = 0; k < ne[0]; k++) {
                const double w = AT(a, k, i1, i2, i3);
                const bool before = isnan(v)   ? !isnan(w) || k < (int64_t) got_at
                                    : isnan(w) ? false
                                    : w == v   ? k < (int64_t) got_at
                                    : down     ? w > v
                                               : w < v;
                want += before;
            }
            if ((int64_t) want != i0)
                fail_msg("argsort: element %d of %d is in place %d, should be %g", (int) got_at, (int) ne[0], (int) i0,
                         want);
            want = got_at;
        });
        const int k = 1 + (int) rnd((uint32_t) ne[0]);
        o = ggml_top_k(c, a, k);
        T *flat = ggml_cont(c, o);
        now = "top_k";
        compute(c, flat);
        WANT(flat, 0, {  // values in order, none larger left out
            want = AT(flat, i0, i1, i2, i3);
            const double v = AT(a, (int64_t) want, i1, i2, i3);
            int64_t larger = 0;
            for (int64_t j = 0; j < ne[0]; j++) larger += isnan(v) ? !isnan(AT(a, j, i1, i2, i3)) : AT(a, j, i1, i2, i3) > v;
            if (larger > i0) fail_msg("top_k: %d larger than number %d", (int) larger, (int) i0);
            for (int64_t j = 0; j < i0; j++) assert_true(AT(flat, j, i1, i2, i3) != want);
        });
        int64_t flat_ne[4] = {ne[0], ne[1], 1, 1};
        T *b = tensor(c, F32, flat_ne, 0, (int) rnd(3));
        o = ggml_argmax(c, b);
        now = "argmax";
        compute(c, o);
        WANT(o, 0, {
            int64_t best = -1;
            for (int64_t j = 0; j < ne[0]; j++)
                if (!isnan(AT(b, j, i0, 0, 0)) && (best < 0 || AT(b, j, i0, 0, 0) > AT(b, best, i0, 0, 0))) best = j;
            want = best < 0 ? AT(o, i0, 0, 0, 0) : (double) best;  // nothing but NaN: any index inside
            assert_true(AT(o, i0, 0, 0, 0) >= 0 && AT(o, i0, 0, 0, 0) < (double) ne[0]);
        });
        ggml_free(c);
    }
}

static void test_norms(void **state) {
    CASES(300) {
        C *c = begin();
        int64_t ne[4];
        shape(ne, 20000);
        const double eps = rnd(3) ? 1e-5 : 0;
        const bool zeros = rnd(6) == 0;
        T *a = tensor(c, some_float(), ne, 0, 0), *o;
        if (zeros) EACH(ne) put(a, place(a, i0, i1, i2, i3), 0);
        if (zeros && eps == 0) {
            ggml_free(c);
            continue;
        }
        const int kind = (int) rnd(3);
        static const char *const names[] = {"norm", "rms_norm", "l2_norm"};
        now = names[kind];
        o = (kind == 0 ? ggml_norm : kind == 1 ? ggml_rms_norm : ggml_l2_norm)(c, a, (float) eps);
        compute(c, o);
        WANT(o, 1e-5, {
            double mean = 0, var = 0;
            const double n = (double) ne[0], x = AT(a, i0, i1, i2, i3);
            if (kind == 0)
                for (int64_t k = 0; k < ne[0]; k++) mean += AT(a, k, i1, i2, i3) / n;
            for (int64_t k = 0; k < ne[0]; k++) var += pow(AT(a, k, i1, i2, i3) - mean, 2);
            if (kind == 0 && var / n < 1e-9 && eps == 0) continue;  // equal values: nothing but rounding errors is left
            want = kind == 2 ? x / fmax(sqrt(var), eps) : (x - mean) / sqrt(var / n + (double) (float) eps);
            if (kind == 0 && ne[0] == 1) want = 0;
        });
        int groups = 1 + (int) rnd((uint32_t) ne[2] ? (uint32_t) ne[2] : 1);
        if (ne[0] * ne[1] * ne[2] * ne[3] > 1 && !zeros && ne[0] * ne[1] > 1) {
            o = ggml_group_norm(c, a, groups, 1e-5f);
            now = "group_norm";
            compute(c, o);
            const int64_t per = (ne[2] + groups - 1) / groups;
            WANT(o, 1e-4, {
                const int64_t c0 = i2 / per * per, c1 = c0 + per < ne[2] ? c0 + per : ne[2];
                double mean = 0, var = 0;
                const double n = (double) (ne[0] * ne[1] * (c1 - c0));
                for (int64_t k2 = c0; k2 < c1; k2++)
                    for (int64_t k = 0; k < ne[0] * ne[1]; k++) mean += AT(a, k % ne[0], k / ne[0], k2, i3) / n;
                for (int64_t k2 = c0; k2 < c1; k2++)
                    for (int64_t k = 0; k < ne[0] * ne[1]; k++)
                        var += pow(AT(a, k % ne[0], k / ne[0], k2, i3) - mean, 2) / n;
                want = (AT(a, i0, i1, i2, i3) - mean) / sqrt(var + 1e-5);
            });
        }
        ggml_free(c);
    }
}

static void test_soft_max(void **state) {
    CASES(300) {
        C *c = begin();
        int64_t ne[4], nm[4];
        shape(ne, 20000);
        if (rnd(2)) ne[2] = 1 + rnd(9);
        nm[0] = ne[0], nm[1] = ne[1] + rnd(3), nm[2] = rnd(2) ? ne[2] : 1, nm[3] = rnd(2) ? ne[3] : 1;
        if (nm[2] == 0) nm[2] = 1;
        if (nm[3] == 0) nm[3] = 1;
        T *a = tensor(c, rnd(3) ? F32 : F16, ne, 0, 0), *mask = rnd(3) ? tensor(c, rnd(2) ? F32 : F16, nm, 0, 0) : NULL;
        if (mask)
            EACH(nm) if (rnd(3) == 0 || (rnd(4) == 0 && i1 % 3 == 0)) put(mask, place(mask, i0, i1, i2, i3), -INFINITY);
        if (mask && rnd(4) == 0)
            EACH(nm) if (i1 == 0) put(mask, place(mask, i0, i1, i2, i3), -INFINITY);  // a row without anything
        const double scale = 0.1 + fabs(real()), bias = mask && rnd(2) ? 8 : 0;
        int64_t ns[4] = {ne[2], 1, 1, 1};
        T *sinks = rnd(3) == 0 && ne[2] ? tensor(c, F32, ns, PLAIN, 0) : NULL;
        T *o = ggml_soft_max_ext(c, a, mask, (float) scale, (float) bias);
        if (sinks) ggml_soft_max_add_sinks(o, sinks);
        now = "soft_max_ext";
        compute(c, o);
        int64_t log2_heads = 1;
        while (2 * log2_heads <= ne[2]) log2_heads *= 2;
        WANT(o, 5e-6, {
            const double slope = bias == 0 ? 1
                                 : i2 < log2_heads
                                     ? pow(pow(2, -bias / (double) log2_heads), (double) i2 + 1)
                                     : pow(pow(2, -bias / 2 / (double) log2_heads), (double) (2 * (i2 - log2_heads) + 1));
            double max = sinks ? AT(sinks, i2, 0, 0, 0) : -INFINITY, sum = 0, mine = 0;
            for (int pass = 0; pass < 2; pass++) {
                for (int64_t k = 0; k < ne[0]; k++) {
                    double v = AT(a, k, i1, i2, i3) * (double) (float) scale;
                    if (mask) v += slope * AT(mask, k, i1, i2 % nm[2], i3 % nm[3]);
                    if (pass == 0)
                        max = fmax(max, v);
                    else
                        sum += exp(v - max);
                    if (pass == 1 && k == i0) mine = exp(v - max);
                }
                if (max == -INFINITY) break;
            }
            if (sinks) sum += exp(AT(sinks, i2, 0, 0, 0) - max);
            want = max == -INFINITY ? 0 : mine / sum;
        });
        ggml_free(c);
    }
}

static void test_rope(void **state) {
    CASES(200) {
        C *c = begin();
        int64_t ne[4] = {2 * (1 + rnd(40)), rnd(6), rnd(12), 1 + rnd(3)}, np[4] = {ne[2], 1, 1, 1},
                nf[4] = {ne[0] / 2 + rnd(3), 1, 1, 1};
        const int mode = rnd(2) ? GGML_ROPE_TYPE_NEOX : GGML_ROPE_TYPE_NORMAL,
                  n_dims = 2 * (1 + (int) rnd((uint32_t) ne[0] / 2));
        T *a = tensor(c, rnd(2) ? F32 : F16, ne, 0, 0), *pos = tensor(c, I32, np, PLAIN, 0),
          *f = rnd(2) ? tensor(c, F32, nf, PLAIN, 0) : NULL;
        if (f) EACH(nf) put(f, place(f, i0, i1, i2, i3), 1 + fabs(real()));
        const double base = 10000, scale = 0.25 + fabs(real()), factor = 0.5 + fabs(real());
        const bool back = rnd(3) == 0;
        T *o = (back ? ggml_rope_ext_back : ggml_rope_ext)(c, a, pos, f, n_dims, mode, 0, (float) base, (float) scale, 0,
                                                           (float) factor, 32, 1);
        now = back ? "rope_ext_back" : "rope_ext";
        compute(c, o);
        WANT(o, 4e-5, {
            const bool neox = mode == GGML_ROPE_TYPE_NEOX;
            const int64_t j = neox ? i0 % (n_dims / 2) : i0 / 2, p = neox ? j : 2 * j, q = neox ? j + n_dims / 2 : 2 * j + 1;
            double t = AT(pos, i2, 0, 0, 0) * pow(base, -2.0 * (double) j / n_dims) / (f ? AT(f, j, 0, 0, 0) : 1) *
                       (double) (float) scale;
            if (back) t = -t;
            if (i0 >= n_dims) {
                want = AT(a, i0, i1, i2, i3);
            } else {
                const double x = AT(a, p, i1, i2, i3), y = AT(a, q, i1, i2, i3);
                want = (i0 == p ? x * cos(t) - y * sin(t) : x * sin(t) + y * cos(t)) * (double) (float) factor;
            }
        });
        ggml_free(c);
    }
}

// ---- products -------------------------------------------------------------------------------------------------------------

static void test_products(void **state) {
    CASES(300) {
        C *c = begin();
        const int64_t r2 = 1 + rnd(3), r3 = 1 + rnd(2), k = rnd(20) ? side() : 0, x = 1 + rnd(2), y = 1 + rnd(2);
        int64_t na[4] = {k, rnd(40), x, y}, nb[4] = {k, rnd(40), x * r2, y * r3};
        T *a = tensor(c, rnd(2) ? F32 : F16, na, ROWS, 0), *b = tensor(c, F32, nb, 0, 0), *o = ggml_mul_mat(c, a, b);
        now = "mul_mat";
        compute(c, o);
        WANT(o, a->type == F32 ? 1e-4 : 2e-2,
             for (int64_t l = 0; l < k; l++) want += AT(a, l, i0, i2 / r2, i3 / r3) * AT(b, l, i1, i2, i3));
        int64_t pa[4] = {na[1], k, x, y}, pb[4] = {nb[1], k, x * r2, y * r3};
        T *p = tensor(c, F32, pa, ROWS, 0), *q = tensor(c, F32, pb, 0, 0);
        o = ggml_out_prod(c, p, q);
        now = "out_prod";
        compute(c, o);
        WANT(o, 1e-4, for (int64_t l = 0; l < k; l++) want += AT(p, i0, l, i2 / r2, i3 / r3) * AT(q, i1, l, i2, i3));
        const int64_t n_expert = 1 + rnd(4), n_slot = 1 + rnd(3), n_token = rnd(6);
        int64_t ne[4] = {k, na[1], n_expert, 1}, nx[4] = {k, rnd(2) ? 1 : n_slot, n_token, 1},
                ni[4] = {n_slot, n_token, 1, 1};
        T *e = tensor(c, F32, ne, ROWS, 0), *in = tensor(c, F32, nx, 0, 0), *ids = tensor(c, I32, ni, 0, 0);
        EACH(ni) put(ids, place(ids, i0, i1, i2, i3), rnd((uint32_t) n_expert));
        o = ggml_mul_mat_id(c, e, in, ids);
        now = "mul_mat_id";
        compute(c, o);
        WANT(o, 1e-4,
             for (int64_t l = 0; l < k; l++) want +=
             AT(e, l, i0, (int64_t) AT(ids, i1, i2, 0, 0), 0) * AT(in, l, i1 % nx[1], i2, 0));
        ggml_free(c);
    }
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unary),   cmocka_unit_test(test_binary),   cmocka_unit_test(test_glu),
        cmocka_unit_test(test_copies),  cmocka_unit_test(test_rows),     cmocka_unit_test(test_joined),
        cmocka_unit_test(test_windows), cmocka_unit_test(test_shifted),  cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_order),   cmocka_unit_test(test_norms),    cmocka_unit_test(test_soft_max),
        cmocka_unit_test(test_rope),    cmocka_unit_test(test_products),
    };
    const int status = cmocka_run_group_tests(tests, NULL, NULL);
    print_message("%d elements compared\n", n_compared);
    return status;
}
