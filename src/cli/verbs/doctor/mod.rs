//! `landfall doctor`: diagnoses connections, and finds settings of a site that will not work.

mod node;
mod packages;

use self::node::DoctorNode;
use self::packages::DoctorPackages;
use crate::cli::shared::bundle_flags::LockFlags;
use crate::cli::shared::{
    CliError, Context, Exit, ReportMember, VerbOutcome, VerbReport, input_file,
};
use crate::doctor::{
    CheckStatus, CheckTarget, Diagnosis, LintMessage, PORTS_FORMATS, PortQuery, RealItems,
    Strategy, changed_names, check_names, diagnose, lint_entries, lint_environment,
    lint_node_config, lint_seeds, port_table, probe_ports, targets_of,
};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use landfall_item::lockfile::Lock;
use landfall_model::config::Site;
use landfall_model::redact_userinfo;
use landfall_render::{NoProxyDialect, NoProxyEntries};
use std::fmt::Write as _;
use std::path::Path;

/// Diagnose connections and configuration
///
/// Checks the named hosts, by default those of the site and the registries of the lock: DNS, the
/// proxy that is used and why, connection, certificate, login and redirects. Each account is tried
/// once. With a lock, also looks up one of its items at each checked registry and, unless hosts are
/// named, connects to its endpoints. Exits with 4 if a check reports NO.
///
/// At the private registry, landfall starts uploads and cancels them, and writes an index with
/// missing children and deletes it. --read-only omits these checks.
///
/// Also checks NO_PROXY, of the site or of the environment, for entries that have no effect or that
/// curl, wget, apt, Python and Java interpret differently.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct DoctorCommand {
    #[command(subcommand)]
    what: Option<DoctorSubcommand>,
    /// URLs, registries as in references, or files: a KKP Seed, containerd's config.toml or
    /// registries.conf [default: all hosts of the site and the registries of the lock, or the
    /// proxies]
    #[arg(value_name = "URL|HOST|FILE")]
    targets: Vec<String>,
    #[command(flatten)]
    locked: LockFlags,
    /// Try no upstream host and no endpoint of the lock: for the side that has only the bundle
    #[arg(long)]
    disconnected: bool,
    /// Write nothing to the private registry
    #[arg(long)]
    read_only: bool,
    /// List the ports that machines of this role need, and probe those with a known address; those
    /// at the site without a proxy: kkp-user, master-cluster-node, seed-cluster-node,
    /// user-cluster-node, provisioning-host, or a role of the lock's endpoints. `all` lists the
    /// ports of every role and probes none
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// How KKP exposes user clusters
    #[arg(long, value_name = "STRATEGY", requires = "role", ignore_case = true,
        value_parser = PossibleValuesParser::new(Strategy::ALL)
            .try_map(|word| word.parse::<Strategy>()))]
    expose: Option<Strategy>,
    /// The address of a destination of the role, as in seed-nodeport-proxy=10.0.0.5, or
    /// nodeport-range=FROM-TO (may be repeated)
    #[arg(long, value_name = "NAME=ADDRESS", requires = "role", value_parser = pair)]
    set: Vec<(String, String)>,
    /// Only print the ports of the role in this format, and probe nothing
    #[arg(long, value_name = "FORMAT", requires = "role", conflicts_with = "targets",
        value_parser = PossibleValuesParser::new(PORTS_FORMATS.iter().map(|format| {
            PossibleValue::new(format.name).help(format.about)
        })))]
    format: Option<String>,
}

/// The subjects that can be diagnosed instead of hosts.
#[derive(Subcommand)]
enum DoctorSubcommand {
    Node(DoctorNode),
    Packages(DoctorPackages),
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, address) = text.split_once('=').ok_or("write NAME=ADDRESS")?;
    Ok((name.into(), address.into()))
}

