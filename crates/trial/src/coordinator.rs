//! The coordinator: gathers workers, starts ranks, decides what is measured next, and ends everybody
//! when somebody is lost.

mod blame;
mod budget;
mod evidence;
mod fit;
mod gate;
mod loss;
mod measure;
mod others;
mod rendezvous;
#[cfg(test)]
mod tests;
mod workers;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ncclctl_findings::Evidence;
use tokio::net::TcpListener;

use crate::error::{Kind, TrialError};
use crate::event::Event;
use crate::launch;
use crate::plan::TrialPlan;
use crate::token::Token;
use crate::worker;

/// Where ranks run.
#[derive(Debug)]
pub enum Places {
    /// Processes of this machine.
    Local {
        /// How many.
        ranks: usize,
        /// Program and arguments that become a rank.
        rank_program: (PathBuf, Vec<String>),
    },
    /// Workers that join, each with the ranks it offers.
    Join {
        /// Address and port to listen on.
        address: String,
        /// How many workers to wait for.
        workers: usize,
        /// The token that they must have.
        token: Token,
        /// How a worker elsewhere gets the token, for the line that is printed.
        token_hint: String,
    },
    /// The processes of a launcher, this one the first of them.
    Launched(launch::Host),
}

/// Receives what happens while a trial runs.
pub type Sink<'a> = &'a mut dyn FnMut(Event);

/// Carries out a trial. Blocking; owns its runtime. Every worker has ended its ranks when it returns.
pub fn run(plan: &TrialPlan, places: Places, sink: Sink<'_>) -> Result<Evidence, TrialError> {
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| TrialError::environment(format!("can not start: {error}")))?;
    let result = runtime.block_on(carry_out(plan, places, sink));
    runtime.shutdown_timeout(Duration::from_secs(2));
    result
}

/// A thousand workers need a thousand descriptors; the usual soft limit is 1024.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

async fn carry_out(
    plan: &TrialPlan,
    places: Places,
    sink: Sink<'_>,
) -> Result<Evidence, TrialError> {
    // a launched host takes away at its end what it wrote for the others
    let mut _launched = None;
    let (listener, token, wanted, own, hint) = match places {
        Places::Local { ranks, rank_program } => {
            let listener = bind("127.0.0.1:0").await?;
            let token = Token::new().map_err(|e| TrialError::environment(e.to_string()))?;
            let options = worker::Options {
                index: None,
                world: None,
                name: None,
                ranks: 1,
                patience: Duration::from_secs(5),
                rank_program,
            };
            (listener, token, ranks, vec![options; ranks], None)
        }
        Places::Join { address, workers, token, token_hint } => {
            let listener = bind(&address).await?;
            (listener, token, workers, Vec::new(), Some(token_hint))
        }
        Places::Launched(host) => {
            let listener = host.listener.try_clone().and_then(TcpListener::from_std);
            let listener = listener.map_err(|e| TrialError::environment(e.to_string()))?;
            let (token, world, own) = (host.token.clone(), host.world, host.own.clone());
            _launched = Some(host);
            (listener, token, world, vec![own], None)
        }
    };
    let bound = listener.local_addr().map_err(|e| TrialError::environment(e.to_string()))?;
    if let Some(hint) = hint {
        let join = format!("ncclctl worker --join {} {hint}", reachable(bound));
        sink(Event::Listening { address: bound.to_string(), join, workers: wanted });
    }
    let mut helpers = tokio::task::JoinSet::new();
    for (index, mut options) in own.into_iter().enumerate() {
        options.index = options.index.or(Some(index));
        let (token, address) = (token.clone(), loopback_of(bound).to_string());
        helpers.spawn(async move { worker::serve(&address, &token, options).await });
    }
    let gate = gate::Gate::open(listener, &token)
        .map_err(|error| TrialError::environment(format!("TLS can not be set up: {error}")))?;
    let mut workers = workers::Workers::gather(gate, wanted, plan, sink).await?;
    let result = measure::trials(plan, &mut workers, sink).await;
    match &result {
        Ok(_) => workers.leave().await,
        Err(error) => workers.abort(&error.message).await,
    }
    // the workers of this process end their ranks before anybody hears of the end
    let _ = tokio::time::timeout(Duration::from_secs(3), async {
        while helpers.join_next().await.is_some() {}
    })
    .await;
    sink(Event::TrialFinished);
    result
}

/// A rendezvous without anything to measure: join, settings, a barrier, leave.
pub(crate) fn rehearse(
    address: &str,
    token: &Token,
    wanted: usize,
) -> Result<crate::rendezvous::Took, TrialError> {
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| TrialError::environment(format!("can not start: {error}")))?;
    runtime.block_on(async {
        let gate = gate::Gate::open(bind(address).await?, token)
            .map_err(|error| TrialError::environment(error.to_string()))?;
        let plan = TrialPlan::new("tcp");
        let mut first = None;
        let mut note = |event: Event| {
            if let Event::WorkerJoined { .. } = event {
                first.get_or_insert_with(std::time::Instant::now);
            }
        };
        let mut workers = workers::Workers::gather(gate, wanted, &plan, &mut note).await?;
        let first = first.unwrap_or_else(std::time::Instant::now);
        let mut took = crate::rendezvous::Took { joined: first.elapsed(), ..Default::default() };
        measure::start(&plan, &mut workers, wanted, &mut |_| {}).await?;
        took.started = first.elapsed();
        measure::barrier(&mut workers).await?;
        took.barrier = first.elapsed();
        workers.leave().await;
        took.left = first.elapsed();
        Ok(took)
    })
}

async fn bind(address: &str) -> Result<TcpListener, TrialError> {
    TcpListener::bind(address).await.map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "another program listens there; choose another port".to_owned()
            }
            io::ErrorKind::AddrNotAvailable => "this host does not have that address".to_owned(),
            io::ErrorKind::InvalidInput => "expected ADDRESS:PORT".to_owned(),
            _ => error.to_string(),
        };
        let kind = match error.kind() {
            io::ErrorKind::InvalidInput => Kind::Usage,
            _ => Kind::Environment,
        };
        TrialError {
            message: format!("can not listen on {address}: {why}"),
            kind,
            evidence: Box::default(),
        }
    })
}

/// How this process reaches its own listener.
fn loopback_of(bound: SocketAddr) -> SocketAddr {
    let mut address = bound;
    if bound.ip().is_unspecified() {
        address.set_ip(match bound {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

/// What to print for others: a name where the listener is on every address.
fn reachable(bound: SocketAddr) -> String {
    if bound.ip().is_unspecified() {
        let name = crate::host::describe().name;
        format!("{name}:{}", bound.port())
    } else {
        bound.to_string()
    }
}
