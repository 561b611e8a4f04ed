//! Knocks at the ports of a role and at the endpoints of a lock: a connection is opened and closed.

use super::ask::{Ask, Line, of_endpoint};
use crate::content::side_by_side;
use crate::doctor::CheckStatus;
use crate::doctor::steps::{Diagnosis, Steps};
use crate::http::{Knocked, Transport};
use crate::lockfile::Endpoint;
use serde_json::json;

/// Knocks at what machines of a role need, where one is asked for, else at all endpoints.
pub(crate) async fn knock_at(transport: &Transport, ask: Option<&Ask>, endpoints: &[Endpoint]) -> Diagnosis {
    let (target, lines) = match ask {
        Some(ask) => (format!("ports of {}", ask.role), ask.lines.clone()),
        None => ("endpoints".to_owned(), endpoints.iter().map(of_endpoint).collect()),
    };
    let jobs = transport.limits().jobs;
    let found = side_by_side(lines.len(), jobs, |at| knock(transport, &lines[at])).await;
    Diagnosis { target, checks: found.into_iter().flat_map(|steps| steps.0).collect() }
}

async fn knock(transport: &Transport, line: &Line) -> Steps {
    let mut steps = Steps::default();
    match line {
        Line::Not(words, fix) => {
            steps.say("not tried", CheckStatus::Note, words);
            fix.iter().for_each(|fix| steps.fix(fix));
        }
        Line::Port { host, port, what, why } => {
            let facts = json!({"host": host, "port": port});
            match transport.knock(host, *port).await {
                Ok((Knocked::Open, via)) => {
                    let through = via.map(|via| format!(" through {via}")).unwrap_or_default();
                    steps.add(
                        "port",
                        CheckStatus::Ok,
                        format!("{host}:{port} is open{through}: {what}, {why}"),
                        facts,
                    );
                }
                Ok((Knocked::Closed, _)) => {
                    let says = format!(
                        "nobody listens at {host}:{port}, or it is refused on the way: {what}, {why}"
                    );
                    steps.add("port", CheckStatus::No, says, facts);
                    steps.fix(format!(
                        "start what listens there, or let {host}:{port} through at the firewall"
                    ));
                }
                Ok((Knocked::Stopped(error), _)) | Err(error) => {
                    steps.add(
                        "port",
                        CheckStatus::No,
                        format!("{host}:{port} ({what}, {why}): {error}"),
                        facts,
                    );
                    steps.fix(format!("let {host}:{port} through at the firewall"));
                }
            }
        }
        Line::Range { host, ports, range, what, why } => {
            let (mut silent, mut cause) = (Vec::new(), None);
            for (port, knocked) in ports.iter().zip(
                futures_util::future::join_all(ports.iter().map(|port| transport.knock(host, *port))).await,
            ) {
                if let Ok((Knocked::Stopped(error), _)) | Err(error) = knocked {
                    silent.push(port.to_string());
                    cause.get_or_insert(error);
                }
            }
            let all = format!("{host}:{}-{}", range.start(), range.end());
            let shown: Vec<String> = ports.iter().map(ToString::to_string).collect();
            let facts = json!({"host": host, "ports": ports, "range": [range.start(), range.end()]});
            let Some(cause) = cause else {
                let says = format!(
                    "{all} ({what}, {why}): nothing drops what goes to {}, of which a service need listen at none; the others were not tried",
                    shown.join(", ")
                );
                steps.add("port", CheckStatus::Ok, says, facts);
                return steps;
            };
            let says =
                format!("{all} ({what}, {why}): nothing comes back from {}: {cause}", silent.join(", "));
            steps.add("port", CheckStatus::No, says, facts);
            steps.fix(format!(
                "let the whole range {all} through at the firewall; nothing on the way may drop it in silence"
            ));
        }
    }
    steps
}
