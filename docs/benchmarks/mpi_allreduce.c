/* Times MPI_Allreduce (float, sum, out of place) for each size given: the baseline of run-tcp.
 * Usage: mpi_allreduce SECONDS BYTES... */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double per_call(float *in, float *out, int count, int calls) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int i = 0; i < calls; i++)
        MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return (MPI_Wtime() - begin) / calls;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double seconds = atof(argv[1]);
    for (int a = 2; a < argc; a++) {
        long bytes = atol(argv[a]);
        int count = (int)(bytes / 4);
        float *in = malloc(bytes + 64), *out = malloc(bytes + 64);
        for (int i = 0; i < count; i++)
            in[i] = out[i] = 1;
        /* the warm-up is long: the first calls connect and grow the sockets' buffers */
        double each = per_call(in, out, count, 5);
        each = per_call(in, out, count, 5);
        int total = seconds / each < 2 ? 2 : seconds / each > 1e6 ? 1000000 : (int)(seconds / each);
        MPI_Bcast(&total, 1, MPI_INT, 0, MPI_COMM_WORLD);
        double mean = per_call(in, out, count, total), sum;
        MPI_Reduce(&mean, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0)
            printf("%ld %.2f\n", bytes, sum / ranks * 1e6);
        free(in);
        free(out);
    }
    MPI_Finalize();
}
