//! What is decided before any rule speaks: the one transport of the job.

use ncclctl_nccl::version::Version;

use crate::node::{Hca, Link, Node, Provider};
use crate::result::{Goal, Transport};

/// The nodes, and what they have in common.
pub(crate) struct Look<'a> {
    pub(crate) nodes: &'a [Node],
    pub(crate) nccl: Version,
    pub(crate) goal: Option<Goal>,
    pub(crate) transport: Transport,
    pub(crate) transport_why: String,
    /// What each node would take by itself.
    pub(crate) each: Vec<Able>,
}

/// What a node could do, and would do when left alone.
#[derive(Clone, Debug)]
pub(crate) struct Able {
    /// Best transport that works.
    pub(crate) works: Transport,
    /// Why it is not RDMA though there are devices.
    pub(crate) blocked: Option<String>,
    /// NCCL left alone would try something else than `works`.
    pub(crate) would_try_rdma: bool,
}

/// Since this release NCCL chooses the GID itself.
pub(crate) const GID_CHOICE: Version = Version::new(2, 21, 5);

/// Since this release the choice of a GID survives entries of other network namespaces.
pub(crate) const GID_CHOICE_IN_PODS: Version = Version::new(2, 26, 2);

impl<'a> Look<'a> {
    pub(crate) fn new(nodes: &'a [Node], nccl: Version, goal: Option<Goal>) -> Self {
        let each: Vec<Able> = nodes.iter().map(able).collect();
        let (transport, transport_why) = common(nodes, &each);
        Self { nodes, nccl, goal, transport, transport_why, each }
    }

    /// Whether every node has the same answer.
    pub(crate) fn one_answer<T: PartialEq>(&self, of: impl Fn(&Node) -> T) -> Option<T> {
        let mut answers = self.nodes.iter().map(of);
        let first = answers.next()?;
        answers.all(|a| a == first).then_some(first)
    }

    /// Active ports that the transport of the job could use on a node.
    pub(crate) fn ports(&self, node: &'a Node) -> Vec<&'a Hca> {
        let link = match self.transport {
            Transport::Infiniband => Link::Infiniband,
            Transport::Roce => Link::Ethernet,
            _ => return Vec::new(),
        };
        node.hcas.iter().filter(|h| h.active && h.link == link).collect()
    }
}

/// Whether a port has an address that peers can reach.
fn has_gid(hca: &Hca) -> bool {
    match (&hca.gids, hca.link) {
        (_, Link::Infiniband | Link::Efa) | (None, _) => true,
        (Some(gids), Link::Ethernet) => gids.iter().any(crate::node::Gid::routable),
    }
}

fn able(node: &Node) -> Able {
    let done =
        |works, blocked: Option<String>, would_try_rdma| Able { works, blocked, would_try_rdma };
    let plugin = |word: &str| node.net_plugins.iter().any(|p| p.contains(word));
    match &node.provider {
        Provider::Efa(_) if node.hcas.iter().any(|h| h.link == Link::Efa) => {
            return if plugin("ofi") || plugin("libnccl-net") {
                done(Transport::Efa, None, true)
            } else {
                let why = "EFA devices are there, but no OFI plug-in that NCCL would load";
                done(Transport::Socket, Some(why.to_owned()), false)
            };
        }
        Provider::Tcpx(_) | Provider::Tcpxo(_) if !node.net_plugins.is_empty() => {
            return done(Transport::Tcpx, None, true);
        }
        _ => {}
    }
    let ours = |h: &&Hca| h.link != Link::Efa;
    if !node.hcas.iter().any(|h| ours(&h)) {
        return done(Transport::Socket, None, false);
    }
    let active: Vec<&Hca> = node.hcas.iter().filter(ours).filter(|h| h.active).collect();
    if active.is_empty() {
        return done(Transport::Socket, Some("no RDMA port is ACTIVE".to_owned()), false);
    }
    if node.verbs == Some(false) {
        let why = "libibverbs or its provider is missing in the image";
        return done(Transport::Socket, Some(why.to_owned()), false);
    }
    let open: Vec<&Hca> = active.iter().copied().filter(|h| h.openable != Some(false)).collect();
    if open.is_empty() {
        let why = "the RDMA device nodes can not be opened in this container";
        return done(Transport::Socket, Some(why.to_owned()), false);
    }
    // InfiniBand ports carry the job where there are any: a RoCE port beside them is for storage
    let infiniband: Vec<&Hca> =
        open.iter().copied().filter(|h| h.link == Link::Infiniband).collect();
    if !infiniband.is_empty() {
        return done(Transport::Infiniband, None, true);
    }
    if open.iter().any(|h| has_gid(h)) {
        return done(Transport::Roce, None, true);
    }
    let why = "no GID with an address that peers can reach: the interface of the RDMA port is in \
               another network namespace";
    done(Transport::Socket, Some(why.to_owned()), true)
}

fn common(nodes: &[Node], each: &[Able]) -> (Transport, String) {
    let Some(first) = each.first() else {
        return (Transport::Socket, "no node was given".to_owned());
    };
    if each.iter().all(|a| a.works == first.works) {
        let why = match (first.works, each.iter().find_map(|a| a.blocked.as_ref())) {
            (Transport::Socket, Some(why)) => why.clone(),
            (Transport::Socket, None) => "no RDMA device on any node".to_owned(),
            (transport, _) => format!("every node has {}", transport.name()),
        };
        return (first.works, why);
    }
    let list = |want: &dyn Fn(&Able) -> bool| {
        let names: Vec<&str> =
            nodes.iter().zip(each).filter(|(_, a)| want(a)).map(|(n, _)| n.name.as_str()).collect();
        names_of(&names)
    };
    let mut kinds: Vec<Transport> = Vec::new();
    for able in each {
        if !kinds.contains(&able.works) {
            kinds.push(able.works);
        }
    }
    let parts: Vec<String> = kinds
        .iter()
        .map(|kind| format!("{} has {}", list(&|a| a.works == *kind), kind.name()))
        .collect();
    (
        Transport::Socket,
        format!(
            "the nodes have not one RDMA network in common ({}): a job over both hangs in init \
             unless all use sockets; this costs the RDMA rate on every node",
            parts.join("; ")
        ),
    )
}

/// A few names, or the first of many.
pub(crate) fn names_of(names: &[&str]) -> String {
    match names {
        [] => "no node".to_owned(),
        [one] => (*one).to_owned(),
        [first, rest @ ..] if rest.len() > 3 => format!("{first} and {} others", rest.len()),
        all => all.join(", "),
    }
}
