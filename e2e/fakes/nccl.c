/* An NCCL for tests: ranks are processes of one machine that share a file; all-reduce of floats by sum
 * and everything that only moves bytes. FAKE_VERSION is the version's code.
 * FAKE_FAULT=KIND[:RANK] plays a failure on one rank: init-hang, init-error, no-interface, async, stuck,
 * wrong, crash, crash-init, version. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sched.h>
#include <unistd.h>

#define SLOT (8u << 20)
#define RANKS 8
typedef struct { char b[128]; } uid;
typedef struct { atomic_uint came, turn; atomic_uint full[RANKS][RANKS]; uint64_t size[RANKS][RANKS]; } head;
typedef struct { int rank, n; head *h; char *slots, *boxes; int calls; } comm;
static char last[256];
static int group; static struct { int send; char *b; size_t n; int peer; size_t at; } ops[256]; static int nops; static comm *gc;
static const size_t W[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
static int env(const char *n, int d) { const char *v = getenv(n); return v ? atoi(v) : d; }
static int fault(const char *kind, int rank) {
    const char *f = getenv("FAKE_FAULT"); size_t k = strlen(kind);
    if (!f || strncmp(f, kind, k) || (f[k] && f[k] != ':')) return 0;
    return !f[k] || atoi(f + k + 1) == rank;
}
static FILE *out(void) { static FILE *f; if (!f) { const char *p = getenv("NCCL_DEBUG_FILE"); f = p ? fopen(p, "w") : 0; if (f) setlinebuf(f); } return f; }
#define INFO(...) do { FILE *f = out(); if (f && getenv("NCCL_DEBUG")) { fprintf(f, "fake:%d:%d [0] NCCL INFO ", getpid(), getpid()); fprintf(f, __VA_ARGS__); fputc('\n', f); } } while (0)
#define WARN(...) do { snprintf(last, sizeof last, __VA_ARGS__); FILE *f = out(); if (f) fprintf(f, "\nfake:%d:%d [0] fake.cc:1 NCCL WARN %s\n", getpid(), getpid(), last); } while (0)

int ncclGetVersion(int *v) { *v = env("FAKE_VERSION", 22809); if (fault("version", env("FAKE_RANK", -1))) *v -= 100; return 0; }
const char *ncclGetErrorString(int c) {
    static const char *t[] = {"no error", "unhandled cuda error", "unhandled system error", "internal error", "invalid argument", "invalid usage", "remote process exited or there was a network error"};
    return c < 7 ? t[c] : "unknown result code";
}
const char *ncclGetLastError(void *c) { (void)c; return last; }
int ncclGetUniqueId(uid *id) {
    if (fault("no-interface", 0)) { WARN("Bootstrap : no socket interface found"); return 2; }
    memset(id, 0, sizeof *id); snprintf(id->b, 128, "/dev/shm/fake-nccl-%d", getpid());
    int fd = open(id->b, O_CREAT | O_RDWR | O_TRUNC, 0600); if (fd < 0) return 2;
    if (ftruncate(fd, sizeof(head) + (size_t)SLOT * (RANKS + RANKS * RANKS))) return 2;
    close(fd); return 0;
}
static void barrier(comm *c) {
    unsigned turn = atomic_load(&c->h->turn);
    if (atomic_fetch_add(&c->h->came, 1) + 1 == (unsigned)c->n) { atomic_store(&c->h->came, 0); atomic_fetch_add(&c->h->turn, 1); }
    else while (atomic_load(&c->h->turn) == turn) sched_yield();
}
int ncclCommInitRank(comm **out_comm, int n, uid id, int rank) {
    if (fault("init-hang", rank)) { INFO("Bootstrap: Using eth0:10.0.0.1<0>"); for (;;) pause(); }
    if (fault("init-error", rank)) { WARN("Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1000"); return 5; }
    if (fault("crash-init", rank)) { WARN("about to crash"); abort(); }
    int fd = open(id.b, O_RDWR); if (fd < 0) { WARN("can not open %s", id.b); return 2; }
    char *m = mmap(0, sizeof(head) + (size_t)SLOT * (RANKS + RANKS * RANKS), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0); close(fd);
    comm *c = calloc(1, sizeof *c); c->rank = rank; c->n = n; c->h = (head *)m; c->slots = m + sizeof(head); c->boxes = c->slots + (size_t)SLOT * RANKS;
    INFO("NCCL version 2.28.9+cuda13.0"); INFO("NET/Socket : Using [0]lo:127.0.0.1<0>"); INFO("Using network Socket");
    for (int ch = 0; ch < 2; ch++) {
        INFO("Channel %02d/0 : %d[0] -> %d[0] [send] via NET/Socket/0", ch, rank, (rank + 1) % n);
        INFO("Channel %02d/0 : %d[0] -> %d[0] [receive] via NET/Socket/0", ch, (rank + n - 1) % n, rank);
    }
    barrier(c); if (rank == 0) unlink(id.b); *out_comm = c; return 0;
}
int ncclCommInitRankConfig(comm **o, int n, uid id, int r, void *cfg) {
    uint32_t *w = cfg; if (w && w[2] != 0xcafebeef) return 4; return ncclCommInitRank(o, n, id, r);
}
int ncclCommAbort(comm *c) { (void)c; return 0; }
int ncclCommGetAsyncError(comm *c, int *e) {
    *e = 0; if (fault("async", c->rank) && c->calls > 8) { WARN("socketProgress: Connection closed by remote peer fake<1>"); *e = 6; } return 0;
}
static int begin(comm *c, const char *name, size_t bytes) {
    c->calls++;
    if (c->calls > 8 && fault("crash", c->rank)) raise(SIGKILL);
    if (c->calls > 8 && (fault("stuck", c->rank) || fault("async", c->rank))) { setenv("FAKE_STUCK", "1", 1); return 1; }
    if (bytes > SLOT) { WARN("%zu bytes are too much for a fake", bytes); return 1; }
    INFO("%s: %zu Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}", name, bytes); return 0;
}
/* everybody shows what it has; everybody takes what it needs */
static char *slot(comm *c, int r) { return c->slots + (size_t)SLOT * r; }
static void show(comm *c, const void *s, size_t n) { memcpy(slot(c, c->rank), s, n); barrier(c); }
static void damage(comm *c, void *r) { if (c->calls > 8 && fault("wrong", c->rank)) *(char *)r ^= 1; }
static void reduce(comm *c, size_t off, void *r, size_t count, int t) {
    for (size_t i = 0; i < count; i++) {
        if (t == 7) { float a = 0; for (int k = 0; k < c->n; k++) a += ((float *)(slot(c, k) + off))[i]; ((float *)r)[i] = a; }
        else if (t == 8) { double a = 0; for (int k = 0; k < c->n; k++) a += ((double *)(slot(c, k) + off))[i]; ((double *)r)[i] = a; }
        else { uint32_t a = 0; for (int k = 0; k < c->n; k++) a += ((uint32_t *)(slot(c, k) + off))[i]; ((uint32_t *)r)[i] = a; }
    }
}
int ncclAllReduce(const void *s, void *r, size_t n, int t, int o, comm *c, void *st) {
    (void)o; (void)st; if (begin(c, "AllReduce", n * W[t])) return 0;
    show(c, s, n * W[t]); reduce(c, 0, r, n, t); damage(c, r); barrier(c); return 0;
}
int ncclReduce(const void *s, void *r, size_t n, int t, int o, int root, comm *c, void *st) {
    (void)o; (void)st; if (begin(c, "Reduce", n * W[t])) return 0;
    show(c, s, n * W[t]); if (c->rank == root) reduce(c, 0, r, n, t); barrier(c); return 0;
}
int ncclReduceScatter(const void *s, void *r, size_t n, int t, int o, comm *c, void *st) {
    (void)o; (void)st; if (begin(c, "ReduceScatter", n * W[t] * c->n)) return 0;
    show(c, s, n * W[t] * c->n); reduce(c, n * W[t] * c->rank, r, n, t); barrier(c); return 0;
}
int ncclBroadcast(const void *s, void *r, size_t n, int t, int root, comm *c, void *st) {
    (void)st; if (begin(c, "Broadcast", n * W[t])) return 0;
    show(c, s, n * W[t]); memcpy(r, slot(c, root), n * W[t]); barrier(c); return 0;
}
int ncclAllGather(const void *s, void *r, size_t n, int t, comm *c, void *st) {
    (void)st; if (begin(c, "AllGather", n * W[t] * c->n)) return 0;
    show(c, s, n * W[t]); for (int k = 0; k < c->n; k++) memmove((char *)r + k * n * W[t], slot(c, k), n * W[t]); barrier(c); return 0;
}
int ncclGroupStart(void) { group++; return 0; }
static int point(int send, void *b, size_t n, int t, int peer, comm *c) {
    ops[nops].send = send; ops[nops].b = b; ops[nops].n = n * W[t]; ops[nops].at = 0; ops[nops++].peer = peer; gc = c; return 0;
}
int ncclSend(const void *b, size_t n, int t, int peer, comm *c, void *st) { (void)st; return point(1, (void *)b, n, t, peer, c); }
int ncclRecv(void *b, size_t n, int t, int peer, comm *c, void *st) { (void)st; return point(0, b, n, t, peer, c); }
int ncclGroupEnd(void) {
    if (--group || !nops) return 0;
    for (int left = nops; left;) {
        left = 0;
        for (int i = 0; i < nops; i++) {
            if (ops[i].at >= ops[i].n) continue;
            left++;
            int from = ops[i].send ? gc->rank : ops[i].peer, to = ops[i].send ? ops[i].peer : gc->rank;
            char *box = gc->boxes + (size_t)SLOT * (from * RANKS + to); size_t part = ops[i].n - ops[i].at; if (part > SLOT) part = SLOT;
            if (atomic_load(&gc->h->full[from][to]) == (unsigned)!ops[i].send) {
                if (ops[i].send) memcpy(box, ops[i].b + ops[i].at, part); else memcpy(ops[i].b + ops[i].at, box, part);
                ops[i].at += part; atomic_store(&gc->h->full[from][to], ops[i].send);
            }
        }
        sched_yield();
    }
    nops = 0; return 0;
}
