//! A plan while the rules write it: what a release does not read never gets in.

use ncclctl_nccl::params;
use ncclctl_nccl::version::Version;

use crate::look::Look;
use crate::node::Node;
use crate::result::{Layer, Need, NodePlan, NotSet, Plan, Port, Setting};

/// Settings that choose the transport: ranks that disagree about one wait for each other.
const TRANSPORT: [&str; 3] = ["NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_IB_DISABLE"];

/// The plan so far.
pub(crate) struct Draft {
    /// Rule that is writing.
    pub(crate) rule: &'static str,
    nccl: Version,
    settings: Vec<Setting>,
    nodes: Vec<NodePlan>,
    needs: Vec<Need>,
    ports: Vec<Port>,
    not_set: Vec<NotSet>,
}

/// Why a setting is set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Because {
    /// The reason.
    pub(crate) reason: String,
    /// What happens without it.
    pub(crate) without: String,
    /// Facts that were used.
    pub(crate) facts: Vec<String>,
}

impl Draft {
    pub(crate) fn new(nodes: &[Node], nccl: Version) -> Self {
        let nodes = nodes
            .iter()
            .map(|node| NodePlan { name: node.name.clone(), settings: Vec::new() })
            .collect();
        Self {
            rule: "",
            nccl,
            settings: Vec::new(),
            nodes,
            needs: Vec::new(),
            ports: Vec::new(),
            not_set: Vec::new(),
        }
    }

    /// Sets a value on every node.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>, because: Because) {
        if let Some(setting) = self.setting(name, value.into(), Layer::Job, because) {
            self.settings.retain(|s| s.name != name);
            self.settings.push(setting);
        }
    }

    /// Sets a value on one node.
    pub(crate) fn set_on(
        &mut self,
        node: usize,
        name: &str,
        value: impl Into<String>,
        because: Because,
    ) {
        if let Some(setting) = self.setting(name, value.into(), Layer::Node, because)
            && let Some(plan) = self.nodes.get_mut(node)
        {
            plan.settings.retain(|s| s.name != name);
            plan.settings.push(setting);
        }
    }

    fn setting(
        &mut self,
        name: &str,
        value: String,
        layer: Layer,
        because: Because,
    ) -> Option<Setting> {
        let param = params::get(name).filter(|p| p.read_in(self.nccl));
        let Some(param) = param else {
            let since = params::get(name).and_then(|p| p.since);
            let from = since.map_or_else(String::new, |v| format!(" ({v} and later do)"));
            self.leave(name, format!("NCCL {} does not read it{from}", self.nccl));
            return None;
        };
        Some(Setting {
            name: name.to_owned(),
            value,
            layer,
            rule: self.rule.to_owned(),
            reason: because.reason,
            facts: because.facts,
            without: because.without,
            read_since: param.since,
            shared: param.must_match() || TRANSPORT.contains(&name),
        })
    }

    /// Says why a setting is left to NCCL.
    pub(crate) fn leave(&mut self, name: &str, why: impl Into<String>) {
        if !self.not_set.iter().any(|n| n.name == name) {
            self.not_set.push(NotSet { name: name.to_owned(), why: why.into() });
        }
    }

    /// Asks something of the container.
    pub(crate) fn need(&mut self, need: Need) {
        self.needs.push(need);
    }

    /// Lists a port.
    pub(crate) fn port(&mut self, protocol: &str, range: (u16, u16), what: &str, local: bool) {
        self.ports.push(Port {
            protocol: protocol.to_owned(),
            first: range.0,
            last: range.1,
            what: what.to_owned(),
            local,
        });
    }

    pub(crate) fn finish(self, look: &Look<'_>, nccl_from: String) -> Plan {
        let set = |name: &str| {
            self.settings.iter().any(|s| s.name == name)
                || self.nodes.iter().any(|n| n.settings.iter().any(|s| s.name == name))
        };
        let not_set = self.not_set.iter().filter(|n| !set(&n.name)).cloned().collect();
        Plan {
            nccl: self.nccl,
            nccl_from,
            goal: look.goal,
            transport: look.transport,
            transport_why: look.transport_why.clone(),
            settings: self.settings,
            nodes: self.nodes,
            needs: self.needs,
            questions: Vec::new(),
            ports: self.ports,
            not_set,
            gpus: look.nodes.iter().map(|n| n.gpus.len()).max().unwrap_or(0),
        }
    }
}
