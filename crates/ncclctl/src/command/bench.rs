//! `ncclctl bench`: arguments → plan → trial → verdict → output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use ncclctl_facts::Root;
use ncclctl_findings::Severity;
use ncclctl_findings::verdict::{Terms, judge};
use ncclctl_nccl::size::{self, Step};
use ncclctl_nccl::{Collective, DataType, RedOp};
use ncclctl_report::BenchResult;
use ncclctl_report::progress::Progress;
use ncclctl_report::verdict::Style;
use ncclctl_trial::coordinator::{self, Places};
use ncclctl_trial::engine::Case;
use ncclctl_trial::event::Event;
use ncclctl_trial::launch::{self, Launcher, Offer, Part, Seat};
use ncclctl_trial::nccl::{LogTo, Options};
use ncclctl_trial::{Token, TrialError, TrialPlan};

use crate::exit::{Exit, environment, usage};
use crate::output::{self, Format};
use crate::{input, quantity};

const EXAMPLES: &str = "\
Examples:
  ncclctl bench                                   two ranks on this machine, 8 B to 128 MiB
  ncclctl bench -b 1M -e 1G -f 2 --ranks 4        nccl-tests' options mean what they mean there
  ncclctl bench --collective all -d bfloat16      every collective
  ncclctl bench --env NCCL_SOCKET_NTHREADS=4 --ifname =eth0
  ncclctl bench --listen 0.0.0.0:7171 --workers 4 four machines; prints the line to run on each
  ncclctl bench --line-rate 25G --strict -o junit for CI: held against what was bought
  ncclctl bench --save run.json; ncclctl show run.json
  mpirun -np 4 ncclctl bench                      or srun, torchrun: rank 0 coordinates";