impl DoctorCommand {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        match self.what {
            Some(DoctorSubcommand::Node(node)) => return node.run(context),
            Some(DoctorSubcommand::Packages(packages)) => return packages.run(context),
            None => {}
        }
        let lock = self.lock(context)?;
        let real = self.real_items(context, lock.as_ref())?;
        let (mut diagnoses, mut targets) = split_targets(&self.targets)?;
        let everything = self.targets.is_empty() && self.role.is_none();
        if everything {
            targets = match &context.site {
                Some(site) => targets_of(site, lock.as_ref(), self.disconnected),
                None => vec![CheckTarget::Proxies],
            };
            for host in real.registries().filter(|_| !self.disconnected) {
                let target = CheckTarget::Registry(host.into(), String::new());
                if !targets.contains(&target) {
                    targets.push(target);
                }
            }
        }
        let endpoints = lock
            .as_ref()
            .filter(|_| !self.disconnected)
            .map(|lock| lock.endpoints.as_slice())
            .unwrap_or_default();
        let query = self.role.as_deref().map(|role| {
            PortQuery::new(role, self.expose, &self.set, endpoints)
                .map_err(|error| CliError::usage(error.to_string()))
        });
        let query = query.transpose()?;
        if let (Some(query), Some(name)) = (&query, &self.format) {
            return Ok(print_ports(query, name));
        }
        let names = context.site.iter().flat_map(|site| &site.names);
        let names: Vec<_> = names
            .map(|entry| (entry.dns(), entry.certificate()))
            .collect();
        let messages = lint(context)?;
        context.run(async {
            let client = context.client()?;
            let sessions = client.sessions();
            let transport = client.sessions().transport();
            for target in &targets {
                diagnoses.push(diagnose(sessions, target, &real).await);
            }
            if query.is_some() || (everything && !endpoints.is_empty()) {
                diagnoses.push(probe_ports(transport, query.as_ref(), endpoints).await);
            }
            if everything && !names.is_empty() {
                diagnoses.push(check_names(transport, &names).await);
            }
            let locked = lock.as_ref().filter(|_| everything);
            diagnoses.extend(changed_names(&targets, locked));
            let exit = exit_of(&diagnoses, &messages);
            let mut report = VerbReport::from(client.report(Vec::new()));
            let listed = text(&diagnoses, &messages);
            report.add(ReportMember::Targets(diagnoses));
            report.add(ReportMember::Lint(messages));
            let ports = query.map(|query| {
                let table = port_table(&query.ports) + "\n";
                report.add(ReportMember::Ports(query.ports));
                table
            });
            Ok(VerbOutcome::new(
                report,
                ports.unwrap_or_default() + &listed,
                exit,
            ))
        })
    }

    /// The lock or bundle that is named, or landfall.lock if no host is named.
    fn lock(&self, context: &Context) -> Result<Option<Lock>, CliError> {
        let is_given = self.locked.is_given();
        if is_given || (self.targets.is_empty() && self.locked.is_named()) {
            return self.locked.load(context).map(Some);
        }
        Ok(None)
    }

    /// The items of the lock, and their destinations.
    fn real_items(&self, context: &Context, lock: Option<&Lock>) -> Result<RealItems, CliError> {
        let items = lock.map(RealItems::from_lock).unwrap_or_default();
        Ok(match context.site_target()? {
            Some(_) => items.with_private_registry(lock, &context.mapping(None)?, self.read_only),
            None => items,
        })
    }
}

/// Prints the ports in the format `name`, and probes nothing.
fn print_ports(query: &PortQuery, name: &str) -> VerbOutcome {
    let format = PORTS_FORMATS
        .iter()
        .find(|format| format.name == name)
        .unwrap_or(&PORTS_FORMATS[0]);
    let written = (format.write)(&query.role, &query.ports);
    let mut report = VerbReport::default();
    report.add(ReportMember::Ports(query.ports.clone()));
    let outcome = VerbOutcome::new(report, written, Exit::Done);
    if format.name == "text" {
        outcome
    } else {
        outcome.document()
    }
}

/// Sorts the arguments into files and hosts, and checks the files.
fn split_targets(targets: &[String]) -> Result<(Vec<Diagnosis>, Vec<CheckTarget>), CliError> {
    let mut files = Vec::new();
    let mut hosts = Vec::new();
    for target in targets {
        let path = Path::new(target);
        // None of these is a top-level domain, so such an argument is a file even if it does not
        // exist.
        let end = path.extension().and_then(|end| end.to_str());
        match end.filter(|_| !target.contains("://")) {
            Some("yaml" | "yml") => files.push(check_seed_file(target, path)?),
            Some("toml" | "conf" | "tmpl") => {
                files.push(lint_node_config(path).map_err(CliError::usage)?);
            }
            _ if path.is_file() => return Err(unread_file(target, path)),
            _ => hosts.push(target.parse().map_err(|error| {
                CliError::usage(format!("{}: {error}", redact_userinfo(target)))
            })?),
        }
    }
    Ok((files, hosts))
}

fn check_seed_file(target: &str, path: &Path) -> Result<Diagnosis, CliError> {
    let text = input_file::text(path)?;
    let found =
        lint_seeds(target, &text).map_err(|error| CliError::usage(format!("{target}: {error}")))?;
    let none = || CliError::usage(format!("{target}: the file contains no KKP Seed"));
    found.ok_or_else(|| input_file::unread(path).unwrap_or_else(none))
}

