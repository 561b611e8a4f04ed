//! `landfall doctor node`: checks a machine as a node of Kubernetes.

use super::{exit_of, text};
use crate::cli::shared::bundle_flags::LockFlags;
use crate::cli::shared::{CliError, Context, ReportMember, VerbOutcome, VerbReport};
use crate::doctor::{
    CheckTarget, Diagnosis, MachineFiles, NodeMirror, RealItems, check_clock, check_image_names,
    check_machine, diagnose, node_proxy, server_time, targets_of, time_of_server,
};
use clap::Args;
use jiff::Timestamp;
use landfall_item::lockfile::Lock;
use landfall_model::DEFAULT_SERVICES;
use landfall_model::config::Site;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Check a machine as a node of Kubernetes
///
/// Run it on the node, as root: routes to the services, name servers, programs, modules and
/// settings of the kernel, swap, cgroup drivers, free space, the configuration of containerd, what
/// containerd asks for the images of the lock, the connections to these registries with the trust
/// and the proxy of the node, the file server of the site, and the clock. Exits with 4 if a check
/// reports NO.
///
/// --from-files checks copies of a node's files on another machine, without a connection.
#[derive(Args)]
pub(crate) struct DoctorNode {
    /// Check the copies of a node's files in this folder; `landfall help node` has the command that
    /// collects them
    #[arg(long, value_name = "DIR")]
    from_files: Option<PathBuf>,
    /// The service network of the cluster, or several separated by commas [default: serviceCIDR of
    /// the site, else 10.96.0.0/12]
    #[arg(long, value_name = "CIDR,...")]
    service_cidr: Option<String>,
    #[command(flatten)]
    locked: LockFlags,
}

impl DoctorNode {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        let files = self.files()?;
        let is_named = self.locked.is_named();
        let lock = is_named.then(|| self.locked.load(context)).transpose()?;
        let site = context.site.as_ref();
        let services = self
            .service_cidr
            .as_deref()
            .or_else(|| site.and_then(|site| site.service_cidr(None)))
            .unwrap_or(DEFAULT_SERVICES);
        let (mut diagnoses, mirrors) = check_machine(&files, services).map_err(CliError::usage)?;
        let target = context.site_target()?;
        let mapping = target.map(|_| context.mapping(None)).transpose()?;
        diagnoses.push(check_image_names(&mirrors, lock.as_ref(), mapping.as_ref()));
        if self.from_files.is_some() {
            diagnoses.extend(clock_of_files(&files));
            return Ok(outcome(diagnoses));
        }
        let proxy = node_proxy(&files);
        let registries = mirrors.registries();
        context.run(async {
            let mut clock = None;
            for mirror in &registries {
                let (diagnosis, time) = check_registry(context, mirror, &proxy).await?;
                diagnoses.push(diagnosis);
                clock = clock.or(time);
            }
            if let Some(diagnosis) = check_file_server(context, lock.as_ref()).await? {
                diagnoses.push(diagnosis);
            }
            let server = clock.as_ref().map(|(name, time)| (name.as_str(), *time));
            diagnoses.push(check_clock(Timestamp::now(), server));
            Ok(outcome(diagnoses))
        })
    }

    fn files(&self) -> Result<MachineFiles, CliError> {
        match &self.from_files {
            Some(folder) if folder.is_dir() => Ok(MachineFiles::collected(folder.clone())),
            Some(folder) => Err(CliError::usage(format!(
                "{} is not a folder",
                folder.display()
            ))),
            None if landfall_os::IS_LINUX => Ok(MachineFiles::live()),
            None => Err(
                CliError::usage("this machine has no Linux, so it cannot be a node").with_help(
                    "run the command on the node, or name a folder with copies of its files: \
                     --from-files DIR; `landfall help node` has the command that collects them",
                ),
            ),
        }
    }
}

fn outcome(diagnoses: Vec<Diagnosis>) -> VerbOutcome {
    let exit = exit_of(&diagnoses, &[]);
    let text = text(&diagnoses, &[]);
    let mut report = VerbReport::default();
    report.add(ReportMember::Targets(diagnoses));
    VerbOutcome::new(report, text, exit)
}

/// The clock of a node in the collected file `clock`: the seconds since 1970 and, if a server was
/// asked, its header `Date`.
fn clock_of_files(files: &MachineFiles) -> Option<Diagnosis> {
    let text = files.read("clock")?;
    let mut lines = text.lines();
    let node = Timestamp::from_second(lines.next()?.trim().parse().ok()?).ok()?;
    let date = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("date").then(|| value.trim())
    });
    let server = date.and_then(server_time).map(|time| ("the server", time));
    Some(check_clock(node, server))
}