/// Run real collectives between real processes and judge the result.
///
/// Sizes are bytes with K, M, G (powers of 1024). Each size is repeated until its mean is known to
/// --precision or its share of --time-limit is used. The table on standard output is nccl-tests'
/// own; the verdict follows as comment lines.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Bench {
    /// Least size
    #[arg(short = 'b', long = "minbytes", value_name = "SIZE", default_value = "8", value_parser = size::parse, help_heading = "What to run (as nccl-tests)")]
    begin: u64,
    /// Greatest size
    #[arg(short = 'e', long = "maxbytes", value_name = "SIZE", default_value = "128M", value_parser = size::parse, help_heading = "What to run (as nccl-tests)")]
    end: u64,
    /// Factor between sizes
    #[arg(
        short = 'f',
        long = "stepfactor",
        value_name = "N",
        default_value = "4",
        help_heading = "What to run (as nccl-tests)"
    )]
    factor: f64,
    /// Bytes between sizes, instead of a factor
    #[arg(short = 'i', long = "stepbytes", value_name = "SIZE", value_parser = size::parse, conflicts_with = "factor", help_heading = "What to run (as nccl-tests)")]
    step: Option<u64>,
    /// Operations a size, instead of repeating until precise
    #[arg(short = 'n', long = "iters", value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "What to run (as nccl-tests)")]
    iterations: Option<u32>,
    /// Warm-up operations a size, instead of warming up until steady
    #[arg(
        short = 'w',
        long = "warmup-iters",
        value_name = "N",
        help_heading = "What to run (as nccl-tests)"
    )]
    warmup: Option<u32>,
    /// Check results: 0 no, 1 yes
    #[arg(short = 'c', long = "check", value_name = "0|1", default_value = "1", value_parser = clap::value_parser!(u32).range(0..), help_heading = "What to run (as nccl-tests)")]
    check: u32,
    /// Element type, or `all`
    #[arg(
        short = 'd',
        long = "datatype",
        value_name = "TYPE",
        default_value = "float",
        help_heading = "What to run (as nccl-tests)"
    )]
    datatype: String,
    /// How often to run everything
    #[arg(short = 'N', long = "run-cycles", value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "What to run (as nccl-tests)")]
    cycles: u32,
    /// Reduction: sum, prod, min, max, avg or `all`
    #[arg(
        long,
        value_name = "OP",
        default_value = "sum",
        help_heading = "What to run (as nccl-tests)"
    )]
    op: String,
    /// Root of broadcast, reduce, gather and scatter
    #[arg(
        short = 'r',
        long,
        value_name = "RANK",
        default_value = "0",
        help_heading = "What to run (as nccl-tests)"
    )]
    root: usize,
    /// Collective, repeatable, or `all`: all_reduce all_gather reduce_scatter broadcast reduce alltoall gather scatter sendrecv
    #[arg(
        long,
        value_name = "NAME",
        default_value = "all_reduce",
        value_delimiter = ',',
        help_heading = "What to run (as nccl-tests)"
    )]
    collective: Vec<String>,

    /// Ranks on this machine [default: the number of GPUs; 2 without GPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), conflicts_with = "listen", help_heading = "Where to run")]
    ranks: Option<u32>,
    /// What moves the bytes: auto (nccl where there is a GPU, else tcp), nccl, tcp
    #[arg(long, value_name = "NAME", default_value = "auto", help_heading = "Where to run")]
    engine: String,
    /// Wait here for workers on other machines
    #[arg(long, value_name = "ADDRESS:PORT", requires = "workers", help_heading = "Where to run")]
    listen: Option<String>,
    /// Workers to wait for
    #[arg(long, value_name = "N", requires = "listen", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Where to run")]
    workers: Option<u32>,
    /// File with the join token; made (0600) if it does not exist
    #[arg(long, value_name = "FILE", env = "NCCLCTL_TOKEN_FILE", help_heading = "Where to run")]
    token_file: Option<PathBuf>,
    /// Run on the first N workers too, for each N: a scaling table
    #[arg(long, value_name = "N,…", value_delimiter = ',', help_heading = "Where to run")]
    sweep_workers: Vec<usize>,

    /// NCCL setting for the ranks, repeatable; wins over the environment
    #[arg(
        long = "env",
        visible_alias = "nccl-env",
        value_name = "NAME=VALUE",
        help_heading = "NCCL settings"
    )]
    env: Vec<String>,
    /// NCCL settings from a file, by Docker's rules
    #[arg(long, value_name = "FILE", help_heading = "NCCL settings")]
    env_file: Vec<PathBuf>,
    /// Interfaces, as NCCL_SOCKET_IFNAME: prefixes, `=` for exact names, `^` to exclude; no wildcards
    #[arg(long, value_name = "LIST", help_heading = "NCCL settings")]
    ifname: Option<String>,

    /// Algorithm, as NCCL_ALGO
    #[arg(long, value_name = "NAME", help_heading = "NCCL settings")]
    algo: Option<String>,
    /// Protocol, as NCCL_PROTO
    #[arg(long, value_name = "NAME", help_heading = "NCCL settings")]
    proto: Option<String>,

    /// Load this libnccl and no other
    #[arg(long, value_name = "FILE", help_heading = "GPUs (--engine nccl)")]
    nccl: Option<String>,
    /// Where NCCL's log goes besides the evidence: stderr, off, or a file name (%h host, %r rank)
    #[arg(
        long,
        value_name = "stderr|off|FILE",
        default_value = "stderr",
        help_heading = "GPUs (--engine nccl)"
    )]
    nccl_log: String,
    /// Several ranks on one GPU, over sockets: a test mode
    #[arg(long, help_heading = "GPUs (--engine nccl)")]
    share_gpu: bool,
    /// Launch operations as CUDA graphs
    #[arg(long, help_heading = "GPUs (--engine nccl)")]
    graph: bool,
    /// Register the buffers with NCCL
    #[arg(long, help_heading = "GPUs (--engine nccl)")]
    register: bool,
    /// Do not run NCCL's built-in diagnostics (2.31 and later)
    #[arg(long, help_heading = "GPUs (--engine nccl)")]
    no_nccl_diagnostics: bool,

    /// Pass from this share of what is expected
    #[arg(long, value_name = "SHARE", default_value = "0.90", value_parser = quantity::share, help_heading = "The verdict")]
    threshold: f64,
    /// Inconclusive results fail
    #[arg(long, help_heading = "The verdict")]
    strict: bool,
    /// What every NIC was bought for, bits per second, like 100G
    #[arg(long, value_name = "RATE", value_parser = quantity::bits, help_heading = "The verdict")]
    line_rate: Option<u64>,
    /// Only measure
    #[arg(long, help_heading = "The verdict")]
    no_verdict: bool,

    /// Time for all sizes together
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::duration, help_heading = "How long")]
    time_limit: Duration,
    /// Wanted half width of the 95% confidence interval
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = quantity::share, help_heading = "How long")]
    precision: f64,
    /// Who says nothing for this long is lost
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::duration, help_heading = "How long")]
    deadline: Duration,
    /// How long to wait for workers to join
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = quantity::duration, help_heading = "How long")]
    join_timeout: Duration,

    /// Output format
    #[arg(
        short = 'o',
        long = "output",
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Output"
    )]
    output: Format,
    /// Write everything that was measured to a file, for `ncclctl show`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    save: Option<PathBuf>,
}

