//! Checks a machine as a node of Kubernetes, from the files of the machine itself or from copies of
//! them: routes, name server, programs, kernel, cgroups, containerd, and the registries that
//! containerd asks.

mod containerd_mirrors;
mod kernel;
mod machine_files;
mod network;
mod runtime;

pub(crate) use self::containerd_mirrors::{ContainerdMirrors, NodeMirror, check_image_names};
pub(crate) use self::machine_files::MachineFiles;
pub(crate) use self::runtime::node_proxy;

use super::node_config::lint_config_of_node;
use super::steps::{Diagnosis, DiagnosisSteps};
use super::{CheckStatus, containerd_lint};
use jiff::Timestamp;
use landfall_content::registry::RegistrySessions;
use landfall_http::{HttpRequest, RequestPurpose};
use landfall_model::AddressRange;
use reqwest::Method;
use url::Url;

/// Checks the machine itself and the configuration of its containerd. `services` is the service
/// network of the cluster, or several separated by commas.
///
/// Fails if `services` is not a list of ranges of addresses, or the configuration of containerd
/// cannot be read.
pub(crate) fn check_machine(
    files: &MachineFiles,
    services: &str,
) -> Result<(Vec<Diagnosis>, ContainerdMirrors), String> {
    let services: Vec<(&str, AddressRange)> = services
        .split(',')
        .map(str::trim)
        .map(|range| range.parse().map(|parsed| (range, parsed)))
        .collect::<Result<_, _>>()?;
    let configs = files.containerd_configs()?;
    let mut steps = DiagnosisSteps::default();
    network::check_routes(files, &services, &mut steps);
    network::check_name_servers(files, &mut steps);
    runtime::check_programs(files, &mut steps);
    kernel::check_conntrack(files, &mut steps);
    kernel::check_modules(files, &mut steps);
    kernel::check_sysctls(files, &services, &mut steps);
    runtime::check_swap(files, &mut steps);
    runtime::check_cgroups(files, &configs, &mut steps);
    runtime::check_space(files, &mut steps);
    let mut diagnoses = vec![steps.into_diagnosis(files.name())];
    let mut folder = None;
    if configs.is_empty() {
        let mut steps = DiagnosisSteps::default();
        if !files.lacks(runtime::CONTAINERD_CONFIG, "config_path", &mut steps) {
            steps.no(
                "config_path",
                format!(
                    "containerd has no {}: it reads no hosts.toml and asks upstream",
                    runtime::CONTAINERD_CONFIG
                ),
            );
            steps
                .fix("run install.sh of `landfall render node`, or see `landfall help containerd`");
        }
        diagnoses.push(steps.into_diagnosis(runtime::CONTAINERD_CONFIG));
    } else {
        folder = containerd_lint::hosts_folder(&configs).map(str::to_owned);
        let path = files.path(runtime::CONTAINERD_CONFIG);
        diagnoses.push(lint_config_of_node(&path, &files.root)?);
    }
    Ok((diagnoses, ContainerdMirrors::read(files, folder.as_deref())))
}

/// Parses the header `Date` of a response.
pub(crate) fn server_time(date: &str) -> Option<Timestamp> {
    Some(jiff::fmt::rfc2822::parse(date).ok()?.timestamp())
}

/// Asks the server at `url` for the time.
pub(crate) async fn time_of_server(sessions: &RegistrySessions, url: &Url) -> Option<Timestamp> {
    let mut request = HttpRequest::new(Method::GET, url.clone(), RequestPurpose::Registry);
    request.retried = false;
    let response = sessions.transport().send(&request).await.ok()?;
    server_time(response.header("date")?)
}

/// The difference to the clock of a server that is noted, and that is an error: tokens and
/// certificates of a cluster are valid from the second in which they are made.
const CLOCK_NOTE_SECONDS: i64 = 5;
const CLOCK_ERROR_SECONDS: i64 = 60;

/// Compares the clock of the node with that of a server of the site.
pub(crate) fn check_clock(node: Timestamp, server: Option<(&str, Timestamp)>) -> Diagnosis {
    let mut steps = DiagnosisSteps::default();
    match server {
        None => {
            let says = format!("the clock says {node}; there is no server to compare it with");
            steps.note("clock", says);
            steps.fix("compare it with the clock of the registry and of the other nodes");
        }
        Some((name, time)) => {
            let seconds = (node.as_second() - time.as_second()).abs();
            let verdict = match seconds {
                ..CLOCK_NOTE_SECONDS => CheckStatus::Ok,
                CLOCK_NOTE_SECONDS..CLOCK_ERROR_SECONDS => CheckStatus::Note,
                _ => CheckStatus::No,
            };
            let says = format!("the clock differs by {seconds} s from that of {name}");
            steps.add(
                "clock",
                verdict,
                says,
                serde_json::json!({"seconds": seconds}),
            );
            if verdict != CheckStatus::Ok {
                steps.fix("set the clock, and run a time service such as chrony against a server of the site");
            }
        }
    }
    steps.into_diagnosis("clock")
}
