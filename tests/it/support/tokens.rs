//! A token server for docker-registry: signs the JSON web tokens that a registry with `auth: token`
//! requires (distribution, `docs/spec/auth/jwt.md`).

use super::Place;
use super::pki::self_signed;
use super::reverse_proxy::{ProxyAction, RecordedRequest, ReverseProxy};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A token server that runs until the process ends. It answers token requests at any path.
pub struct Tokens {
    pub address: String,
    /// The certificate of the signing key, which docker-registry trusts.
    pub certificate: PathBuf,
    middle: ReverseProxy,
}

impl Tokens {
    /// Issues tokens for `service` to `account` (`user:password`), and to no other account. A token
    /// permits each requested action for which `grants(repository, action)` is true.
    pub fn new(
        place: &Place,
        service: &str,
        account: &str,
        grants: impl Fn(&str, &str) -> bool + Send + Sync + 'static,
    ) -> Tokens {
        let (certificate, key) = self_signed(place, "tokens", "/CN=tokens", &[]);
        let pem = std::fs::read_to_string(&certificate).unwrap();
        let der: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        let service = service.to_owned();
        let account = format!("Basic {}", STANDARD.encode(account));
        let middle = ReverseProxy::new("", move |request| {
            if request.header("authorization") != Some(account.as_str()) {
                return ProxyAction::refuse(401, "UNAUTHORIZED", "wrong account");
            }
            let now = std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .unwrap()
                .as_secs();
            let claims = json!({
                "iss": "tokens", "sub": "who", "aud": service, "exp": now + 300, "nbf": now - 60, "iat": now,
                "jti": format!("{now}"), "access": access(request, &grants),
            });
            let token = signed(
                &json!({"typ": "JWT", "alg": "RS256", "x5c": [der]}),
                &claims,
                &key,
            );
            ProxyAction::Answer(
                200,
                Vec::new(),
                json!({"token": token, "expires_in": 300}).to_string(),
            )
        });
        Tokens {
            address: middle.address.clone(),
            certificate,
            middle,
        }
    }

    /// The requested scopes, one line per token request.
    pub fn scopes(&self) -> Vec<String> {
        self.middle
            .requests()
            .iter()
            .map(|request| scopes(request).join(" "))
            .collect()
    }
}

fn scopes(request: &RecordedRequest) -> Vec<String> {
    let query = request
        .target
        .split_once('?')
        .map_or("", |(_, query)| query);
    let pairs = url::form_urlencoded::parse(query.as_bytes());
    let scopes = pairs
        .filter(|(name, _)| name == "scope")
        .flat_map(|(_, value)| value.split(' ').map(str::to_owned).collect::<Vec<_>>());
    scopes.collect()
}

fn access(request: &RecordedRequest, grants: &dyn Fn(&str, &str) -> bool) -> Vec<Value> {
    let one = |scope: String| {
        let parts: Vec<&str> = scope.split(':').collect();
        let [kind, name, actions] = parts[..] else {
            panic!("{scope} is not a scope")
        };
        let actions: Vec<&str> = actions
            .split(',')
            .filter(|action| grants(name, action))
            .collect();
        json!({"type": kind, "name": name, "actions": actions})
    };
    scopes(request).into_iter().map(one).collect()
}

fn signed(header: &Value, claims: &Value, key: &std::path::Path) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(header), part(claims));
    let mut openssl = Command::new("openssl");
    openssl
        .args(["dgst", "-sha256", "-sign"])
        .arg(key)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = openssl.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let signature = child.wait_with_output().unwrap();
    assert!(signature.status.success());
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature.stdout))
}