pub(crate) fn run(bench: &Bench, quiet: bool) -> anyhow::Result<Exit> {
    let root = Root::live();
    let seat = bench.seat(&root)?;
    let workers = seat.as_ref().map_or_else(|| bench.workers_wanted(), |seat| seat.world);
    // bad arguments are told before anybody waits for anybody
    let plan = bench.plan(&root, workers)?;
    let places = match seat {
        Some(seat) => match bench.take(&seat, &root)? {
            Part::Work(guest) => return super::worker::ended(guest.join(), quiet),
            Part::Coordinate(host) => Places::Launched(host),
        },
        None => bench.places()?,
    };
    let terms = Terms { threshold: bench.threshold, strict: bench.strict, ..Terms::default() };
    let mut progress = Progress::new(output::stderr_is_terminal(), quiet);
    let lines = bench.output == Format::Jsonl;
    let mut sink = |event: Event| {
        progress.show(&event);
        if lines {
            output::json_line(&event);
        }
    };
    let trial = coordinator::run(&plan, places, &mut sink);
    progress.finish();
    let (evidence, broke) = match trial {
        Ok(evidence) => (evidence, None),
        Err(error) => {
            let evidence = (*error.evidence).clone();
            (evidence, Some(error))
        }
    };
    let judgement = (!bench.no_verdict).then(|| judge(&evidence, &terms));
    let mut result = BenchResult::new(evidence, judgement, terms, output::arguments());
    if let Some(error) = &broke {
        // what is known of the loss stays; a verdict on half a trial would be a guess
        result.verdict = None;
        result.error = Some(error.to_string());
    }
    let ended = match &broke {
        Some(error) => Err(broken(error, &result, bench)),
        None => output::print(&result, bench.output).map(|()| output::exit(&result, terms)),
    };
    // shown first, so that a full disk loses nothing
    if let Some(path) = &bench.save {
        output::save(path, &result)?;
    }
    ended
}

/// What a broken trial says: who, what, what was lost, what to do.
fn broken(error: &TrialError, result: &BenchResult, bench: &Bench) -> anyhow::Error {
    use ncclctl_trial::error::Kind;
    if matches!(bench.output, Format::Json | Format::Junit | Format::Jsonl) {
        let _ = output::print(result, bench.output);
    }
    let mut message = error.to_string();
    for failure in error.evidence.failures.iter().skip(1).take(8) {
        message.push_str(&format!("\n  then {}", ncclctl_trial::error::describe(failure)));
    }
    for found in result.findings.iter().filter(|found| found.severity > Severity::Info) {
        message.push('\n');
        let style = Style { width: 100, prefix: "", colour: false };
        ncclctl_report::verdict::finding(&mut message, found, style);
    }
    let message = message.trim_end().to_owned();
    let exit = match error.kind {
        Kind::Usage => Exit::Usage,
        Kind::Environment => Exit::Environment,
        Kind::Interrupted => Exit::Interrupted,
    };
    crate::exit::Coded { message, exit }.into()
}

impl Bench {
    /// The seat that a launcher gave this process; none where the user says what to run here.
    fn seat(&self, root: &Root) -> anyhow::Result<Option<Seat>> {
        if self.listen.is_some() {
            return Ok(None);
        }
        let seat = launch::seat(root.environment()).map_err(|error| usage(with_source(&error)))?;
        match (seat, self.ranks) {
            // torch's variables are often those of a pod, in which somebody tries something by hand
            (Some(seat), Some(_)) if seat.launcher == Launcher::Torchrun => Ok(None),
            (Some(seat), Some(ranks)) => Err(usage(format!(
                "--ranks {ranks}: {} started {} processes, each of them is one rank; leave --ranks out",
                seat.launcher.command(),
                seat.world
            ))),
            (seat, _) => Ok(seat),
        }
    }

