//! Checks the names of a site: each must resolve and be covered by the certificate that its server
//! presents. Wildcards are looked up with an invented label.

use super::CheckStatus;
use super::steps::{Diagnosis, DiagnosisSteps, REPLACE_EXAMPLE};
use jiff::Timestamp;
use landfall_http::{RequestPurpose, Transport};
use landfall_model::is_example_name;
use serde_json::json;
use url::Url;

/// The label that replaces `*`. No record has it, so only a wildcard record answers.
const LABEL: &str = "landfall-doctor";

/// Resolves names of the site and checks certificates. Each entry has the names that must resolve,
/// and the names that the certificate of their server must cover.
pub(crate) async fn check_names(
    transport: &Transport,
    names: &[(&[String], &[String])],
) -> Diagnosis {
    let mut steps = DiagnosisSteps::default();
    for (dns, certified) in names {
        let mut known = Vec::new();
        for name in *dns {
            if resolve(transport, name, &mut steps).await {
                known.push(name);
            }
        }
        for name in *certified {
            // A name that is not under `dns` of its entry is checked at the server of the first
            // name that resolves.
            match (known.contains(&name), known.first()) {
                (true, _) => check_certificate(transport, name, name, &mut steps).await,
                (false, Some(at)) if !dns.contains(name) => {
                    check_certificate(transport, at, name, &mut steps).await;
                }
                (false, _) => {
                    let says = format!(
                        "the certificate for {name} was not checked: no address for it is known"
                    );
                    steps.note("certificate", says);
                }
            }
        }
    }
    steps.into_diagnosis("names")
}

/// Returns `name` with [`LABEL`] in place of `*`.
fn lookup_name(name: &str) -> String {
    name.strip_prefix("*.")
        .map_or(name.to_owned(), |below| format!("{LABEL}.{below}"))
}

async fn resolve(transport: &Transport, name: &str, steps: &mut DiagnosisSteps) -> bool {
    let looked_up = lookup_name(name);
    let what = if looked_up == name {
        name.to_owned()
    } else {
        format!("{name} (looked up as {looked_up})")
    };
    match transport.resolve(&looked_up).await {
        Ok(addresses) => {
            let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            let says = format!("{what} resolves to {}", addresses.join(", "));
            let facts = json!({"name": name, "addresses": addresses});
            steps.add("name", CheckStatus::Ok, says, facts);
            true
        }
        Err(_) if is_example_name(name) => {
            let says = format!("{what} is an example, and does not resolve");
            steps.add("name", CheckStatus::Note, says, json!({"name": name}));
            steps.fix(REPLACE_EXAMPLE);
            false
        }
        Err(why) => {
            let says = format!("{what} does not resolve: {why}");
            let facts = json!({"name": name, "reason": why.to_string()});
            steps.add("name", CheckStatus::No, says, facts);
            let record = if looked_up == name {
                "a record for it"
            } else {
                "a wildcard record, or one for each name below it"
            };
            steps.fix(format!("add {record} to the DNS of the site"));
            false
        }
    }
}

/// Checks that the certificate at the host `at` covers `name`.
async fn check_certificate(
    transport: &Transport,
    at: &str,
    name: &str,
    steps: &mut DiagnosisSteps,
) {
    let host = lookup_name(at);
    let wanted = lookup_name(name);
    let Ok(url) = Url::parse(&format!("https://{host}/")) else {
        return;
    };
    let facts = json!({"name": name, "at": host});
    let shown = match transport.presented_certificate(&url, &wanted).await {
        Ok(shown) => shown,
        Err(error) => {
            let says = format!("{host}:443 presents no certificate for {name}: {error}");
            steps.add("certificate", CheckStatus::Note, says, facts);
            return steps.fix("start the server, and run doctor again");
        }
    };
    // A proxy that intercepts TLS presents its own certificate instead.
    let place = match &shown.via {
        Some(via) => format!("{host}:443, as presented through the proxy {via},"),
        None => format!("{host}:443"),
    };
    let Some(certificate) = shown.certificate.filter(|_| shown.covers) else {
        let names = if shown.names.is_empty() {
            "no name".into()
        } else {
            shown.names.join(", ")
        };
        let says = format!("the certificate at {place} does not cover {name}: it is for {names}");
        steps.add("certificate", CheckStatus::No, says, facts);
        return steps.fix(format!(
            "issue a certificate for {name}, or for a wildcard that covers it"
        ));
    };
    let says = format!(
        "the certificate at {place} covers {name}, until {}",
        certificate.not_after
    );
    if certificate.not_after < Timestamp::now() {
        let says = format!("{says}: it has expired");
        steps.add("certificate", CheckStatus::No, says, facts);
        return steps.fix("renew it");
    }
    // The connection above did not verify the certificate; this one does. An untrusted certificate
    // is only a note, because the clients of this name may trust it.
    match transport.inspect_path(&url, RequestPurpose::File).await.tls {
        Some(Err(error)) => {
            let says = format!("{says}; {error}");
            steps.add("certificate", CheckStatus::Note, says, facts);
            steps.fix(
                "add the certificate authority to the clients of this server, and for landfall as \
                 `ca` under `upstreams` of the site",
            );
        }
        _ => steps.add("certificate", CheckStatus::Ok, says, facts),
    }
}
