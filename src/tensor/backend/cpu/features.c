// What the processor has, for programs that print it. Settled by base/cpu; 1 or 0.
#include "ggml-cpu.h"
#include "base/cpu.h"

int ggml_cpu_has_sse3(void) { return cpu_has(CPU_SSE3); }
int ggml_cpu_has_ssse3(void) { return cpu_has(CPU_SSSE3); }
int ggml_cpu_has_avx(void) { return cpu_has(CPU_AVX); }
int ggml_cpu_has_avx_vnni(void) { return cpu_has(CPU_AVX_VNNI); }
int ggml_cpu_has_avx2(void) { return cpu_has(CPU_AVX2); }
int ggml_cpu_has_bmi2(void) { return cpu_has(CPU_BMI2); }
int ggml_cpu_has_f16c(void) { return cpu_has(CPU_F16C); }
int ggml_cpu_has_fma(void) { return cpu_has(CPU_FMA); }
int ggml_cpu_has_avx512(void) { return cpu_has(CPU_AVX512); }
int ggml_cpu_has_avx512_vbmi(void) { return cpu_has(CPU_AVX512_VBMI); }
int ggml_cpu_has_avx512_vnni(void) { return cpu_has(CPU_AVX512_VNNI); }
int ggml_cpu_has_avx512_bf16(void) { return cpu_has(CPU_AVX512_BF16); }
int ggml_cpu_has_amx_int8(void) { return cpu_has(CPU_AMX_INT8); }
int ggml_cpu_has_neon(void) { return cpu_has(CPU_NEON); }
int ggml_cpu_has_arm_fma(void) { return cpu_has(CPU_NEON); }  // part of the base instruction set of AArch64
int ggml_cpu_has_dotprod(void) { return cpu_has(CPU_DOTPROD); }
int ggml_cpu_has_matmul_int8(void) { return cpu_has(CPU_I8MM); }
int ggml_cpu_has_sve(void) { return cpu_has(CPU_SVE); }

// Kinds of processors and libraries that no kernel of this build makes use of.
int ggml_cpu_has_fp16_va(void) { return 0; }
int ggml_cpu_get_sve_cnt(void) { return 0; }
int ggml_cpu_has_sme(void) { return 0; }
int ggml_cpu_has_sme2(void) { return 0; }
int ggml_cpu_has_riscv_v(void) { return 0; }
int ggml_cpu_get_rvv_vlen(void) { return 0; }
int ggml_cpu_has_vsx(void) { return 0; }
int ggml_cpu_has_vxe(void) { return 0; }
int ggml_cpu_has_wasm_simd(void) { return 0; }
int ggml_cpu_has_llamafile(void) { return 0; }

// Everything is made ready at first use.
void ggml_cpu_init(void) {}
