//! Tests the ports of a role and the endpoints of a lock: opens a connection to each and closes it.

use super::port_query::{PortLine, PortQuery, UntestedPort, join_port, line_of_endpoint};
use crate::doctor::CheckStatus;
use crate::doctor::steps::{Diagnosis, DiagnosisSteps, REPLACE_EXAMPLE, usual_fix};
use landfall_content::run_concurrently;
use landfall_http::{ConnectOutcome, ConnectRoute, ErrorKind, HttpError, Transport};
use landfall_item::lockfile::Endpoint;
use landfall_model::{ChangedName, is_example_name};
use serde_json::{Value, json};
use std::ops::RangeInclusive;

/// Connects to the ports that `query` lists; without a query, to all endpoints.
pub(crate) async fn probe_ports(
    transport: &Transport,
    query: Option<&PortQuery>,
    endpoints: &[Endpoint],
) -> Diagnosis {
    let (target, lines) = match query {
        Some(query) => (format!("ports of {}", query.role), query.lines.clone()),
        None => (
            "endpoints".to_owned(),
            endpoints.iter().map(line_of_endpoint).collect(),
        ),
    };
    let jobs = transport.limits().jobs;
    let found = run_concurrently(lines.len(), jobs, |at| probe_line(transport, &lines[at])).await;
    Diagnosis {
        target,
        checks: found.into_iter().flat_map(|steps| steps.0).collect(),
    }
}

async fn probe_line(transport: &Transport, line: &PortLine) -> DiagnosisSteps {
    let mut steps = DiagnosisSteps::default();
    match line {
        PortLine::Untested(untested) => {
            let UntestedPort {
                to, why, reason, ..
            } = untested;
            let facts = json!({"to": to, "why": why, "reason": reason});
            steps.add("not tried", CheckStatus::Note, untested.says(), facts);
            untested.fix.iter().for_each(|fix| steps.fix(fix));
        }
        PortLine::Port {
            host,
            port,
            what,
            why,
            route,
        } => {
            let found = transport.try_connect(host, *port, *route).await;
            let at = join_port(host, *port);
            add_port_step(&mut steps, &at, &format!("{what}, {why}"), found);
            let Some(step) = steps.0.last_mut() else {
                return steps;
            };
            let facts = [
                ("host", json!(host)),
                ("port", json!(port)),
                ("to", json!(what)),
                ("why", json!(why)),
            ];
            step.facts
                .extend(facts.map(|(name, value)| (name.to_owned(), value)));
            if step.verdict == CheckStatus::No && is_example_name(host) {
                step.verdict = CheckStatus::Note;
                step.says = format!("{at} is an example: {what}, {why}");
                steps.fix(REPLACE_EXAMPLE);
            } else if step.verdict == CheckStatus::No
                && let Some(changed) = ChangedName::of(host)
            {
                steps.fix(changed.summary());
            }
        }
        PortLine::Range {
            host,
            ports,
            range,
            what,
            why,
        } => {
            // All at once: a port behind a firewall that drops packets takes the whole timeout.
            let attempts = ports
                .iter()
                .map(|port| transport.try_connect(host, *port, ConnectRoute::Direct));
            let found = futures_util::future::join_all(attempts).await;
            let facts = json!({
                "host": host, "ports": ports, "range": [range.start(), range.end()],
                "to": what, "why": why,
            });
            add_range_step(
                &mut steps,
                (host, range, ports),
                &format!("{what}, {why}"),
                found,
                facts,
            );
        }
    }
    steps
}

