//! What a launcher tells each of its processes through the environment.

use std::collections::BTreeMap;

use super::LaunchError;
use super::nodelist::expand;

/// Variables by name.
pub type Environment = BTreeMap<String, String>;

/// Who started this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// `torchrun`, and anything that sets its variables.
    Torchrun,
    /// OpenMPI's `mpirun`.
    OpenMpi,
    /// MPICH's and Intel MPI's `mpirun`, by the process management interface.
    Pmi,
    /// `srun`.
    Slurm,
}

/// Where a launcher's processes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// All on one host.
    OneHost,
    /// On several.
    Several,
}

/// This process among those of one launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The launcher.
    pub launcher: Launcher,
    /// Place among all processes, from 0.
    pub index: usize,
    /// How many there are.
    pub world: usize,
    /// Where they are.
    pub spread: Spread,
    /// What tells this launch from others: equal in all its processes.
    pub job: String,
    /// Host of process 0, where the launcher says it.
    pub first_host: Option<String>,
}

/// A launcher, and how to tell that it started this process.
type Reader = fn(&Environment) -> Result<Option<Seat>, LaunchError>;

/// In order of nearness: `srun` may start `mpirun`'s daemons, either may start torchrun's agents.
const READERS: &[Reader] = &[torchrun, open_mpi, pmi, slurm, torch_variables];

impl Launcher {
    /// Its command.
    pub fn command(self) -> &'static str {
        match self {
            Self::Torchrun => "torchrun",
            Self::OpenMpi | Self::Pmi => "mpirun",
            Self::Slurm => "srun",
        }
    }
}

/// Reads the seat from the environment; `None` where no launcher started this process, or where it
/// started this one alone.
pub fn seat(environment: &Environment) -> Result<Option<Seat>, LaunchError> {
    for read in READERS {
        if let Some(seat) = read(environment)? {
            if seat.index >= seat.world {
                let text = format!("process {} of {}", seat.index, seat.world);
                return Err(LaunchError::Contradiction { launcher: seat.launcher.command(), text });
            }
            return Ok((seat.world > 1).then_some(seat));
        }
    }
    Ok(None)
}

fn number(environment: &Environment, name: &str) -> Result<Option<usize>, LaunchError> {
    let Some(text) = environment.get(name) else { return Ok(None) };
    match text.trim().parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(LaunchError::Variable {
            name: name.to_owned(),
            value: text.clone(),
            expected: "a number",
        }),
    }
}

/// First of these variables that is there.
fn first<'a>(environment: &'a Environment, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| environment.get(*name)).map(String::as_str)
}

fn spread(local: Option<usize>, world: usize) -> Option<Spread> {
    local.map(|local| if local >= world { Spread::OneHost } else { Spread::Several })
}

/// `torchrun` itself (`torch/distributed/elastic/agent/server/local_elastic_agent.py`).
fn torchrun(environment: &Environment) -> Result<Option<Seat>, LaunchError> {
    if !environment.contains_key("TORCHELASTIC_RUN_ID") {
        return Ok(None);
    }
    torch_variables(environment)
}

/// The variables that torch reads, whoever set them (`torch/distributed/rendezvous.py`, `env://`).
fn torch_variables(environment: &Environment) -> Result<Option<Seat>, LaunchError> {
    let (Some(index), Some(world)) =
        (number(environment, "RANK")?, number(environment, "WORLD_SIZE")?)
    else {
        return Ok(None);
    };
    let Some(address) = environment.get("MASTER_ADDR") else { return Ok(None) };
    let local = number(environment, "LOCAL_WORLD_SIZE")?;
    let loopback = ["localhost", "127.0.0.1", "::1"].contains(&address.as_str());
    let guessed = if loopback { Spread::OneHost } else { Spread::Several };
    // the run id of a plain torchrun is `none`: port and restarts tell runs apart
    let id = |name: &str| first(environment, &[name]).unwrap_or_default();
    let job = format!(
        "torch-{}-{address}-{}-{}",
        id("TORCHELASTIC_RUN_ID"),
        id("MASTER_PORT"),
        id("TORCHELASTIC_RESTART_COUNT")
    );
    Ok(Some(Seat {
        launcher: Launcher::Torchrun,
        index,
        world,
        spread: spread(local, world).unwrap_or(guessed),
        job,
        first_host: Some(address.clone()),
    }))
}

