// See sample.h.
#include "sample/sample.h"
#include <sys/random.h>
#include <time.h>

static uint64_t splitmix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint32_t system_seed(void) {
    uint32_t seed = 0;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        seed = (uint32_t) splitmix((uint64_t) t.tv_nsec ^ (uint64_t) t.tv_sec << 30);
    }
    return seed == LLAMA_DEFAULT_SEED ? 1 : seed;
}

static uint32_t next(struct rng *r) {
    uint64_t s = r->state;
    r->state = s * 6364136223846793005u + 1442695040888963407u;
    uint32_t x = (uint32_t) ((s >> 18 ^ s) >> 27), rot = (uint32_t) (s >> 59);
    return x >> rot | x << (-rot & 31);
}

void rng_start(struct rng *r, uint32_t seed) {
    r->seed = seed == LLAMA_DEFAULT_SEED ? system_seed() : seed;
    r->state = splitmix(r->seed);
    next(r);
}

double rng_uniform(struct rng *r) {
    uint64_t hi = next(r) >> 5, lo = next(r) >> 6;
    return (double) (hi << 26 | lo) * 0x1p-53;
}
