/* Which level of x86-64 this processor, and its operating system, offer. */
#ifndef POSTERITY_PROCESSOR_H
#define POSTERITY_PROCESSOR_H

#if defined(__x86_64__)
#include <cpuid.h>

/* Bits of the answers of CPUID that a level wants (System V ABI for x86-64, section 3.1). */
#define PK_FMA_MOVBE_OSXSAVE_AVX_F16C (1u << 12 | 1u << 22 | 1u << 27 | 1u << 28 | 1u << 29)
#define PK_BMI1_AVX2_BMI2 (1u << 3 | 1u << 5 | 1u << 8)
#define PK_LZCNT (1u << 5)
#define PK_AVX512_F_DQ_CD_BW_VL (1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31)
/* Registers that the operating system saves. */
#define PK_SAVES_AVX 0x06u
#define PK_SAVES_AVX512 0xe6u

/* 1, 3 or 4: nothing is compiled for level 2. */
static int pk_processor_level(void)
{
    unsigned a, b, c, d, basic, more, extended, saved, high;
    if (!__get_cpuid(1, &a, &b, &basic, &d) || !__get_cpuid_count(7, 0, &a, &more, &c, &d)
        || !__get_cpuid(0x80000001u, &a, &b, &extended, &d))
        return 1;
    if ((basic & PK_FMA_MOVBE_OSXSAVE_AVX_F16C) != PK_FMA_MOVBE_OSXSAVE_AVX_F16C)
        return 1;
    __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if ((saved & PK_SAVES_AVX) != PK_SAVES_AVX || (more & PK_BMI1_AVX2_BMI2) != PK_BMI1_AVX2_BMI2 || !(extended & PK_LZCNT))
        return 1;
    if ((saved & PK_SAVES_AVX512) != PK_SAVES_AVX512 || (more & PK_AVX512_F_DQ_CD_BW_VL) != PK_AVX512_F_DQ_CD_BW_VL)
        return 3;
    return 4;
}
#else
static int pk_processor_level(void)
{
    return 1;
}
#endif

#endif