/// First host of the Slurm allocation, in which process 0 runs unless told otherwise.
fn slurm_hosts(environment: &Environment) -> Result<Vec<String>, LaunchError> {
    let names = ["SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"];
    match first(environment, &names) {
        Some(list) => Ok(expand(list)?),
        None => Ok(Vec::new()),
    }
}

fn open_mpi(environment: &Environment) -> Result<Option<Seat>, LaunchError> {
    let (Some(index), Some(world)) = (
        number(environment, "OMPI_COMM_WORLD_RANK")?,
        number(environment, "OMPI_COMM_WORLD_SIZE")?,
    ) else {
        return Ok(None);
    };
    let local = number(environment, "OMPI_COMM_WORLD_LOCAL_SIZE")?;
    let names = ["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri"];
    let id = first(environment, &names).unwrap_or_default();
    let family = first(environment, &["OMPI_MCA_orte_precondition_transports"]).unwrap_or_default();
    Ok(Some(Seat {
        launcher: Launcher::OpenMpi,
        index,
        world,
        spread: spread(local, world).unwrap_or(Spread::Several),
        job: format!("ompi-{id}-{family}"),
        first_host: slurm_hosts(environment)?.into_iter().next(),
    }))
}

fn pmi(environment: &Environment) -> Result<Option<Seat>, LaunchError> {
    let (Some(index), Some(world)) =
        (number(environment, "PMI_RANK")?, number(environment, "PMI_SIZE")?)
    else {
        return Ok(None);
    };
    let local = number(environment, "MPI_LOCALNRANKS")?;
    let names = ["PMIX_NAMESPACE", "PMI_JOBID", "PMI_KVS", "PMI_PORT", "SLURM_JOB_ID"];
    // Hydra names no job: its proxy, the parent of all processes of one host, is as good there
    let id = match first(environment, &names) {
        Some(id) => id.to_owned(),
        None => format!("parent-{}", rustix::process::getppid().map_or(0, |p| p.as_raw_pid())),
    };
    Ok(Some(Seat {
        launcher: Launcher::Pmi,
        index,
        world,
        spread: spread(local, world).unwrap_or(Spread::Several),
        job: format!("pmi-{id}"),
        first_host: slurm_hosts(environment)?.into_iter().next(),
    }))
}

/// Step numbers from here on are no steps of `srun`: batch script, interactive shell, extern
/// (`SLURM_INTERACTIVE_STEP` in Slurm's `slurm.h`).
const NO_STEP: u64 = 0xffff_fffa;

