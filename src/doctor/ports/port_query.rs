//! The connections to test for a role: the rows of the port table, with the addresses of `--set`,
//! and the endpoints of the lock.

use super::{Decided, NODE_PORTS, PortRow, Ports, RANGE, RequiredPort, TABLE};
use crate::doctor::ports;
use landfall_http::ConnectRoute;
use landfall_item::lockfile::Endpoint;
use landfall_model::document::nearest;
use landfall_model::{Failure, TUNNELING, split_port, without_brackets};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The number of ports of a range that are tested in addition to its two ends.
const SAMPLE: u16 = 3;

/// The way in which KKP exposes user clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Strategy(&'static str);

impl Strategy {
    /// The strategies by their names in KKP.
    pub(crate) const ALL: [&'static str; 3] = ["NodePort", "LoadBalancer", "Tunneling"];
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Strategy, String> {
        let found = Strategy::ALL
            .iter()
            .find(|known| known.eq_ignore_ascii_case(text));
        found
            .map(|known| Strategy(known))
            .ok_or_else(|| format!("the strategies are {}", Strategy::ALL.join(", ")))
    }
}

/// Selects all roles. Their ports are listed, and none is probed, since one machine cannot test
/// the connections of another.
const ALL_ROLES: &str = "all";
/// The role of worker nodes, which connect to the control plane of their cluster.
const WORKERS: &str = "user-cluster-node";

/// The ports that machines of a role need, and the connections that test them.
#[derive(Debug)]
pub(crate) struct PortQuery {
    /// The role, as in the port table or in `from` of an endpoint.
    pub role: String,
    /// The table of the ports, whether or not their addresses are known.
    pub ports: Vec<RequiredPort>,
    /// The connections to test, and those that cannot be tested.
    pub lines: Vec<PortLine>,
}

/// A connection to test, or the reason why it cannot be tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PortLine {
    /// A port at which a service must listen.
    Port {
        /// The DNS name or IP address to connect to.
        host: String,
        port: u16,
        /// The name of the destination, such as `seed-api`, or the words `endpoint of the lock`.
        what: String,
        /// The purpose of the connection.
        why: String,
        /// Whether the proxy rules apply to the connection.
        route: ConnectRoute,
    },
    /// Samples of a range. No service has to listen there, but no firewall may drop the packets.
    Range {
        /// The DNS name or IP address to connect to.
        host: String,
        /// The ports that are tested: both ends and some between.
        ports: Vec<u16>,
        /// All ports that the firewall must let through.
        range: RangeInclusive<u16>,
        /// The name of the destination, as in [`PortLine::Port`].
        what: String,
        /// The purpose of the connection, as in [`PortLine::Port`].
        why: String,
    },
    /// Something that cannot be tested.
    Untested(UntestedPort),
}

/// A connection that cannot be tested, or another limit of the test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UntestedPort {
    /// The name of the destination, if it is about one.
    pub to: Option<String>,
    /// The purpose of the connection, if it is about one.
    pub why: Option<String>,
    /// Why it cannot be tested.
    pub reason: String,
    /// The fix that makes it testable.
    pub fix: Option<String>,
}

impl UntestedPort {
    /// A limit that is not about one connection.
    fn general(reason: impl Into<String>, fix: &str) -> PortLine {
        PortLine::Untested(UntestedPort {
            to: None,
            why: None,
            reason: reason.into(),
            fix: Some(fix.into()),
        })
    }

    /// Destination, purpose and reason in one line.
    pub(super) fn says(&self) -> String {
        let parts = self.to.iter().chain(&self.why).chain([&self.reason]);
        parts.map(String::as_str).collect::<Vec<_>>().join(": ")
    }
}

