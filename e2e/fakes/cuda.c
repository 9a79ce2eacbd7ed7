/* A driver for tests: memory is host memory, streams run at once, the check kernels are plain loops.
 * FAKE_GPUS says how many devices there are, FAKE_MEMORY their memory in bytes. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef uint64_t dptr;
static size_t used;
static int num(const char *name, int otherwise) { const char *v = getenv(name); return v ? atoi(v) : otherwise; }
static size_t memory(void) { const char *v = getenv("FAKE_MEMORY"); return v ? strtoull(v, 0, 10) : 1ull << 32; }

int cuInit(unsigned f) { (void)f; return num("FAKE_GPUS", 2) ? 0 : 100; }
int cuDeviceGetCount(int *n) { *n = num("FAKE_GPUS", 2); return 0; }
int cuDeviceGet(int *d, int i) { *d = i; return i < num("FAKE_GPUS", 2) ? 0 : 101; }
int cuDeviceGetName(char *t, int n, int d) { (void)d; snprintf(t, n, "Fake GPU"); return 0; }
int cuDeviceGetPCIBusId(char *t, int n, int d) { snprintf(t, n, "0000:%02x:00.0", d + 1); return 0; }
int cuDeviceGetAttribute(int *v, int a, int d) { (void)d; *v = a == 16 ? 4 : a == 75 ? 9 : 0; return 0; }
int cuDevicePrimaryCtxRetain(void **c, int d) { (void)d; *c = (void *)1; return 0; }
int cuDevicePrimaryCtxRelease_v2(int d) { (void)d; return 0; }
int cuCtxSetCurrent(void *c) { (void)c; return 0; }
int cuMemGetInfo_v2(size_t *f, size_t *t) { *t = memory(); *f = *t - used; return 0; }
int cuMemAlloc_v2(dptr *p, size_t n) {
    if (used + n > memory()) return 2;
    *p = (dptr)(uintptr_t)malloc(n + 8); *(size_t *)(uintptr_t)*p = n; used += n; return *p ? 0 : 2;
}
int cuMemFree_v2(dptr p) { free((void *)(uintptr_t)p); return 0; }
int cuMemcpyHtoDAsync_v2(dptr d, const void *s, size_t n, void *st) { (void)st; memcpy((void *)(uintptr_t)d, s, n); return 0; }
int cuMemcpyDtoH_v2(void *d, dptr s, size_t n) { memcpy(d, (void *)(uintptr_t)s, n); return 0; }
int cuMemsetD32Async(dptr d, unsigned v, size_t n, void *s) {
    (void)s; uint32_t *p = (uint32_t *)(uintptr_t)d; for (size_t i = 0; i < n; i++) p[i] = v; return 0;
}
int cuStreamCreate(void **s, unsigned f) { (void)f; *s = (void *)2; return 0; }
/* NCCL's side sets this when an operation never ends */
int fake_stuck __attribute__((weak, visibility("default")));
static int stuck(void) { return getenv("FAKE_STUCK") != 0; }
int cuStreamQuery(void *s) { (void)s; return stuck() ? 600 : 0; }
int cuEventCreate(void **e, unsigned f) { (void)f; *e = calloc(1, sizeof(struct timespec)); return 0; }
int cuEventRecord(void *e, void *s) { (void)s; clock_gettime(CLOCK_MONOTONIC, e); return 0; }
int cuEventQuery(void *e) { (void)e; return stuck() ? 600 : 0; }
int cuEventElapsedTime(float *ms, void *a, void *b) {
    struct timespec *x = a, *y = b;
    *ms = (y->tv_sec - x->tv_sec) * 1e3f + (y->tv_nsec - x->tv_nsec) / 1e6f; if (*ms <= 0) *ms = 1e-4f; return 0;
}
int cuModuleLoadData(void **m, const void *t) { *m = (void *)3; return strncmp(t, ".version", 8) ? 218 : 0; }
int cuModuleGetFunction(void **f, void *m, const char *n) { (void)m; *f = strdup(n); return 0; }
static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15ull; x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull; return x ^ (x >> 31);
}
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned sh, void *st, void **p, void **e) {
    (void)gx; (void)gy; (void)gz; (void)bx; (void)by; (void)bz; (void)sh; (void)st; (void)e;
    const char *name = f; int w = name[strlen(name) - 1] - '0';
    char *buf = (char *)(uintptr_t) * (uint64_t *)p[0], *table = (char *)(uintptr_t) * (uint64_t *)p[1];
    uint64_t count = *(uint64_t *)p[2], first = *(uint64_t *)p[3], wrong = 0;
    for (uint64_t i = 0; i < count; i++) {
        char *want = table + (mix(first + i) & 255) * w;
        if (name[0] == 'f') memcpy(buf + i * w, want, w);
        else wrong += memcmp(buf + i * w, want, w) != 0;
    }
    if (name[0] == 'w') *(uint64_t *)(uintptr_t) * (uint64_t *)p[5] += wrong;
    return 0;
}
int cuGetErrorName(int c, const char **t) {
    *t = c == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : c == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_UNKNOWN"; return 0;
}