/// The error for a file that cannot be checked. Without it, the file would be taken for a host.
fn unread_file(target: &str, path: &Path) -> CliError {
    let unknown = || {
        CliError::usage(format!("{target}: a file of this kind is not checked")).with_help(
            "name a host as HOST[:PORT], a KKP Seed (.yaml), or containerd's config.toml or \
             registries.conf",
        )
    };
    input_file::unread(path).unwrap_or_else(unknown)
}

/// Checks the NO_PROXY entries of the site if it has a proxy, because the site's proxy replaces the
/// proxy variables of the environment as a whole. Otherwise checks those of the environment.
fn lint(context: &Context) -> Result<Vec<LintMessage>, CliError> {
    let Some(proxy) = context.site.as_ref().and_then(|site| site.proxy.as_ref()) else {
        return Ok(lint_environment(|name| std::env::var(name).ok()));
    };
    let cluster = proxy.no_proxy.cluster.clone().unwrap_or_default();
    let cluster = [
        cluster.pod_cidr,
        cluster.service_cidr,
        cluster.domain,
        cluster.control_plane_endpoint,
    ];
    let cluster: Vec<String> = cluster.into_iter().flatten().collect();
    let mut messages = Vec::new();
    for (entries, source) in [
        (
            &proxy.no_proxy.installation,
            "proxy.noProxy.installation of the site",
        ),
        (&cluster, "proxy.noProxy.cluster of the site"),
    ] {
        // landfall trims entries when it writes them, so blanks in the site are not an error
        let list = entries.join(",");
        let list: Vec<&str> = list.split(',').map(str::trim).collect();
        messages.extend(lint_entries(&list.join(","), source));
    }
    messages.extend(lint_rendered(context, &messages)?);
    Ok(messages)
}

/// Checks the lists that `landfall render` composes, for the site and for each of its clusters.
/// Returns only messages with the verdict `NO` about entries that `known` has no message about.
fn lint_rendered(context: &Context, known: &[LintMessage]) -> Result<Vec<LintMessage>, CliError> {
    let target = context.site_target()?;
    let mut messages: Vec<LintMessage> = Vec::new();
    let mut lint = |site: &Site, whose: &str| {
        let list = NoProxyEntries::of(Some(site), target.as_ref()).list(NoProxyDialect::Bare);
        let source = format!("NO_PROXY{whose} as `landfall render` composes it");
        for message in lint_entries(&list, &source) {
            let mut others = known.iter().chain(&messages);
            let is_new = !others.any(|other| other.about == message.about);
            if is_new && message.verdict == CheckStatus::No {
                messages.push(message);
            }
        }
    };
    if let Some(site) = &context.site {
        lint(site, "");
        for cluster in &site.clusters {
            lint(&site.of_cluster(cluster), &format!(" of {}", cluster.name));
        }
    }
    Ok(messages)
}

/// The exit code: 4 if a check reports `NO`.
fn exit_of(diagnoses: &[Diagnosis], messages: &[LintMessage]) -> Exit {
    let checks = diagnoses.iter().flat_map(|diagnosis| &diagnosis.checks);
    let verdicts = checks.map(|check| check.verdict);
    let worst = verdicts
        .chain(messages.iter().map(|message| message.verdict))
        .max();
    if worst == Some(CheckStatus::No) {
        Exit::Refused
    } else {
        Exit::Done
    }
}

fn text(diagnoses: &[Diagnosis], messages: &[LintMessage]) -> String {
    let mut text = String::new();
    for diagnosis in diagnoses {
        let _ = writeln!(text, "{}", diagnosis.target);
        for check in &diagnosis.checks {
            let _ = writeln!(
                text,
                "  {:4}  {:10}  {}",
                check.verdict, check.check, check.says
            );
            if let Some(fix) = &check.fix {
                let _ = writeln!(text, "        {:10}  fix: {fix}", "");
            }
        }
    }
    let mut source = "";
    for message in messages {
        if source != message.source {
            source = &message.source;
            let _ = writeln!(text, "{source}");
        }
        let instead = message
            .instead
            .as_ref()
            .map(|instead| format!("; instead: {instead}"));
        let _ = writeln!(
            text,
            "  {:4}  {}: {} {}{}",
            message.verdict,
            message.about,
            message.clients.join(", "),
            message.says,
            instead.unwrap_or_default()
        );
    }
    text
}