impl PortQuery {
    /// Returns the ports that machines of `role` need with `strategy`: those of KKP's table, with
    /// the addresses in `set`, and the endpoints of the role.
    pub(crate) fn new(
        role: &str,
        strategy: Option<Strategy>,
        set: &[(String, String)],
        endpoints: &[Endpoint],
    ) -> Result<PortQuery, Failure> {
        let named = endpoints
            .iter()
            .flat_map(|endpoint| &endpoint.from)
            .map(String::as_str);
        let roles: BTreeSet<&str> = TABLE
            .iter()
            .map(|row| row.role.as_str())
            .chain(named)
            .collect();
        if !roles.contains(role) && role != ALL_ROLES {
            let known = known_words("roles", role, &roles);
            return Err(Failure::usage(format!(
                "there is no role {role}: {known}, and {ALL_ROLES}"
            )));
        }
        // An endpoint of the lock may be for a role that is called `all`.
        let is_all = role == ALL_ROLES && !roles.contains(role);
        let set = PortSettings::read(set)?;
        let mut lines = Vec::new();
        let mut ports = Vec::new();
        for row in TABLE.iter().filter(|row| is_all || row.role == role) {
            let fits = row.strategies.is_empty()
                || strategy.is_some_and(|one| row.strategies.iter().any(|fits| fits == one.0));
            // Without --expose, the table has the rows of all strategies.
            if fits || strategy.is_none() {
                ports.extend(ports::rows_of_table(
                    row,
                    set.addresses.get(row.to.as_str()),
                    set.range.as_ref(),
                ));
            }
            if fits {
                lines.extend(set.fill(row));
            } else if strategy.is_none() {
                lines.push(PortLine::Untested(UntestedPort {
                    to: Some(row.to.clone()),
                    why: Some(row.purpose()),
                    reason: format!("only {} needs it", row.strategy()),
                    fix: Some("name the strategy with --expose".into()),
                }));
            }
        }
        let needed = endpoints
            .iter()
            .filter(|endpoint| is_all || endpoint.is_for(role));
        ports.extend(
            needed
                .clone()
                .map(|endpoint| ports::row_of_endpoint(endpoint, role)),
        );
        lines.extend(needed.map(line_of_endpoint));
        // One machine cannot test the connections of other roles.
        if is_all {
            lines = Vec::new();
        }
        lines.extend(limits(role, is_all, strategy, &lines));
        Ok(PortQuery {
            role: role.into(),
            ports,
            lines,
        })
    }
}

/// The notes about what `lines`, the connections of `role`, do not test.
fn limits(
    role: &str,
    is_all: bool,
    strategy: Option<Strategy>,
    lines: &[PortLine],
) -> Vec<PortLine> {
    let mut limits = Vec::new();
    let is_untested = |line: &PortLine| matches!(line, PortLine::Untested(_));
    if is_all {
        limits.push(UntestedPort::general(
            "nothing was probed: these are the ports of all roles",
            "name the role of this machine",
        ));
    } else if lines.iter().all(is_untested) {
        limits.push(UntestedPort::general(
            "nothing was probed: no connection of this role can be tested yet",
            "use --expose and --set as the lines above say, or give the table to the \
             administrators of the firewall",
        ));
    }
    if strategy == Some(Strategy(TUNNELING.name)) && (is_all || role == WORKERS) {
        limits.push(UntestedPort::general(
            TUNNELING.summary(),
            "let worker nodes reach seed-nodeport-proxy without the proxy and list it in NO_PROXY, \
             or choose another strategy",
        ));
    }
    if is_all || role.ends_with("-node") {
        limits.push(UntestedPort::general(
            "connections between the nodes of a cluster (CNI, CSI, all UDP) cannot be tested from \
             one host",
            "run doctor on each network that has machines of the role",
        ));
    }
    limits
}

/// The connection that tests an endpoint. A wildcard has no name to connect to.
pub(super) fn line_of_endpoint(endpoint: &Endpoint) -> PortLine {
    match endpoint.host.strip_prefix("*.") {
        Some(_) => PortLine::Untested(UntestedPort {
            to: Some(endpoint.to_string()),
            why: Some(endpoint.why.clone()),
            reason: "a wildcard has no name to connect to".into(),
            fix: Some("check a name below it: landfall doctor https://NAME/".into()),
        }),
        None => PortLine::Port {
            host: endpoint.host.clone(),
            port: endpoint.port,
            what: "endpoint of the lock".into(),
            why: endpoint.why.clone(),
            route: ConnectRoute::ByRules,
        },
    }
}

/// The values of `--set`: addresses by the name of the destination, and the range of node ports.
struct PortSettings<'a> {
    addresses: BTreeMap<&'a str, (String, Option<u16>)>,
    /// The range of node ports, if it is not [`NODE_PORTS`].
    range: Option<RangeInclusive<u16>>,
}