    fn take(&self, seat: &Seat, root: &Root) -> anyhow::Result<Part> {
        let offer = Offer {
            rank_program: super::worker::rank_program(),
            name: None,
            patience: self.join_timeout,
        };
        seat.take(root.environment(), offer).map_err(|error| usage(with_source(&error)))
    }

    fn plan(&self, root: &Root, workers: usize) -> anyhow::Result<TrialPlan> {
        let engine = self.engine(root);
        ncclctl_trial::engine::by_name(engine).map_err(|error| usage(error.to_string()))?;
        let cases = self.cases(workers)?;
        Ok(TrialPlan {
            cases,
            settings: self.settings(root.environment())?,
            iterations: self.iterations,
            warmup: self.warmup,
            cycles: self.cycles,
            check: self.check > 0,
            precision: self.precision,
            time_limit: self.time_limit,
            deadline: self.deadline,
            rendezvous: self.join_timeout,
            paths: !self.no_verdict,
            line_rate_bits: self.line_rate,
            sweep_workers: self.sweep(workers)?,
            nccl: Options {
                library: self.nccl.clone(),
                log: match self.nccl_log.as_str() {
                    "stderr" => LogTo::Stderr,
                    "off" => LogTo::Off,
                    file => LogTo::File(file.into()),
                },
                share_gpu: self.share_gpu,
                graph: self.graph,
                registered: self.register,
                diagnostics: !self.no_nccl_diagnostics,
            },
            ..TrialPlan::new(engine)
        })
    }

    /// The engine by name: `auto` takes GPUs where they are.
    fn engine(&self, root: &Root) -> &str {
        match self.engine.as_str() {
            "auto" if ncclctl_trial::nccl::gpus_here(root) > 0 => "nccl",
            "auto" => "tcp",
            name => name,
        }
    }

    /// Workers without a launcher: those waited for, or one a local rank.
    fn workers_wanted(&self) -> usize {
        let default = || {
            let root = Root::live();
            let gpus = match self.engine(&root) {
                "nccl" => ncclctl_trial::nccl::gpus_here(&root),
                _ => 2,
            };
            gpus.clamp(1, 1024) as u32
        };
        self.workers.or(self.ranks).unwrap_or_else(default) as usize
    }

    fn sweep(&self, most: usize) -> anyhow::Result<Vec<usize>> {
        if let Some(bad) = self.sweep_workers.iter().find(|n| **n == 0 || **n > most) {
            return Err(usage(format!(
                "--sweep-workers {bad}: there are {most}, give numbers from 1 to {most}"
            )));
        }
        let mut sizes = self.sweep_workers.clone();
        if !sizes.is_empty() {
            // the whole is always measured: it is what the verdict is about
            sizes.push(most);
        }
        Ok(sizes)
    }

    fn cases(&self, ranks: usize) -> anyhow::Result<Vec<Case>> {
        let sizes = self.sizes()?;
        let dtypes: Vec<DataType> = if self.datatype == "all" {
            DataType::ALL.to_vec()
        } else {
            vec![self.datatype.parse().map_err(|e| usage(format!("-d: {e}")))?]
        };
        let ops: Vec<RedOp> = if self.op == "all" {
            RedOp::ALL.to_vec()
        } else {
            vec![self.op.parse().map_err(|e| usage(format!("--op: {e}")))?]
        };
        let mut cases = Vec::new();
        for collective in self.collectives()? {
            let ops = if collective.reduces() { &ops[..] } else { &ops[..1] };
            for dtype in &dtypes {
                for op in ops {
                    for bytes in &sizes {
                        for in_place in [false, true] {
                            cases.push(Case {
                                collective,
                                dtype: *dtype,
                                op: *op,
                                root: self.root,
                                bytes: *bytes,
                                in_place,
                            });
                        }
                    }
                }
            }
        }
        if cases.len() > 100_000 {
            return Err(usage(format!(
                "{} measurements asked for; use a larger -f or -i",
                cases.len()
            )));
        }
        if cases.iter().any(|case| case.collective.has_root()) && self.root >= ranks {
            return Err(usage(format!(
                "--root {}: there are {ranks} ranks, the last is {}",
                self.root,
                ranks - 1
            )));
        }
        Ok(cases)
    }