fn slurm(environment: &Environment) -> Result<Option<Seat>, LaunchError> {
    let tasks = match number(environment, "SLURM_STEP_NUM_TASKS")? {
        Some(tasks) => Some(tasks),
        None => number(environment, "SLURM_NTASKS")?,
    };
    let (Some(index), Some(world)) = (number(environment, "SLURM_PROCID")?, tasks) else {
        return Ok(None);
    };
    // a batch script is process 0 of the allocation's tasks by its variables, and alone in truth
    let step = number(environment, "SLURM_STEP_ID")?;
    let batch = environment.get("ENVIRONMENT").is_some_and(|value| value == "BATCH");
    match step {
        Some(step) if step as u64 >= NO_STEP => return Ok(None),
        None if batch => return Ok(None),
        _ => {}
    }
    let hosts = slurm_hosts(environment)?;
    let nodes = match number(environment, "SLURM_STEP_NUM_NODES")? {
        Some(nodes) => Some(nodes),
        None if hosts.is_empty() => number(environment, "SLURM_NNODES")?,
        None => Some(hosts.len()),
    };
    let id = |name: &str| first(environment, &[name]).unwrap_or_default();
    Ok(Some(Seat {
        launcher: Launcher::Slurm,
        index,
        world,
        spread: if nodes.unwrap_or(1) > 1 { Spread::Several } else { Spread::OneHost },
        job: format!("slurm-{}-{}", id("SLURM_JOB_ID"), id("SLURM_STEP_ID")),
        first_host: hosts.into_iter().next(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(text: &str) -> Environment {
        text.split_whitespace()
            .map(|pair| pair.split_once('=').unwrap())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    fn read(text: &str) -> Option<Seat> {
        seat(&environment(text)).unwrap()
    }

    #[test]
    fn slurm_step() {
        let seat = read(
            "SLURM_PROCID=3 SLURM_NTASKS=8 SLURM_JOB_ID=77 SLURM_STEP_ID=0 \
             SLURM_STEP_NODELIST=n[2-3] SLURM_JOB_NODELIST=n[1-3]",
        )
        .unwrap();
        assert_eq!((seat.index, seat.world, seat.spread), (3, 8, Spread::Several));
        assert_eq!(seat.first_host.as_deref(), Some("n2"));
        assert_eq!(seat.job, "slurm-77-0");
        let seat = read("SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_NODELIST=n1").unwrap();
        assert_eq!(seat.spread, Spread::OneHost);
    }

    #[test]
    fn a_batch_script_or_a_shell_is_no_step() {
        assert_eq!(read("SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_JOB_ID=7 ENVIRONMENT=BATCH"), None);
        assert_eq!(read("SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_STEP_ID=4294967290"), None);
        assert!(read("SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_STEP_ID=1 ENVIRONMENT=BATCH").is_some());
        assert_eq!(read("SLURM_NTASKS=8 SLURM_JOB_ID=7"), None);
    }

    #[test]
    fn the_nearest_launcher_counts() {
        // mpirun starts one daemon a node by srun: the task number is the daemon's
        let seat = read(
            "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_JOB_NODELIST=a[1-2] \
             OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=16 OMPI_COMM_WORLD_LOCAL_SIZE=8",
        )
        .unwrap();
        assert_eq!((seat.launcher, seat.index, seat.world), (Launcher::OpenMpi, 5, 16));
        assert_eq!((seat.spread, seat.first_host.as_deref()), (Spread::Several, Some("a1")));
        // variables that a container image or pod template sets are weaker than a launcher's own
        let seat = read(
            "RANK=0 WORLD_SIZE=64 MASTER_ADDR=m SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0",
        )
        .unwrap();
        assert_eq!(seat.launcher, Launcher::Slurm);
    }

    #[test]
    fn torchrun_and_its_variables() {
        let text = "RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500";
        let seat = read(&format!("{text} TORCHELASTIC_RUN_ID=none")).unwrap();
        assert_eq!((seat.launcher, seat.spread), (Launcher::Torchrun, Spread::OneHost));
        let again = read(&format!("{text} TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=1"));
        assert_ne!(seat.job, again.unwrap().job);
        assert_eq!(read("RANK=0 WORLD_SIZE=2"), None);
        let spread = read("RANK=0 WORLD_SIZE=2 MASTER_ADDR=10.0.0.1").unwrap().spread;
        assert_eq!(spread, Spread::Several);
    }

    #[test]
    fn pmi_and_alone() {
        let seat = read("PMI_RANK=1 PMI_SIZE=4 MPI_LOCALNRANKS=4").unwrap();
        assert_eq!((seat.launcher, seat.spread), (Launcher::Pmi, Spread::OneHost));
        assert_eq!(read("PMI_RANK=0 PMI_SIZE=1"), None);
        assert_eq!(read(""), None);
    }

    #[test]
    fn nonsense_is_named() {
        let text = |text: &str| seat(&environment(text)).unwrap_err().to_string();
        insta::assert_snapshot!(text("SLURM_PROCID=x SLURM_NTASKS=2"), @"SLURM_PROCID=`x`: expected a number");
        insta::assert_snapshot!(text("PMI_RANK=4 PMI_SIZE=4"), @"mpirun says that this is process 4 of 4");
    }
}
