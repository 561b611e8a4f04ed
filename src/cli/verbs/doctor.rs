//! `landfall doctor`: why a host is reached, or not.

use crate::cli::shared::{Context, Exit, Failure, Outcome};
use crate::doctor::{
    CheckStatus, CheckTarget, Diagnosis, LintMessage, diagnose, lint_entries, lint_environment, targets_of,
};
use crate::report::escape;
use clap::Args;
use serde_json::json;
use std::fmt::Write as _;

/// Explain how hosts are reached: name, proxy and why, connection, certificate, sign-in, redirects
///
/// Also looks through NO_PROXY, of the site or of the environment, for entries that do nothing or that curl,
/// wget, apt, Python and Java take otherwise. Nothing is downloaded, no account is tried at a registry, and
/// one with a proxy at most once. Exit 4 where a check says NO; a note leaves it at 0.
#[derive(Args)]
pub(crate) struct Doctor {
    /// URLs, or registries as they stand in references [default: all that the site names, else the proxies]
    #[arg(value_name = "URL|HOST")]
    targets: Vec<CheckTarget>,
}

impl Doctor {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let targets = match (&context.site, self.targets.is_empty()) {
            (_, false) => self.targets,
            (Some(site), true) => targets_of(site),
            (None, true) => vec![CheckTarget::Proxies],
        };
        let messages = lint(context);
        context.run(async {
            let client = context.client()?;
            let mut diagnoses = Vec::new();
            for target in &targets {
                diagnoses.push(diagnose(client.sessions(), target).await);
            }
            let worst = diagnoses.iter().flat_map(|diagnosis| &diagnosis.checks).map(|check| check.verdict);
            let worst = worst.chain(messages.iter().map(|message| message.verdict)).max();
            let mut report = client.report(Vec::new());
            report.extra.insert("targets".into(), json!(diagnoses));
            report.extra.insert("lint".into(), json!(messages));
            let exit = if worst == Some(CheckStatus::No) { Exit::Refused } else { Exit::Done };
            Ok(Outcome { report, text: escape(&text(&diagnoses, &messages)), exit })
        })
    }
}

/// The lint of what decides about landfall's own traffic: the site's proxy, or the environment.
fn lint(context: &Context) -> Vec<LintMessage> {
    match context.site.as_ref().and_then(|site| site.proxy.as_ref()) {
        None => lint_environment(|name| std::env::var(name).ok()),
        Some(proxy) => {
            let cluster = proxy.no_proxy.cluster.clone().unwrap_or_default();
            let cluster =
                [cluster.pod_cidr, cluster.service_cidr, cluster.domain, cluster.control_plane_endpoint];
            let cluster: Vec<String> = cluster.into_iter().flatten().collect();
            let installation = proxy.no_proxy.installation.join(",");
            let mut messages = lint_entries(&installation, "proxy.noProxy.installation of the site");
            messages.extend(lint_entries(&cluster.join(","), "proxy.noProxy.cluster of the site"));
            messages
        }
    }
}

fn text(diagnoses: &[Diagnosis], messages: &[LintMessage]) -> String {
    let mut text = String::new();
    for diagnosis in diagnoses {
        let _ = writeln!(text, "{}", diagnosis.target);
        for check in &diagnosis.checks {
            let _ = writeln!(text, "  {:4}  {:10}  {}", check.verdict, check.check, check.says);
        }
    }
    let mut source = "";
    for message in messages {
        if source != message.source {
            source = &message.source;
            let _ = writeln!(text, "{source}");
        }
        let instead = message.instead.as_ref().map(|instead| format!("; instead: {instead}"));
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
