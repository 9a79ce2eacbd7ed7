//! A realistic log for each cause that fixtures/cases does not show, and logs that look alarming
//! and are healthy. Texts are those of NCCL, PyTorch and the plugins; hosts and addresses are made
//! up.

use ncclctl_findings::intake::Intake;
use ncclctl_findings::{Diagnosis, Severity, diagnose};

/// A log, what must be found in it, and what must not.
struct Sample {
    name: &'static str,
    log: &'static str,
    expected: &'static [&'static str],
    must_not: &'static [&'static str],
}

const SAMPLES: &[Sample] = &[
    Sample {
        name: "one name on two machines",
        log: "\
node-a:101:101 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eno1
node-a:101:101 [0] NCCL INFO Bootstrap : Using eno1:10.1.0.1<0>
node-b:102:102 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eno1

node-b:102:102 [0] bootstrap.cc:44 NCCL WARN Bootstrap : no socket interface found
node-b:102:102 [0] NCCL INFO init.cc:98 -> 3",
        expected: &["socket-ifname-mismatch", "socket-ifname-not-found"],
        must_not: &["bootstrap-unreachable"],
    },
    Sample {
        name: "an address as interface",
        log: "\
gpu-a:101:101 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to 192.168.10.4

gpu-a:101:101 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found",
        expected: &["socket-ifname-is-address"],
        must_not: &[],
    },
    Sample {
        name: "bond and its vlans",
        log: "\
k8s-g3:11:11 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to bond0
k8s-g3:11:11 [0] NCCL INFO Bootstrap : Using bond0:10.11.4.30<0>
k8s-g3:11:40 [0] NCCL INFO NET/Socket : Using [0]bond0:10.11.4.30<0> [1]bond0.2093:10.20.93.30<0>
k8s-g3:11:40 [0] NCCL INFO Using network Socket",
        expected: &["ifname-prefix-too-wide"],
        must_not: &["socket-ifname-not-found", "same-subnet-multi-nic"],
    },
    Sample {
        name: "mlx5_1 takes mlx5_10",
        log: "\
h1:11:40 [0] NCCL INFO NCCL_IB_HCA set to mlx5_1
h1:11:40 [0] NCCL INFO NET/IB : Using [0]mlx5_1:1/RoCE [1]mlx5_10:1/RoCE [2]mlx5_11:1/RoCE [RO]; OOB eth0:10.1.0.1<0>
h1:11:40 [0] NCCL INFO Using network IB",
        expected: &["hca-prefix-too-wide"],
        must_not: &[],
    },
    Sample {
        name: "two ports in one subnet",
        log: "\
h1:11:11 [0] NCCL INFO Bootstrap : Using ens1f0:192.168.7.11<0>
h1:11:40 [0] NCCL INFO NET/IB : No device found.
h1:11:40 [0] NCCL INFO NET/Socket : Using [0]ens1f0:192.168.7.11<0> [1]ens1f1:192.168.7.12<0>
h1:11:40 [0] NCCL INFO Using network Socket",
        expected: &["same-subnet-multi-nic"],
        must_not: &["ifname-prefix-too-wide"],
    },
    Sample {
        name: "hosts on different networks",
        log: "\
h1:11:11 [0] NCCL INFO Bootstrap : Using enp5s0:10.1.0.1<0>
h2:12:12 [0] NCCL INFO Bootstrap : Using enp9s0:172.20.3.7<0>

h2:12:30 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.1.0.1<41397> failed : Connection timed out",
        expected: &["wrong-interface-nonroutable"],
        must_not: &["wrong-interface-virtual"],
    },
    Sample {
        name: "a firewall, NCCL 2.29 wording",
        log: "\
h1:11:11 [0] NCCL INFO Bootstrap: Using eth0:10.1.0.1<0>

[2026-02-03 10:00:00] h1:11:40 [0] os/linux.cc:512 NCCL WARN ncclOsSocketPollConnect to 10.1.0.2<40001> returned No route to host, exceeded error retry count after 35 attempts
h1:11:40 [0] NCCL INFO misc/socket.cc:600 -> 6",
        expected: &["bootstrap-unreachable"],
        must_not: &["wrong-interface-nonroutable"],
    },
    Sample {
        name: "the store of rank 0 does not answer",
        log: "\
[rank1]:[W1021 07:08:31.127 socket.cpp:697] [c10d] The client socket has failed to connect to [node-0]:29500 (errno: 110 - Connection timed out).
torch.distributed.DistNetworkError: The client socket has timed out after 600s while trying to connect to (10.0.0.5, 29500).",
        expected: &["bootstrap-unreachable"],
        must_not: &["dns-resolution-failed"],
    },
    Sample {
        name: "two ranks on one GPU",
        log: "\
[rank0]: torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1727, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.19.3
[rank0]: ncclInvalidUsage: This usually reflects invalid usage of NCCL library.
[rank0]: Last error:
[rank0]: Duplicate GPU detected : rank 3 and rank 0 both on CUDA device f000",
        expected: &["duplicate-gpu"],
        must_not: &["peer-died"],
    },
    Sample {
        name: "two ranks on one GPU, NCCL 2.30.7 wording",
        log: "\
[2026-08-03 10:00:00] h1:11:40 [0] init.cc:1020 (initTransportsRank) NCCL WARN Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this.",
        expected: &["duplicate-gpu"],
        must_not: &[],
    },
    Sample {
        name: "locked memory",
        log: "\
libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes.
    This will severely limit memory registrations.
h1:11:40 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.1.0.1<0>

h1:11:50 [0] misc/ibvwrap.cc:252 NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory
h1:11:50 [0] NCCL INFO transport/net_ib.cc:501 -> 2",
        expected: &["memlock-limit"],
        must_not: &["rdma-registration-kernel", "ib-device-not-visible"],
    },
    Sample {
        name: "registration refused by the kernel",
        log: "\
h1:11:40 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.1.0.1<0>
h1:11:40 [0] NCCL INFO NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'

h1:11:50 [0] misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Bad address
h1:11:50 [0] NCCL INFO transport/net_ib.cc:1102 -> 2",
        expected: &["rdma-registration-kernel"],
        must_not: &["memlock-limit"],
    },
    Sample {
        name: "no GID in the pod",
        log: "\
pod-0:11:40 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.244.0.9<0>

pod-0:11:50 [0] misc/ibvwrap.cc:187 NCCL WARN Call to ibv_modify_qp failed with error No such device
pod-0:11:50 [0] NCCL INFO transport/net_ib.cc:410 -> 2",
        expected: &["gid-table-empty"],
        must_not: &["gid-index-wrong", "nic-pair-other-subnet"],
    },
    Sample {
        name: "a pinned slot that is not there",
        log: "\
pod-0:11:40 [0] NCCL INFO NCCL_IB_GID_INDEX set by environment to 3.
pod-0:11:40 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.244.0.9<0>

pod-0:11:50 [0] misc/ibvwrap.cc:187 NCCL WARN Call to ibv_modify_qp failed with error No such device",
        expected: &["gid-index-wrong"],
        must_not: &["gid-table-empty"],
    },
    Sample {
        name: "rails without a route",
        log: "\
h1:11:40 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.1.0.1<0>

[2026-02-03 10:00:00] h1:11:50 [0] misc/ibvwrap.cc:312 NCCL WARN Call to ibv_modify_qp failed with 101 Network is unreachable, on dev mlx5_0:1, curr state INIT, next state RTR, local GID index 3, local GID ::ffff:10.11.1.1, remote GID ::ffff:10.11.2.1",
        expected: &["nic-pair-other-subnet"],
        must_not: &["gid-index-wrong"],
    },
    Sample {
        name: "rings that cross rails",
        log: "\
h1:11:40 [0] NCCL INFO NCCL_CROSS_NIC set by environment to 1.
h1:11:40 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.1.0.1<0>
h1:11:40 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA
h2:12:41 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[0] [receive] via NET/IB/1/GDRDMA

h1:11:50 [0] transport/net_ib.cc:1696 NCCL WARN NET/IB : Got completion from peer 10.1.0.2<40211> with status=12 opcode=0 len=0 vendor err 129 (Send) localGid ::ffff:10.11.1.1 remoteGids::ffff:10.11.2.2 hca mlx5_0",
        expected: &["rail-isolated-cross-nic", "ib-retry-exceeded"],
        must_not: &["gid-index-wrong"],
    },
    Sample {
        name: "a port that flaps",
        log: "\
[2026-02-03 10:00:00] h1:11:50 [0] transport/net_ib/common.cc:33 NCCL WARN NET/IB : mlx5_2:1 Got non-fatal async event: port error(10)

[2026-02-03 10:01:10] h1:11:51 [2] transport/net_ib/p2p.cc:700 NCCL WARN NET/IB: Got completion from peer 10.1.0.2<40211> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RDMA_WRITE(1) reqSize=4096 vendor_err=129 req_type=Send localGid fe80::1 remoteGidsfe80::2 hca mlx5_2",
        expected: &["ib-port-flap", "ib-retry-exceeded"],
        must_not: &["ib-hca-fatal"],
    },
    Sample {
        name: "completions of forgotten requests",
        log: "\
[2026-06-01 10:00:00] h1:11:50 [0] transport/net_ib/p2p.cc:811 (ncclIbTest) NCCL WARN NET/IB: Unknown completion (req=0x7f00 type=2 events=0)",
        expected: &["ib-completion-lost"],
        must_not: &[],
    },
    Sample {
        name: "a short time-out",
        log: "\
h1:11:40 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to 5.
h1:11:40 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.1.0.1<0>
h1:11:40 [0] NCCL INFO Using network IB",
        expected: &["ib-timeout-too-low"],
        must_not: &[],
    },
    Sample {
        name: "one host fell back to sockets",
        log: "\
h1:11:40 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.1.0.1<0>
h1:11:40 [0] NCCL INFO Using network IB
h2:12:41 [0] NCCL INFO NET/IB : No device found.
h2:12:41 [0] NCCL INFO NET/Socket : Using [0]eth0:10.1.0.2<0>
h2:12:41 [0] NCCL INFO Using network Socket",
        expected: &["transport-mixed"],
        must_not: &[],
    },
    Sample {
        name: "two plugins",
        log: "\
h1:11:40 [0] NCCL INFO Using network IBext_v8
h2:12:41 [0] NCCL INFO Using network IB",
        expected: &["net-plugin-mismatch"],
        must_not: &["transport-mixed"],
    },
    Sample {
        name: "a plugin by name that is not there",
        log: "\
p5-1:11:11 [0] NCCL INFO NCCL_NET_PLUGIN set by environment to ofi
p5-1:11:11 [0] NCCL INFO NET/Plugin: Could not find: ofi libnccl-net-ofi.so. Using internal net plugin.
p5-1:11:11 [0] NCCL INFO NET/IB : No device found.
p5-1:11:11 [0] NCCL INFO NET/Socket : Using [0]eth0:10.1.0.1<0>
p5-1:11:11 [0] NCCL INFO Using network Socket",
        expected: &["net-plugin-not-found", "silent-tcp-fallback"],
        must_not: &["ib-device-not-visible"],
    },
    Sample {
        name: "a plugin that does not start",
        log: "\
p5-1:11:11 [0] NCCL INFO Successfully loaded external network plugin /opt/amazon/aws-ofi-nccl/lib/libnccl-net.so
p5-1:11:11 [0] NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.16.0

p5-1:11:11 [0] nccl_net_ofi_rdma_init:7031 NCCL WARN NET/OFI Failed to initialize rdma protocol
p5-1:11:11 [0] NCCL INFO Failed to initialize NET plugin AWS Libfabric
p5-1:11:11 [0] NCCL INFO NET/Socket : Using [0]eth0:10.1.0.1<0>
p5-1:11:11 [0] NCCL INFO Using network Socket",
        expected: &["net-plugin-init-failed"],
        must_not: &[],
    },
    Sample {
        name: "GPUDirect off for want of a module, old NCCL",
        log: "\
NCCL version 2.20.5+cuda12.4
l1:11:40 [3] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.1.0.1<0>
l1:11:40 [3] NCCL INFO Using network IB
l1:11:40 [3] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'
l1:11:40 [3] NCCL INFO Channel 00/0 : 8[0] -> 3[3] [receive] via NET/IB/0
l1:11:40 [3] NCCL INFO Channel 00/0 : 3[3] -> 8[0] [send] via NET/IB/0
l1:11:40 [3] NCCL INFO ncclCommInitRank comm 0x5 rank 3 nranks 16 cudaDev 3 nvmlDev 3 busId 4000 commId 0x5be1 - Init COMPLETE",
        expected: &["gdr-disabled", "gdr-nccl-too-old-for-peermem"],
        must_not: &["silent-tcp-fallback"],
    },
    Sample {
        name: "eight HCAs, one used",
        log: "\
vm:11:40 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_2:1/IB [3]mlx5_3:1/IB [RO]; OOB eth0:10.1.0.1<0>
vm:11:40 [0] NCCL INFO Using network IB
vm:12:41 [1] NCCL INFO Using network IB
vm:11:40 [0] NCCL INFO Channel 00/0 : 4[0] -> 0[0] [receive] via NET/IB/0/GDRDMA
vm:11:40 [0] NCCL INFO Channel 01/0 : 4[0] -> 0[0] [receive] via NET/IB/0/GDRDMA
vm:12:41 [1] NCCL INFO Channel 00/0 : 1[1] -> 5[1] [send] via NET/IB/0/GDRDMA
vm:12:41 [1] NCCL INFO Channel 01/0 : 1[1] -> 5[1] [send] via NET/IB/0/GDRDMA",
        expected: &["single-nic-used"],
        must_not: &["gdr-disabled"],
    },
    Sample {
        name: "one processor for the proxy",
        log: "\
h1:11:40 [0] NCCL INFO Setting affinity for GPU 0 to 01
h1:12:41 [1] NCCL INFO Setting affinity for GPU 1 to 02
h1:11:40 [0] NCCL INFO Using network Socket",
        expected: &["cpu-affinity-restricted"],
        must_not: &[],
    },
    Sample {
        name: "unequal settings",
        log: "\
h1:11:40 [0] NCCL INFO NCCL_PROTO set by environment to Simple
h2:12:41 [0] NCCL INFO NCCL_PROTO set by environment to LL128",
        expected: &["env-mismatch-across-ranks"],
        must_not: &[],
    },
    Sample {
        name: "verbs settings with libfabric",
        log: "\
p5-1:11:11 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22.
p5-1:11:11 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 32 nics)
p5-1:11:11 [0] NCCL INFO Using network AWS Libfabric",
        expected: &["env-not-effective-with-plugin"],
        must_not: &["efa-provider-missing", "silent-tcp-fallback"],
    },
    Sample {
        name: "peer to peer left off",
        log: "\
h1:11:40 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.
h1:11:40 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct",
        expected: &["env-workaround-left"],
        must_not: &[],
    },
    Sample {
        name: "a literal reference",
        log: "\
h1:11:40 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to $(IFNAME)

h1:11:40 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found",
        expected: &["k8s-env-not-expanded"],
        must_not: &[],
    },
    Sample {
        name: "gloo with NCCL's syntax",
        log: "RuntimeError: [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to find address for: ^lo,docker0",
        expected: &["gloo-ifname-syntax"],
        must_not: &[],
    },
    Sample {
        name: "no IMEX channel",
        log: "\
gb-1:11:40 [0] NCCL INFO MNNVL busId 0x1901000 fabric UUID 5a3c.11d cliqueId 0x7ffe state 3 healthMask 0xaa

[2026-02-03 10:00:00] gb-1:11:40 [0] mnnvl.cc:66 NCCL WARN MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX channel configuration (/dev/nvidia-caps-imex-channels). Set NCCL_MNNVL_ENABLE=0 to ignore this issue.",
        expected: &["imex-channel-missing"],
        must_not: &["imex-same-node"],
    },
    Sample {
        name: "isolated GPUs of one node",
        log: "\
nk-0:1:1 [0] NCCL INFO NCCL version 2.26.2+cuda12.8
nk-0:1:1 [0] NCCL INFO MNNVL busId 0x1901000 fabric UUID 5a3c.11d cliqueId 0x7ffe state 3 healthMask 0x0

[2025-03-18 21:25:53] nk-0:1:20 [0] transport/p2p.cc:275 NCCL WARN Cuda failure 101 'invalid device ordinal'
[2025-03-18 21:25:53] nk-0:1:20 [0] NCCL INFO transport/p2p.cc:359 -> 1",
        expected: &["imex-same-node"],
        must_not: &["imex-channel-missing", "driver-too-old"],
    },
    Sample {
        name: "a crash in a large NVLink domain",
        log: "\
gb-7:11:40 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 7 nranks 48 cudaDev 0 nvmlDev 0 busId 4000 commId 0x5be1 - Init START
gb-7:11:40 [0] NCCL INFO MNNVL busId 0x4000 fabric UUID 5a3c.11d cliqueId 0x7ffe state 3 healthMask 0xaa
[gb-7:00011] *** Process received signal ***
[gb-7:00011] Signal: Segmentation fault (11)",
        expected: &["mnnvl-init-crash"],
        must_not: &["hami-vgpu-incompatible"],
    },
    Sample {
        name: "vGPU without unified memory",
        log: "\
vm-3:11:40 [0] NCCL INFO NCCL version 2.27.5+cuda12.9

[2026-04-02 10:00:00] vm-3:11:40 [0] init.cc:426 NCCL WARN Cuda failure 801 'operation not supported'
vm-3:11:40 [0] NCCL INFO init.cc:1552 -> 1",
        expected: &["vgpu-without-uvm"],
        must_not: &["driver-too-old"],
    },
    Sample {
        name: "tuner against protocol",
        log: "\
p4-668:7898:7901 [6] NCCL INFO NET/OFI Adding NCCL_PROTO=simple to environment
p4-668:7898:7901 [6] ncclResult_t nccl_ofi_tuner_init_v1(size_t, size_t, ncclDebugLogger_t):270 NCCL WARN NET/OFI The tuner plugin can not be loaded when explicitly choosing an algorithm or protocol with NCCL_ALGO/NCCL_PROTO",
        expected: &["tuner-plugin-conflict"],
        must_not: &[],
    },
    Sample {
        name: "TCPXO checker",
        log: "\
a3-1:11:40 [0] NCCL INFO NET/FasTrak plugin initialized

a3-1:11:40 [0] NCCL WARN NCCL/NET (shim) mismatch enforced: NCCL_PROTO=Simple,LL128 (expected Simple)",
        expected: &["tcpxo-env-mismatch"],
        must_not: &[],
    },
    Sample {
        name: "EFA devices in odd groups",
        log: "p5-1:11:40 [0] nccl_ofi_topo_group:912 NCCL WARN NET/OFI Unexpected group size 0",
        expected: &["efa-foreign-verbs-device"],
        must_not: &["efa-provider-missing"],
    },
    Sample {
        name: "a topology file without arch",
        log: "\
[1,2]<stdout>:p5-0:75:95 [2] NCCL INFO NET/OFI Running on p5.48xlarge platform, Setting NCCL_TOPO_FILE environment variable to /opt/p5-topo.xml
[1,2]<stdout>:p5-0:75:95 [2] graph/xml.h:101 NCCL WARN Attribute arch of node cpu not found
[1,2]<stdout>:p5-0:75:95 [2] NCCL INFO graph/topo.cc:493 -> 3",
        expected: &["topo-file-malformed"],
        must_not: &[],
    },
    Sample {
        name: "a graph file of another machine",
        log: "\
h1:11:40 [0] NCCL INFO NCCL_GRAPH_FILE set by environment to /opt/microsoft/ncv4/graph.xml

h1:11:40 [0] graph/search.cc:712 NCCL WARN XML Import Channel : dev 3 not found.",
        expected: &["topo-file-other-machine"],
        must_not: &[],
    },
    Sample {
        name: "no path for a pattern",
        log: "\
h1:11:40 [0] graph/search.cc:1110 NCCL WARN Could not find a path for pattern 4, falling back to simple order
h1:11:40 [0] NCCL INFO comm 0x5 rank 0 nranks 16 cudaDev 0 busId 34000 - Init COMPLETE",
        expected: &["topology-search-failed"],
        must_not: &["topo-file-other-machine"],
    },
    Sample {
        name: "NVLink peers that may not talk",
        log: "\
h1:11:40 [0] graph/paths.cc:305 NCCL WARN P2P is disabled between NVLINK connected GPUs 1 and 0. This should not be the case given their connectivity, and is probably due to a hardware issue. If you still want to proceed, you can set NCCL_IGNORE_DISABLED_P2P=1.",
        expected: &["p2p-broken"],
        must_not: &[],
    },
    Sample {
        name: "old driver",
        log: "\
h1:11:11 [0] NCCL INFO cudaDriverVersion 11040
NCCL version 2.21.5+cuda12.4

h1:11:40 [0] enqueue.cc:115 NCCL WARN Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'",
        expected: &["driver-too-old"],
        must_not: &["nccl-built-without-arch"],
    },
    Sample {
        name: "a GPU that the library does not know",
        log: "h1:11:40 [0] enqueue.cc:1403 NCCL WARN Cuda failure 209 'no kernel image is available for execution on the device'",
        expected: &["nccl-built-without-arch"],
        must_not: &["driver-too-old"],
    },
    Sample {
        name: "mesh",
        log: "\
w-0:11:11 [0] NCCL INFO Bootstrap: Using eth0:10.244.0.9<0>

w-0:11:40 [0] misc/socket.cc:600 NCCL WARN socketProgressOpt: Call to recv from 127.0.0.6<45123> failed : Connection reset by peer",
        expected: &["service-mesh-sidecar"],
        must_not: &[],
    },
    Sample {
        name: "MIG slices",
        log: "\
#  Rank  0 Group  0 Pid   3127 on       ws device  0 [0x07] NVIDIA A100-SXM4-80GB MIG 1g.10gb
GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)
  MIG 1g.10gb     Device  0: (UUID: MIG-1)
  MIG 1g.10gb     Device  1: (UUID: MIG-2)