impl PortSettings<'_> {
    fn read(set: &[(String, String)]) -> Result<PortSettings<'_>, Failure> {
        let known: BTreeSet<&str> = TABLE
            .iter()
            .map(|row| row.to.as_str())
            .chain([RANGE])
            .collect();
        let mut settings = PortSettings {
            addresses: BTreeMap::new(),
            range: None,
        };
        for (key, value) in set {
            let wrong = |words: String| Failure::usage(format!("--set {key}={value}: {words}"));
            if key == RANGE {
                let range =
                    range(value).ok_or_else(|| wrong("write a range as 30000-32767".into()))?;
                settings.range = Some(range).filter(|range| *range != NODE_PORTS);
            } else if known.contains(key.as_str()) {
                let address =
                    address(value).ok_or_else(|| wrong("write HOST or HOST:PORT".into()))?;
                settings.addresses.insert(key, address);
            } else {
                return Err(wrong(known_words("names", key, &known)));
            }
        }
        Ok(settings)
    }

    fn fill(&self, row: &PortRow) -> Vec<PortLine> {
        let what = row.to.clone();
        let why = row.purpose();
        let untested = |reason: &str, fix: String| {
            vec![PortLine::Untested(UntestedPort {
                to: Some(what.clone()),
                why: Some(why.clone()),
                reason: reason.into(),
                fix: Some(fix),
            })]
        };
        let Some((host, own)) = self.addresses.get(row.to.as_str()) else {
            let fix = format!("name it with --set {what}=ADDRESS");
            return untested("no address is known", fix);
        };
        // The machines of a site reach each other without a proxy: SSH, the Kubernetes API and
        // Konnectivity.
        let route = if row.outside {
            ConnectRoute::ByRules
        } else {
            ConnectRoute::Direct
        };
        let port = |port| PortLine::Port {
            host: host.clone(),
            port,
            what: what.clone(),
            why: why.clone(),
            route,
        };
        match (&row.ports, own) {
            // A port given with `--set` replaces the first port of the row.
            (Ports::Of(ports), Some(own)) => {
                let rest = ports.iter().skip(1).copied();
                std::iter::once(*own).chain(rest).map(port).collect()
            }
            (Ports::Of(ports), None) => ports.iter().copied().map(port).collect(),
            (_, Some(own)) => vec![port(*own)],
            (Ports::Decided(Decided::Provider), None) => {
                let fix = format!("name it with --set {what}={}", join_port(host, "PORT"));
                untested("the table names no port", fix)
            }
            (Ports::Decided(Decided::NodePorts), None) => {
                let host = host.clone();
                let range = self.range.clone().unwrap_or(NODE_PORTS);
                vec![PortLine::Range {
                    host,
                    ports: sample(&range),
                    range,
                    what,
                    why,
                }]
            }
        }
    }
}

/// The end of a message about an unknown word: the most similar one of `known`, and all of them.
fn known_words(what: &str, word: &str, known: &BTreeSet<&str>) -> String {
    let near = nearest(word, known.iter().copied());
    let near = near.map(|near| format!("did you mean {near}? "));
    let all: Vec<&str> = known.iter().copied().collect();
    let near = near.unwrap_or_default();
    format!("{near}known {what} are {}", all.join(", "))
}

/// Parses a range of ports such as `30000-32767`.
fn range(text: &str) -> Option<RangeInclusive<u16>> {
    let (from, to) = text.split_once('-')?;
    let range = from.trim().parse().ok()?..=to.trim().parse().ok()?;
    (!range.is_empty() && *range.start() > 0).then_some(range)
}

/// Parses `host` or `host:port`; an IPv6 address may have brackets.
fn address(text: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = match split_port(text) {
        (host, Some(port)) => (host, Some(port.parse().ok().filter(|port| *port > 0)?)),
        (host, None) => (host, None),
    };
    let host = without_brackets(host);
    let is_name = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    let is_valid =
        host.parse::<std::net::IpAddr>().is_ok() || !host.is_empty() && host.chars().all(is_name);
    is_valid.then(|| (host.to_owned(), port))
}