    fn sizes(&self) -> anyhow::Result<Vec<u64>> {
        if self.begin > self.end {
            return Err(usage(format!(
                "-b {} is more than -e {}: give the least size with -b and the greatest with -e",
                size::Short(self.begin),
                size::Short(self.end)
            )));
        }
        if self.end > 1 << 40 {
            return Err(usage(format!("-e {}: at most 1T", size::Short(self.end))));
        }
        let step = match self.step {
            Some(0) => return Err(usage("-i 0: give the bytes between two sizes")),
            Some(bytes) => Step::Bytes(bytes),
            None if self.begin != self.end && (!self.factor.is_finite() || self.factor <= 1.0) => {
                return Err(usage(format!(
                    "-f {}: a factor over 1 is needed, like 2",
                    self.factor
                )));
            }
            None => Step::Factor(self.factor),
        };
        // nccl-tests steps from -b; a first size of 0 would never grow
        let begin = if self.begin == 0 { 1 } else { self.begin };
        if let Step::Bytes(bytes) = step
            && (self.end - begin.min(self.end)) / bytes > 100_000
        {
            return Err(usage(format!("-i {bytes}: more than 100000 sizes; use a larger step")));
        }
        Ok(size::sweep(begin, self.end, step))
    }

    fn collectives(&self) -> anyhow::Result<Vec<Collective>> {
        let mut list = Vec::new();
        for name in &self.collective {
            if name == "all" {
                list.extend(Collective::ALL);
            } else {
                list.push(name.parse().map_err(|e| usage(format!("--collective: {e}")))?);
            }
        }
        let mut seen = Vec::new();
        list.retain(|c| {
            !seen.contains(c) && {
                seen.push(*c);
                true
            }
        });
        Ok(list)
    }

    /// Settings for the ranks: files first, then `--env`, then `--ifname`; later ones win.
    fn settings(
        &self,
        environment: &BTreeMap<String, String>,
    ) -> anyhow::Result<BTreeMap<String, String>> {
        let mut settings = BTreeMap::new();
        for path in &self.env_file {
            settings.extend(input::env_file(path, environment)?);
        }
        for pair in &self.env {
            match pair.split_once('=') {
                Some((name, value)) if !name.is_empty() => {
                    settings.insert(name.to_owned(), value.to_owned());
                }
                _ => return Err(usage(format!("--env {pair}: write NAME=VALUE"))),
            }
        }
        for (name, value) in [("NCCL_ALGO", &self.algo), ("NCCL_PROTO", &self.proto)] {
            if let Some(value) = value {
                settings.insert(name.to_owned(), value.clone());
            }
        }
        if let Some(list) = &self.ifname {
            settings.insert("NCCL_SOCKET_IFNAME".to_owned(), list.clone());
        }
        if let Some((name, _)) = settings.iter().find(|(n, v)| n.contains('\0') || v.contains('\0'))
        {
            return Err(usage(format!("{name}: a zero byte can not stand in an environment")));
        }
        Ok(settings)
    }

    fn places(&self) -> anyhow::Result<Places> {
        let Some(address) = &self.listen else {
            return Ok(Places::Local {
                ranks: self.workers_wanted(),
                rank_program: super::worker::rank_program(),
            });
        };
        let path = match &self.token_file {
            Some(path) => path.clone(),
            None => {
                return Err(usage(
                    "--listen needs --token-file FILE: it is made if it does not exist; copy it to every worker",
                ));
            }
        };
        let token = token(&path)?;
        let hint = format!("--token-file {}", path.display());
        Ok(Places::Join {
            address: address.clone(),
            workers: self.workers_wanted(),
            token,
            token_hint: hint,
        })
    }
}

/// Reads the token file, or makes it.
fn token(path: &Path) -> anyhow::Result<Token> {
    if path.exists() {
        return Token::read(path).map_err(|error| usage(with_source(&error)));
    }
    let token = Token::new().map_err(|error| environment(error.to_string()))?;
    token.create(path).map_err(|error| usage(with_source(&error)))?;
    Ok(token)
}

fn with_source(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
