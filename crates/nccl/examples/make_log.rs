//! Writes a long log of a training job: `make_log BYTES [RANKS] > train.log`.
//!
//! Start of 64 ranks on 8 hosts, then collective lines of all ranks interleaved, with the training
//! loop's own lines between them, as NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,TUNING,COLL gives
//! it. The same arguments give the same bytes.

use std::io::{BufWriter, Write};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let bytes: u64 = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(1 << 20);
    let ranks: u32 = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(64);
    let mut out = Counted { inner: BufWriter::with_capacity(1 << 20, std::io::stdout()), bytes: 0 };
    let hosts = ranks.div_ceil(8);
    for rank in 0..ranks {
        start(&mut out, rank, ranks, hosts)?;
    }
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut step = 0_u64;
    while out.bytes < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let rank = u32::try_from(state % u64::from(ranks)).unwrap_or(0);
        let (host, pid, tid, dev) = who(rank);
        let size = 1_u64 << (12 + (state >> 20) % 16);
        match (state >> 40) % 100 {
            0..=71 => writeln!(
                out,
                "{host}:{pid}:{tid} [{dev}] NCCL INFO AllReduce: {size} Bytes -> Algo RING proto SIMPLE channel{{Lo..Hi}}={{0..7}}"
            )?,
            72..=79 => writeln!(
                out,
                "{host}:{pid}:{tid} [{dev}] NCCL INFO AllGather: opCount {step:x} sendbuff 0x7f{rank:02x}00 recvbuff 0x7f{rank:02x}80 count {size} datatype 9 op 0 root 0 comm 0x55{rank:02x} [nranks={ranks}] stream 0x56"
            )?,
            80..=97 => {
                step += 1;
                writeln!(
                    out,
                    "[rank{rank}]: step {step} loss 2.31 lr 0.0003 tokens/s 41234 mem 61.2GB"
                )?;
            }
            _ => writeln!(
                out,
                "{host}:{pid}:{tid} [{dev}] NCCL INFO Channel 00/1 : {rank}[{dev}] -> {}[{dev}] [send] via NET/IB/{dev}/GDRDMA",
                (rank + 8) % ranks
            )?,
        }
    }
    out.flush()
}

fn who(rank: u32) -> (String, u32, u32, u32) {
    (format!("gpu-node-{:03}", rank / 8), 41_000 + rank % 8, 41_500 + rank % 8, rank % 8)
}

fn start(out: &mut impl Write, rank: u32, ranks: u32, hosts: u32) -> std::io::Result<()> {
    let (host, pid, tid, dev) = who(rank);
    let head = format!("{host}:{pid}:{tid} [{dev}] NCCL INFO");
    writeln!(out, "{head} Bootstrap: Using eth0:10.1.0.{}<0>", rank / 8 + 1)?;
    writeln!(out, "{head} cudaDriverVersion 12080")?;
    writeln!(out, "{head} NCCL version 2.27.5+cuda12.9")?;
    writeln!(out, "{head} NET/Plugin: Could not find: libnccl-net.so. Using internal net plugin.")?;
    let ports: Vec<String> = (0..8).map(|d| format!("[{d}]mlx5_{d}:1/IB")).collect();
    writeln!(
        out,
        "{head} NET/IB : Using {} [RO]; OOB eth0:10.1.0.{}<0>",
        ports.join(" "),
        rank / 8 + 1
    )?;
    writeln!(out, "{head} Using network IB")?;
    let comm = format!(
        "comm 0x55{rank:02x} rank {rank} nranks {ranks} cudaDev {dev} nvmlDev {dev} busId {dev}8000 commId 0x5be1d3f29ac1d1fa"
    );
    writeln!(out, "{head} ncclCommInitRank {comm} - Init START")?;
    writeln!(
        out,
        "{head} comm 0x55{rank:02x} rank {rank} nRanks {ranks} nNodes {hosts} localRanks 8 localRank {dev} MNNVL 0"
    )?;
    for channel in 0..16 {
        writeln!(
            out,
            "{head} Channel {channel:02}/0 : {rank}[{dev}] -> {}[{dev}] [send] via NET/IB/{dev}/GDRDMA",
            (rank + 8) % ranks
        )?;
    }
    writeln!(out, "{head} ncclCommInitRank {comm} - Init COMPLETE")
}

struct Counted<W> {
    inner: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        let n = self.inner.write(data)?;
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}