ws:11:40 [0] NCCL INFO NCCL version 2.20.5+cuda12.4",
        expected: &["mig-not-supported"],
        must_not: &[],
    },
    Sample {
        name: "killed for memory",
        log: "\
h2:12:41 [0] misc/socket.cc:538 NCCL WARN Net : Connection closed by remote peer h1<57347>
[12345.678] Memory cgroup out of memory: Killed process 4242 (python) total-vm:812345kB",
        expected: &["process-killed"],
        must_not: &["idle-connection-dropped"],
    },
    Sample {
        name: "fallen off the bus",
        log: "[ 1234.567890] NVRM: Xid (PCI:0000:18:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        expected: &["xid-error"],
        must_not: &[],
    },
    Sample {
        name: "GPU memory",
        log: "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB",
        expected: &["gpu-out-of-memory"],
        must_not: &["shm-too-small"],
    },
    Sample {
        name: "only the aftermath",
        log: "h1:11:40 [0] misc/socket.cc:538 NCCL WARN Net : Connection closed by remote peer 10.1.0.2<57347>",
        expected: &["peer-died"],
        must_not: &["idle-connection-dropped", "bootstrap-unreachable"],
    },
    Sample {
        name: "set-up that never ends",
        log: "\
h1:11:40 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 4000 commId 0x5be1 - Init START
h1:12:41 [1] NCCL INFO ncclCommInitRank comm 0x6 rank 1 nranks 4 cudaDev 1 nvmlDev 1 busId 5000 commId 0x5be1 - Init START",
        expected: &["init-stuck"],
        must_not: &[],
    },
    Sample {
        name: "versions that differ",
        log: "\
h1:11:40 [0] NCCL INFO NCCL version 2.21.5+cuda12.4
h1:11:40 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 4000 commId 0x5be1 - Init START
h2:12:41 [0] NCCL INFO NCCL version 2.23.4+cuda12.6
h2:12:41 [0] NCCL INFO ncclCommInitRank comm 0x6 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 4000 commId 0x5be1 - Init START",
        expected: &["nccl-version-mismatch"],
        must_not: &[],
    },
    Sample {
        name: "NVLS by fabric manager of the day before",
        log: "\
[2026-04-02 10:00:00] h1:11:40 [3] transport/nvls.cc:598 NCCL WARN Cuda failure 1 'invalid argument'
Apr 02 09:58:11 h1 systemd[1]: Started NVIDIA fabric manager service.",
        expected: &["nvls-multicast-failed", "fabric-manager-restarted"],
        must_not: &["driver-too-old"],
    },
    // healthy, although it looks bad
    Sample {
        name: "healthy: sockets on one node, no verbs library",
        log: "\
NCCL version 2.9.6+cuda11.0

h1:11:11 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]
h1:11:11 [0] NCCL INFO NET/Socket : Using [0]eth0:10.1.0.1<0>
h1:11:11 [0] NCCL INFO Using network Socket
h1:11:40 [0] NCCL INFO Channel 00 : 0[40] -> 1[50] via P2P/IPC
h1:11:40 [0] NCCL INFO comm 0x5 rank 0 nranks 2 cudaDev 0 busId 40 - Init COMPLETE
h1:12:41 [1] NCCL INFO comm 0x6 rank 1 nranks 2 cudaDev 1 busId 50 - Init COMPLETE",
        expected: &[],
        must_not: &["ib-userspace-missing", "silent-tcp-fallback"],
    },
    Sample {
        name: "healthy: RAS port taken by another job",
        log: "\
[2026-04-02 10:00:00] h1:11:11 [0] ras/client_support.cc:160 NCCL WARN Call to bind failed: Address already in use
h1:11:11 [0] NCCL INFO RAS failed to establish a client listening socket at 127.0.0.1<28028>
h1:11:40 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 4000 commId 0x5be1 - Init START
h1:11:40 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 4000 commId 0x5be1 - Init COMPLETE",
        expected: &[],
        must_not: &["bootstrap-unreachable"],
    },
    Sample {
        name: "healthy: EFA",
        log: "\
p5-1:11:11 [0] NCCL INFO Bootstrap: Using eth0:10.1.0.1<0>
p5-1:11:11 [0] NCCL INFO NET/Plugin: Failed to find ncclNetPlugin_v9 symbol.
p5-1:11:11 [0] NCCL INFO NET/Plugin: Loaded net plugin Libfabric (v8)
p5-1:11:11 [0] NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.13.2-aws
p5-1:11:11 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)
p5-1:11:11 [0] NCCL INFO NET/OFI Adding FI_EFA_FORK_SAFE=1 to environment
p5-1:11:11 [0] NCCL INFO Using network Libfabric
p5-1:11:40 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/Libfabric/0/GDRDMA
p5-1:11:40 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 16 cudaDev 0 nvmlDev 0 busId 4000 commId 0x5be1 - Init COMPLETE",
        expected: &[],
        must_not: &["efa-provider-missing", "net-plugin-init-failed", "silent-tcp-fallback"],
    },
    Sample {
        name: "healthy: TCPXO",
        log: "\
a3-1:11:11 [0] NCCL INFO NET/FasTrak plugin initialized
a3-1:11:11 [0] NCCL INFO Using network FasTrak
a3-1:11:40 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/FasTrak/0(0)/Shared
a3-1:11:40 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 16 cudaDev 0 nvmlDev 0 busId 4000 commId 0x5be1 - Init COMPLETE",
        expected: &[],
        must_not: &["gdr-disabled"],
    },
    Sample {
        name: "healthy: NVLink of one node with NVLS",
        log: "\
h1:11:40 [0] NCCL INFO MNNVL busId 0x18000 fabric UUID 0.0 cliqueId 0x0 state 3 healthMask 0x0
h1:11:40 [0] NCCL INFO NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)
h1:11:40 [0] NCCL INFO Setting affinity for GPU 0 to 0-63,128-191
h1:11:40 [0] NCCL INFO Communicator has 1 nodes which is less than CollNet node threshold 2, disabling CollNet
h1:11:40 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM
h1:11:40 [0] NCCL INFO Connected NVLS tree
h1:11:40 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 18000 commId 0x5be1 - Init COMPLETE",
        expected: &[],
        must_not: &["imex-channel-missing", "sharp-unavailable", "cpu-affinity-restricted"],
    },
    Sample {
        name: "healthy: HAMi present, nothing wrong",
        log: "\
[HAMI-core Msg(1820:140188203915008:libvgpu.c:836)]: Initializing.....
v:1820:1820 [0] NCCL INFO Bootstrap: Using eth0:10.244.7.31<0>
v:1820:1820 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 18000 commId 0x5be1 - Init COMPLETE
[HAMI-core Msg(1820:140188203915008:multiprocess_memory_limit.c:499)]: Calling exit handler 1820",
        expected: &[],
        must_not: &["hami-vgpu-incompatible"],
    },
    Sample {
        name: "healthy: V100 reads through the host",
        log: "\
h1:11:40 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB ; OOB eth0:10.1.0.1<0>
h1:11:40 [0] NCCL INFO Using network IB
h1:11:40 [0] NCCL INFO Channel 00 : 1[1a000] -> 0[1a000] [receive] via NET/IB/0/GDRDMA
h1:11:40 [0] NCCL INFO Channel 00 : 0[1a000] -> 1[1a000] [send] via NET/IB/0
h1:11:40 [0] NCCL INFO comm 0x5 rank 0 nranks 2 cudaDev 0 busId 1a000 - Init COMPLETE",
        expected: &[],
        must_not: &["gdr-disabled"],
    },
    Sample {
        name: "healthy: a launcher that retries",
        log: "\
ssh: Could not resolve hostname w-0.job.default.svc: Name or service not known
ssh: Could not resolve hostname w-1.job.default.svc: Name or service not known
Warning: Permanently added 'w-0.job.default.svc' (ED25519) to the list of known hosts.
Warning: Permanently added 'w-1.job.default.svc' (ED25519) to the list of known hosts.
w-0:11:11 [0] NCCL INFO Bootstrap: Using eth0:10.244.1.200<0>",
        expected: &[],
        must_not: &["dns-resolution-failed"],
    },
];

fn answer(log: &str) -> Diagnosis {
    let mut intake = Intake::default();
    // a sample is a whole log: its last line was not cut
    intake.add("train.log", format!("{log}\n").as_bytes());
    diagnose(&intake.finish())
}

#[test]
fn every_sample_has_the_right_answer() {
    let mut wrong = Vec::new();
    for sample in SAMPLES {
        let answer = answer(sample.log);
        let loud: Vec<&str> = answer
            .findings
            .iter()
            .filter(|f| f.severity >= Severity::Warning)
            .map(|f| f.rule.as_str())
            .collect();
        for want in sample.expected {
            if !loud.contains(want) {
                wrong.push(format!("{}: misses {want}; has {loud:?}", sample.name));
            }
        }
        for not in sample.must_not {
            if loud.contains(not) {
                wrong.push(format!("{}: must not say {not}", sample.name));
            }
        }
        if sample.expected.is_empty() && !loud.is_empty() {
            wrong.push(format!("{}: has {loud:?}", sample.name));
        }
        if answer.findings.iter().any(|f| f.evidence.is_empty()) {
            wrong.push(format!("{}: a finding without evidence", sample.name));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
