//! The steps before the first request: name, proxy, connection and certificate.

use super::CheckStatus;
use super::diagnose::HostChecker;
use jiff::{Timestamp, ToSpan};
use landfall_http::{Certificate, PathInspection, RequestPurpose};
use serde_json::{Value, json};
use url::Url;

impl HostChecker<'_> {
    /// Checks the name, the proxy, the connection and the certificate. Returns whether a request
    /// can be sent.
    pub(super) async fn check_path(
        &mut self,
        url: &Url,
        origin: Option<&str>,
        purpose: RequestPurpose,
    ) -> bool {
        let PathInspection {
            addresses,
            via,
            account,
            rule,
            connection,
            tls,
        } = self.transport().inspect_path(url, purpose).await;
        let host = url.host_str().unwrap_or_default();
        let mirror_note = origin
            .map(|origin| format!(" (the mirror of {origin})"))
            .unwrap_or_default();
        let is_unresolved = addresses.is_err() && via.is_none();
        match addresses {
            Ok(list) => {
                let list: Vec<String> = list.iter().map(ToString::to_string).collect();
                let says = format!("{host}{mirror_note} resolves to {}", list.join(", "));
                self.add("name", CheckStatus::Ok, says, json!({"addresses": list}));
            }
            // A client behind a proxy needs no DNS: the proxy resolves the name in CONNECT.
            Err(why) if via.is_some() => {
                let says = format!("{host}{mirror_note}: {why}; the proxy may resolve it");
                self.add("name", CheckStatus::Note, says, json!({"addresses": []}));
            }
            Err(why) => {
                let says = format!("{host}{mirror_note}: {why}");
                self.add("name", CheckStatus::No, says, json!({"addresses": []}));
            }
        }
        let says = match (&via, &account) {
            (Some(via), Some(account)) => format!("through {via} with {account}, by {rule}"),
            (Some(via), None) => format!("through {via}, by {rule}"),
            (None, _) => format!("directly: {rule}"),
        };
        self.add(
            "proxy",
            CheckStatus::Ok,
            says,
            json!({"via": via, "rule": rule}),
        );
        if is_unresolved {
            return false;
        }
        match (&connection, &via) {
            (Err(error), _) => self.add(
                "connection",
                CheckStatus::No,
                error.to_string(),
                Value::Null,
            ),
            (Ok(()), Some(via)) if url.scheme() == "https" => {
                self.add(
                    "connection",
                    CheckStatus::Ok,
                    format!("{via} opened a tunnel (CONNECT)"),
                    Value::Null,
                );
            }
            (Ok(()), Some(via)) => {
                self.add(
                    "connection",
                    CheckStatus::Ok,
                    format!("connected to {via}"),
                    Value::Null,
                );
            }
            (Ok(()), None) => self.add("connection", CheckStatus::Ok, "open", Value::Null),
        }
        match tls {
            None => connection.is_ok(),
            Some(Err(error)) => {
                self.add("tls", CheckStatus::No, error.to_string(), Value::Null);
                false
            }
            Some(Ok(shaken)) => {
                let own = shaken.chain.first();
                let (verdict, until) = own.map_or((CheckStatus::Ok, String::new()), |own| {
                    lifetime(own, Timestamp::now())
                });
                let issuer = shaken.chain.last().map_or("?", |last| last.issuer.as_str());
                let says = format!(
                    "{}; issued by '{issuer}'{until}; trusted by {}",
                    shaken.version, shaken.trusted_by
                );
                // `skipVerify` is a setting of the site: the connection works, but is not verified.
                let verdict = if shaken.skipped {
                    CheckStatus::Note
                } else {
                    verdict
                };
                let facts = json!({
                    "subject": own.map(|own| &own.subject), "issuer": issuer,
                    "until": own.map(|own| own.not_after.to_string()),
                    "trustedBy": shaken.trusted_by,
                });
                self.add("tls", verdict, says, facts);
                true
            }
        }
    }
}

/// Returns the status and the text for the time at which a certificate expires. The status is a
/// note if that time is within 30 days or in the past. An expired certificate passes the TLS
/// handshake only if the site skips the verification.
fn lifetime(certificate: &Certificate, now: Timestamp) -> (CheckStatus, String) {
    let soon = now
        .checked_add((24 * 30).hours())
        .is_ok_and(|soon| certificate.not_after < soon);
    let verdict = if soon {
        CheckStatus::Note
    } else {
        CheckStatus::Ok
    };
    (
        verdict,
        format!(
            ", until {}{}",
            certificate.not_after,
            match (soon, certificate.not_after < now) {
                (_, true) => " (expired)",
                (true, _) => " (soon)",
                (false, _) => "",
            }
        ),
    )
}
