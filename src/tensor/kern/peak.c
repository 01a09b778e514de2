// Loops that keep the multipliers busy and do nothing else, and one that reads memory in order.
#include "kern/peak.h"
#include "kern/mm_simd.h"

#define N 16
// The compiler must neither drop the results nor move them out of registers.
#define KEEP(x) __asm__ volatile("" : "+" REG(x))
#if defined(__x86_64__) && !defined(ISA_IS_scalar)
#define REG(x) "x"(x)
#elif defined(__aarch64__) && !defined(ISA_IS_scalar)
#define REG(x) "w"(x)
#endif

#if defined(REG)
static double f32(int64_t n) {
    vf acc[N], a = vf_set1(0.5f), b = vf_set1(1e-3f);
    UNROLL for (int i = 0; i < N; i++) acc[i] = vf_set1((float) i);
    for (int64_t k = 0; k < n; k++) {
        UNROLL for (int i = 0; i < N; i++) {
            acc[i] = vf_fma(a, b, acc[i]);
            KEEP(acc[i]);
        }
    }
    return 2.0 * (double) n * N * VF_N;
}

#if defined(__AVX512VNNI__)
#define I8_DOT(acc, a, b) _mm512_dpbusd_epi32(acc, a, b)
#elif defined(VI_)
#define I8_DOT(acc, a, b) VI_(add_epi32)(acc, VI_(madd_epi16)(VI_(maddubs_epi16)(a, b), VI_(set1_epi16)(1)))
#elif defined(__ARM_FEATURE_DOTPROD)
#define I8_DOT(acc, a, b) vdotq_s32(acc, vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b))
#else
#define I8_DOT(acc, a, b)                                                                                                   \
    vpadalq_s16(vpadalq_s16(acc, vmull_s8(vget_low_s8(vreinterpretq_s8_s32(a)), vget_low_s8(vreinterpretq_s8_s32(b)))),     \
                vmull_high_s8(vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b)))
#endif

static double i8(int64_t n) {
    vi acc[N], a = vi_set1(0x01020304), b = vi_set1(0x03010201);
    UNROLL for (int i = 0; i < N; i++) acc[i] = vi_set1(i);
    for (int64_t k = 0; k < n; k++) {
        KEEP(a);
        UNROLL for (int i = 0; i < N; i++) {
            acc[i] = I8_DOT(acc[i], a, b);
            KEEP(acc[i]);
        }
    }
    return 2.0 * (double) n * N * VF_N * 4;
}

#if defined(__AVX512BF16__)
static double bf16(int64_t n) {
    __m512 acc[N];
    __m512bh a = (__m512bh) _mm512_set1_epi32(0x3f003f00), b = (__m512bh) _mm512_set1_epi32(0x3a003a00);
    UNROLL for (int i = 0; i < N; i++) acc[i] = _mm512_set1_ps((float) i);
    for (int64_t k = 0; k < n; k++) {
        UNROLL for (int i = 0; i < N; i++) {
            acc[i] = _mm512_dpbf16_ps(acc[i], a, b);
            KEEP(acc[i]);
        }
    }
    return 2.0 * (double) n * N * VF_N * 2;
}
#else
static double bf16(int64_t n) { return f32(n); }
#endif

static double read_all(const void *p, size_t bytes) {
    const float *x = p;
    vi s = vi_set1(0);
    const size_t n = bytes / 256 * 64;
    for (size_t i = 0; i < n; i += 64) {
        UNROLL for (size_t j = 0; j < 64; j += VF_N) s = vi_xor(s, vi_load(x + i + j));
    }
    KEEP(s);
    return (double) (n * sizeof(float));
}
#else
static double f32(int64_t n) {
    float acc[N] = {0};
    for (int64_t k = 0; k < n; k++) {
        for (int i = 0; i < N; i++) acc[i] = acc[i] * 0.5f + 1e-3f;
        __asm__ volatile("" : : "r"(acc) : "memory");
    }
    return 2.0 * (double) n * N;
}
static double bf16(int64_t n) { return f32(n); }
static double i8(int64_t n) {
    int32_t acc[N] = {0};
    int8_t a[4] = {1, 2, 3, 4}, b[4] = {1, 1, 2, 2};
    for (int64_t k = 0; k < n; k++) {
        __asm__ volatile("" : : "r"(a), "r"(b) : "memory");
        for (int i = 0; i < N; i++) acc[i] += a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
    }
    __asm__ volatile("" : : "r"(acc) : "memory");
    return 2.0 * (double) n * N * 4;
}
static double read_all(const void *p, size_t bytes) {
    const uint64_t *x = p;
    uint64_t s = 0;
    for (size_t i = 0; i < bytes / 256 * 32; i++) s ^= x[i];
    __asm__ volatile("" : : "r"(s));
    return (double) (bytes / 256 * 256);
}
#endif

const struct kern_peak ISA_SYM(kern_peak) = {f32, bf16, i8, read_all};