/// Checks the steps to a registry of containerd, with the certificates, the account and the proxy
/// that containerd uses. Also returns the name and the time of the server.
async fn check_registry(
    context: &Context,
    mirror: &NodeMirror,
    proxy: &BTreeMap<String, String>,
) -> Result<(Diagnosis, Option<(String, Timestamp)>), CliError> {
    let host = mirror.host();
    // the account is only in a file that its owner can read, for the time of the check
    let account = account_file(mirror)?;
    let mut registry = json!({
        "address": host,
        "plainHTTP": mirror.url.scheme() == "http",
        "skipVerify": mirror.skip_verify,
        "viaProxy": !proxy.is_empty(),
    });
    if let Some(ca) = &mirror.ca {
        registry["ca"] = json!(ca);
    }
    if let Some([certificate, key]) = &mirror.client {
        registry["clientCert"] = json!(certificate);
        registry["clientKey"] = json!(key);
    }
    if let Some(file) = &account {
        registry["credentials"] = json!({"authFile": file.path()});
    }
    let mut site = json!({"apiVersion": "landfall/v1", "kind": "Site", "registry": registry});
    if !proxy.is_empty() {
        let no_proxy = proxy
            .get("NO_PROXY")
            .map(String::as_str)
            .unwrap_or_default();
        let entries = no_proxy
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty());
        let entries: Vec<&str> = entries.collect();
        let mut value = json!({"noProxy": {"installation": entries}});
        for (key, variable) in [("http", "HTTP_PROXY"), ("https", "HTTPS_PROXY")] {
            if let Some(url) = proxy.get(variable) {
                value[key] = json!(url);
            }
        }
        site["proxy"] = value;
    }
    let client = context.client_of_site(node_site(&site)?)?;
    let sessions = client.sessions();
    // containerd probes nothing: the scheme of the URL counts
    let url = mirror
        .url
        .join("/v2/")
        .unwrap_or_else(|_| mirror.url.clone());
    let target = CheckTarget::Url(url.clone());
    let mut diagnosis = diagnose(sessions, &target, &RealItems::default()).await;
    for step in &mut diagnosis.checks {
        if step.fix.is_none() {
            continue;
        }
        match step.check {
            "tls" => {
                step.fix = Some(
                    "set registry.ca of the site to the authority of this registry, and run \
                     install.sh of `landfall render node` again"
                        .into(),
                );
            }
            "connection" if !proxy.is_empty() => {
                step.fix = Some(format!(
                    "add {host} to NO_PROXY of containerd \
                     (/etc/systemd/system/containerd.service.d), or allow it at the firewall"
                ));
            }
            _ => {}
        }
    }
    let time = time_of_server(sessions, &url).await;
    Ok((diagnosis, time.map(|time| (host, time))))
}

/// Checks the steps to the file server of the site, with the certificates of the machine and
/// without a proxy, as install.sh does. With a lock, asks for its first file.
async fn check_file_server(
    context: &Context,
    lock: Option<&Lock>,
) -> Result<Option<Diagnosis>, CliError> {
    let Some(site) = &context.site else {
        return Ok(None);
    };
    let targets = targets_of(site, lock, true).into_iter();
    let mut urls = targets.filter(|target| matches!(target, CheckTarget::Url(_)));
    let (Some(target), Some(files)) = (urls.next(), &site.files) else {
        return Ok(None);
    };
    let own = json!({"apiVersion": "landfall/v1", "kind": "Site", "files": files});
    let client = context.client_of_site(node_site(&own)?)?;
    Ok(Some(
        diagnose(client.sessions(), &target, &RealItems::default()).await,
    ))
}

/// The account of containerd for a registry, in the form of docker's auth files.
fn account_file(mirror: &NodeMirror) -> Result<Option<tempfile::NamedTempFile>, CliError> {
    let header = mirror.authorization.as_deref();
    let Some(account) = header.and_then(|header| header.strip_prefix("Basic ")) else {
        return Ok(None);
    };
    let auths = json!({"auths": {mirror.host(): {"auth": account}}}).to_string();
    let written = tempfile::NamedTempFile::new().and_then(|mut file| {
        file.write_all(auths.as_bytes())?;
        Ok(file)
    });
    written
        .map(Some)
        .map_err(|error| CliError::usage(format!("cannot write the account of the node: {error}")))
}

/// A site with the settings of the node.
fn node_site(site: &Value) -> Result<Site, CliError> {
    Site::parse(Path::new("/the node"), &site.to_string())
        .map_err(|error| CliError::usage(format!("the settings of the node: {error}")))
}