/// `host:port`, with brackets around an IPv6 address.
pub(super) fn join_port(host: &str, port: impl fmt::Display) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// Returns the ends of a range and [`SAMPLE`] ports between, at equal distances.
fn sample(range: &RangeInclusive<u16>) -> Vec<u16> {
    // In u32, since a product of a distance and an index exceeds u16.
    let from = u32::from(*range.start());
    let to = u32::from(*range.end());
    let parts = u32::from(SAMPLE) + 1;
    let ports = (0..=parts).map(|n| from + (to - from) * n / parts);
    let ports: BTreeSet<u16> = ports.filter_map(|port| u16::try_from(port).ok()).collect();
    ports.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(
        role: &str,
        strategy: &str,
        set: &[(&str, &str)],
    ) -> Result<Vec<String>, String> {
        let set: Vec<_> = set
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let endpoint = |host: &str, from: &[&str]| Endpoint {
            host: host.into(),
            port: 443,
            why: "w".into(),
            from: from.iter().map(|&role| role.into()).collect(),
        };
        let endpoints = [
            endpoint("vcenter.test", &["seed-cluster-node"]),
            endpoint("*.all.test", &[]),
        ];
        let ask = PortQuery::new(role, strategy.parse().ok(), &set, &endpoints)
            .map_err(|error| error.to_string())?;
        let lines = ask.lines.iter().map(|line| match line {
            PortLine::Port { host, port, .. } => format!("{host}:{port}"),
            PortLine::Range { host, ports, .. } => format!("{host} {ports:?}"),
            PortLine::Untested(untested) => {
                let says = untested.says();
                says.split([':', '('])
                    .next()
                    .unwrap_or_default()
                    .trim()
                    .to_owned()
            }
        });
        Ok(lines.collect())
    }

    /// Compares the lines of roles and strategies, without the endpoint that every role needs and
    /// the notes at the end.
    #[test]
    fn connections_depend_on_role_and_strategy() {
        let proxy = [
            ("seed-nodeport-proxy", "10.0.0.5"),
            ("master-ingress", "kkp.test"),
            ("seed-api", "api.test:8443"),
        ];
        let rows = |role: &str, strategy: &str| {
            let mut rows = connections(role, strategy, &proxy).unwrap();
            let about_nodes = rows.pop_if(|last| last.starts_with("connections between the nodes"));
            assert_eq!(about_nodes.is_some(), role.ends_with("-node"), "{role}");
            let about_proxies = rows.pop_if(|last| last.starts_with("Tunneling is not supported"));
            assert_eq!(
                about_proxies.is_some(),
                (role, strategy) == ("user-cluster-node", "Tunneling"),
                "{role} {strategy}"
            );
            rows.pop_if(|last| last == "nothing was probed");
            assert_eq!(rows.pop().unwrap(), "*.all.test");
            rows
        };
        let range = "10.0.0.5 [30000, 30691, 31383, 32075, 32767]";
        assert_eq!(
            rows("kkp-user", "Tunneling"),
            ["kkp.test:443", "10.0.0.5:6443"]
        );
        assert_eq!(rows("kkp-user", "NodePort"), ["kkp.test:443", range]);
        assert_eq!(
            rows("master-cluster-node", "tunneling"),
            ["api.test:8443", "10.0.0.5:6443"]
        );
        assert_eq!(
            rows("master-cluster-node", "LoadBalancer"),
            ["api.test:8443", range]
        );
        assert_eq!(
            rows("user-cluster-node", "Tunneling"),
            ["10.0.0.5:6443", "10.0.0.5:8088"]
        );
        assert_eq!(rows("user-cluster-node", "NodePort"), [range]);
        assert_eq!(
            rows("seed-cluster-node", "NodePort"),
            ["cloud-provider-api", "vcenter.test:443"]
        );
        assert_eq!(
            rows("user-cluster-node", ""),
            ["seed-nodeport-proxy", "seed-nodeport-proxy"]
        );
    }

    #[test]
    fn addresses_and_ranges_are_parsed_and_unknown_names_get_a_suggestion() {
        for address in ["fd00::5", "[fd00::5]"] {
            let set = [
                ("seed-nodeport-proxy", address),
                ("nodeport-range", "31000-31002"),
            ];
            assert_eq!(
                connections("user-cluster-node", "NodePort", &set).unwrap()[0],
                "fd00::5 [31000, 31001, 31002]",
                "{address}"
            );
        }
        let set = [("cloud-provider-api", "[fd00::9]:8443")];
        assert_eq!(
            connections("seed-cluster-node", "", &set).unwrap()[0],
            "fd00::9:8443"
        );
        let set = [("cloud-provider-api".to_owned(), "fd00::9".to_owned())];
        let query = PortQuery::new("seed-cluster-node", None, &set, &[]).unwrap();
        let fixes = query.lines.iter().filter_map(|line| match line {
            PortLine::Untested(untested) => untested.fix.as_deref(),
            _ => None,
        });
        let fix = "name it with --set cloud-provider-api=[fd00::9]:PORT";
        assert!(fixes.clone().any(|one| one == fix), "{:?}", query.lines);
        let set = [
            ("cloud-provider-api".to_owned(), "api.test:443".to_owned()),
            ("node".to_owned(), "10.0.0.9".to_owned()),
        ];
        let query = PortQuery::new("provisioning-host", None, &set, &[]).unwrap();
        let routes: Vec<_> = query
            .lines
            .iter()
            .filter_map(|line| match line {
                PortLine::Port { host, route, .. } => Some((host.as_str(), *route)),
                _ => None,
            })
            .collect();
        assert_eq!(
            routes,
            [
                ("10.0.0.9", ConnectRoute::Direct),
                ("api.test", ConnectRoute::ByRules)
            ]
        );
        let message = connections("user-clusternode", "", &[]).unwrap_err();
        assert!(
            message.contains("did you mean user-cluster-node?"),
            "{message}"
        );
        let message = connections("kkp-user", "", &[("seed-proxy", "x")]).unwrap_err();
        assert!(
            message.contains("known names are cloud-provider-api, master-ingress, node"),
            "{message}"
        );
        assert!(connections("kkp-user", "", &[("nodeport-range", "9-1")]).is_err());
        assert!(connections("kkp-user", "", &[("seed-api", "https://x")]).is_err());
        assert!(connections("kkp-user", "", &[("seed-api", "[fd00::9]:x")]).is_err());
    }
}
