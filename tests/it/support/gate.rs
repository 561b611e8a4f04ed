//! A token gate in front of a registry: it forwards requests with a valid Bearer token of its realm
//! and refuses all other requests (distribution, `docs/spec/auth/token.md`).

use super::reverse_proxy::{ProxyAction, RecordedRequest, ReverseProxy};
use base64::Engine as _;
use std::sync::{Arc, Mutex};

/// The requests that the gate received.
#[derive(Default, Debug, Clone)]
pub struct Seen {
    /// One line per requested token: account and scopes.
    pub tokens: Vec<String>,
    /// The number of requests without a valid token.
    pub refused: usize,
}

/// A gate that runs until the process ends.
pub struct Gate {
    pub address: String,
    rules: Arc<Rules>,
}

impl Gate {
    /// A gate in front of the registry at `behind`. If `account` (`user:password`) is given, only
    /// this account gets tokens; otherwise every client gets them. A token is valid for `uses`
    /// requests.
    pub fn new(behind: &str, account: Option<&str>, uses: usize) -> Gate {
        let rules = Arc::new(Rules {
            account: account.map(str::to_owned),
            uses,
            seen: Mutex::default(),
            given: Mutex::default(),
        });
        let own = rules.clone();
        let proxy = ReverseProxy::new(behind, move |request| own.answer(request));
        Gate {
            address: proxy.address,
            rules,
        }
    }

    pub fn seen(&self) -> Seen {
        self.rules.seen.lock().unwrap().clone()
    }
}

struct Rules {
    account: Option<String>,
    uses: usize,
    seen: Mutex<Seen>,
    /// The scopes and remaining uses of each token, by its number.
    given: Mutex<Vec<(String, usize)>>,
}

impl Rules {
    fn answer(&self, request: &RecordedRequest) -> ProxyAction {
        let authorization = request.header("authorization");
        match request.target.split_once('?') {
            Some(("/token", query)) => self.token(query, authorization),
            _ if self.passes(&request.target, authorization) => ProxyAction::Pass,
            _ => self.refuse(request),
        }
    }

    fn token(&self, query: &str, authorization: Option<&str>) -> ProxyAction {
        let pairs: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        let scopes: Vec<&str> = pairs
            .iter()
            .filter(|(key, _)| key == "scope")
            .map(|(_, value)| value.as_str())
            .collect();
        let who = authorization
            .and_then(|value| value.strip_prefix("Basic "))
            .map(|value| {
                String::from_utf8(
                    base64::engine::general_purpose::STANDARD
                        .decode(value)
                        .unwrap(),
                )
                .unwrap()
            });
        let user = who
            .as_deref()
            .map_or("nobody", |who| who.split(':').next().unwrap());
        self.seen
            .lock()
            .unwrap()
            .tokens
            .push(format!("{user} {}", scopes.join(" ")));
        if self.account.is_some() && self.account != who {
            return ProxyAction::status(401);
        }
        let mut given = self.given.lock().unwrap();
        given.push((scopes.join(" "), self.uses));
        let body = format!(
            r#"{{"access_token":"t{}","expires_in":300}}"#,
            given.len() - 1
        );
        ProxyAction::Answer(200, Vec::new(), body)
    }

    fn passes(&self, target: &str, authorization: Option<&str>) -> bool {
        let number =
            authorization.and_then(|value| value.strip_prefix("Bearer t")?.parse::<usize>().ok());
        let mut given = self.given.lock().unwrap();
        let Some((scopes, left)) = number.and_then(|number| given.get_mut(number)) else {
            return false;
        };
        let covered = scopes.split(' ').any(|scope| {
            scope
                .split(':')
                .nth(1)
                .is_some_and(|repository| target.starts_with(&format!("/v2/{repository}/")))
        });
        let good = covered && *left > 0;
        *left = left.saturating_sub(1);
        good
    }

    fn refuse(&self, request: &RecordedRequest) -> ProxyAction {
        self.seen.lock().unwrap().refused += 1;
        let repository = request.target.trim_start_matches("/v2/");
        let end = ["/manifests/", "/blobs/", "/tags/"]
            .iter()
            .filter_map(|word| repository.find(word))
            .min();
        let repository = &repository[..end.unwrap_or(repository.len())];
        let host = request.header("host").unwrap_or_default();
        let challenge = format!(
            "Bearer realm=\"http://{host}/token\",service=\"gate\",scope=\"repository:{repository}:pull\""
        );
        let headers = vec![("WWW-Authenticate".to_owned(), challenge)];
        ProxyAction::Answer(401, headers, String::new())
    }
}