/// Adds the step of one port. `at` is its address; `what` is its destination and purpose.
fn add_port_step(
    steps: &mut DiagnosisSteps,
    at: &str,
    what: &str,
    found: Result<ConnectOutcome, HttpError>,
) {
    let reason = match &found {
        Ok(ConnectOutcome::Open | ConnectOutcome::Tunnel { .. }) => None,
        Ok(ConnectOutcome::Closed) => Some("the connection was refused".to_owned()),
        Ok(
            ConnectOutcome::Unresolved(error)
            | ConnectOutcome::Blocked(error)
            | ConnectOutcome::NoTunnel { error, .. },
        )
        | Err(error) => Some(error.to_string()),
    };
    let failed = |error: HttpError, fix: &str| {
        let says = format!("{at} ({what}): {error}");
        (CheckStatus::No, says, Some(fix.to_owned()), None)
    };
    let (verdict, says, fix, via) = match found {
        Ok(ConnectOutcome::Open) => (CheckStatus::Ok, format!("{at} is open: {what}"), None, None),
        Ok(ConnectOutcome::Tunnel { via }) => {
            let says = format!(
                "the proxy {via} opens a tunnel to {at}, but may do so although nothing listens \
                 there: {what}"
            );
            (CheckStatus::Ok, says, None, Some(via))
        }
        Ok(ConnectOutcome::Closed) => {
            let says =
                format!("nothing listens at {at}, or a firewall rejects the connection: {what}");
            let fix = format!("start the service, or allow {at} at the firewall");
            (CheckStatus::No, says, Some(fix), None)
        }
        Ok(ConnectOutcome::Unresolved(error)) => failed(error, usual_fix("name")),
        Ok(ConnectOutcome::NoTunnel { via, error }) => {
            // With status 407 the proxy requires an account; with 500 and 502 to 504 it did not
            // reach the service; with any other status its rules refuse the tunnel. An error
            // without a status is about the proxy itself.
            let fix = match error.kind {
                ErrorKind::Proxy(407) => usual_fix("sign-in").to_owned(),
                ErrorKind::Proxy(500 | 502..=504) => {
                    format!("start the service at {at}, or let the proxy {via} reach it")
                }
                ErrorKind::Proxy(_) => format!("allow {at} at the proxy {via}"),
                _ => usual_fix("proxy").to_owned(),
            };
            let fix =
                format!("{fix}; if machines reach {at} without the proxy, add it to NO_PROXY");
            let says = format!("{at} ({what}), through the proxy {via}: {error}");
            (CheckStatus::No, says, Some(fix), Some(via))
        }
        Ok(ConnectOutcome::Blocked(error)) => failed(error, &format!("allow {at} at the firewall")),
        Err(error) => failed(error, "write a host name or an address"),
    };
    let facts = [("via", via), ("reason", reason)];
    let facts = facts
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), Value::String(value?))));
    steps.add("port", verdict, says, Value::Object(facts.collect()));
    fix.into_iter().for_each(|fix| steps.fix(fix));
}

/// Adds the step of a range of ports, of which `ports` were tried. A refused connection passes: no
/// service has to listen there, but a firewall that drops packets would break node ports later.
fn add_range_step(
    steps: &mut DiagnosisSteps,
    (host, range, ports): (&str, &RangeInclusive<u16>, &[u16]),
    what: &str,
    found: Vec<Result<ConnectOutcome, HttpError>>,
    mut facts: Value,
) {
    let all = join_port(host, format_args!("{}-{}", range.start(), range.end()));
    let mut silent = Vec::new();
    let mut cause = None;
    for (port, outcome) in ports.iter().zip(found) {
        match outcome {
            Ok(ConnectOutcome::Unresolved(error)) | Err(error) => {
                facts["reason"] = json!(error.to_string());
                steps.add(
                    "port",
                    CheckStatus::No,
                    format!("{all} ({what}): {error}"),
                    facts,
                );
                return steps.fix(usual_fix("name"));
            }
            Ok(ConnectOutcome::Blocked(error)) => {
                silent.push(port.to_string());
                cause.get_or_insert(error);
            }
            Ok(_) => {}
        }
    }
    let Some(cause) = cause else {
        let shown: Vec<String> = ports.iter().map(ToString::to_string).collect();
        let says = format!(
            "{all} ({what}): no packets to {} are dropped (no service has to listen there); the \
             other ports were not tried",
            shown.join(", ")
        );
        return steps.add("port", CheckStatus::Ok, says, facts);
    };
    let says = format!(
        "{all} ({what}): no response from {}: {cause}",
        silent.join(", ")
    );
    facts["reason"] = json!(cause.to_string());
    steps.add("port", CheckStatus::No, says, facts);
    steps.fix(format!(
        "allow the whole range {all} at every firewall on the way; none may drop packets silently"
    ));
}
