//! KKP's table of required ports, as its reference page for networking has it, and what the reference set-up adds for the
//! machine that installs it. All are TCP.

/// One row: who needs which port of whom.
pub(super) struct Row {
    /// The role of the machine that connects.
    pub(super) role: &'static str,
    /// What runs there.
    pub(super) component: &'static str,
    /// Where it connects to: the word of `--set`.
    pub(super) to: &'static str,
    /// The expose strategies with which it does; empty for any.
    pub(super) strategies: &'static [&'static str],
    /// The ports.
    pub(super) ports: Ports,
    /// What for.
    pub(super) why: &'static str,
}

/// The ports of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ports {
    /// These.
    Of(&'static [u16]),
    /// The range of node ports, which a cluster may set otherwise.
    Range,
    /// Those of the provider.
    OfProvider,
}

/// What `--set` names beside destinations: the range of node ports.
pub(super) const RANGE: &str = "nodeport-range";

const EXPOSED: &[&str] = &["NodePort", "LoadBalancer"];
const TUNNELED: &[&str] = &["Tunneling"];
const NODE: &str = "kubelet, Konnectivity and in-cluster clients";

/// Every row.
pub(super) const TABLE: &[Row] = &[
    row("kkp-user", "a browser", "master-ingress", &[], Ports::Of(&[443]), "the dashboard"),
    row("kkp-user", "kubectl", "seed-nodeport-proxy", TUNNELED, Ports::Of(&[6443]), "API of user clusters"),
    row("kkp-user", "kubectl", "seed-nodeport-proxy", EXPOSED, Ports::Range, "API of user clusters"),
    row(
        "master-cluster-node",
        "KKP operator and API",
        "seed-api",
        &[],
        Ports::Of(&[6443]),
        "the operator reaches the seed",
    ),
    row(
        "master-cluster-node",
        "KKP API",
        "seed-nodeport-proxy",
        TUNNELED,
        Ports::Of(&[6443]),
        "API of user clusters",
    ),
    row(
        "master-cluster-node",
        "KKP API",
        "seed-nodeport-proxy",
        EXPOSED,
        Ports::Range,
        "API of user clusters",
    ),
    row(
        "seed-cluster-node",
        "seed controller manager",
        "cloud-provider-api",
        &[],
        Ports::OfProvider,
        "machines, load balancers and disks",
    ),
    row(
        "user-cluster-node",
        NODE,
        "seed-nodeport-proxy",
        TUNNELED,
        Ports::Of(&[6443, 8088]),
        "API of user clusters, and Konnectivity",
    ),
    row(
        "user-cluster-node",
        NODE,
        "seed-nodeport-proxy",
        EXPOSED,
        Ports::Range,
        "API of user clusters, and Konnectivity",
    ),
    row("provisioning-host", "KubeOne", "node", &[], Ports::Of(&[22]), "SSH to the nodes"),
    row(
        "provisioning-host",
        "KubeOne",
        "seed-api",
        &[],
        Ports::Of(&[6443]),
        "the API behind its load balancer",
    ),
    row(
        "provisioning-host",
        "terraform",
        "cloud-provider-api",
        &[],
        Ports::OfProvider,
        "machines and networks",
    ),
];

const fn row(
    role: &'static str,
    component: &'static str,
    to: &'static str,
    strategies: &'static [&'static str],
    ports: Ports,
    why: &'static str,
) -> Row {
    Row { role, component, to, strategies, ports, why }
}
