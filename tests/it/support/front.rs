//! A proxy in front of a registry whose answers to some requests, such as refusals, pages or wrong
//! content, are set while it runs.

use super::reverse_proxy::{ProxyAction, ReverseProxy};
use std::sync::{Arc, Mutex};

/// A proxy that answers some requests itself, and forwards the others.
pub struct Front {
    pub address: String,
    pub answers: Arc<Mutex<Vec<(String, Answer)>>>,
    proxy: ReverseProxy,
}

/// A response: status, headers and body. Status 0 closes the connection.
pub type Answer = (u16, Vec<(String, String)>, String);

impl Front {
    pub fn new(upstream: &str) -> Front {
        let answers: Arc<Mutex<Vec<(String, Answer)>>> = Arc::default();
        let known = answers.clone();
        let proxy = ReverseProxy::new(upstream, move |request| {
            let line = format!("{} {}", request.method, request.target);
            let known = known.lock().unwrap();
            match known.iter().find(|(target, _)| line.ends_with(target)) {
                None => ProxyAction::Pass,
                Some((_, (0, ..))) => ProxyAction::CutAt(0),
                Some((_, (status, headers, body))) => {
                    ProxyAction::Answer(*status, headers.clone(), body.clone())
                }
            }
        });
        Front {
            address: proxy.address.clone(),
            answers,
            proxy,
        }
    }

    /// The requests below `/v2/` since the last call, sorted, without `/v2/` itself.
    pub fn requests(&self) -> Vec<String> {
        let requests = self.proxy.take_requests();
        let mut lines: Vec<String> = requests
            .iter()
            .filter(|request| request.target.starts_with("/v2/") && request.target != "/v2/")
            .map(|request| format!("{} {}", request.method, request.target))
            .collect();
        lines.sort();
        lines
    }

    /// Sets the status, headers and body of responses to requests whose `METHOD TARGET` ends with
    /// `target`.
    pub fn answer(&self, target: &str, status: u16, headers: &str, body: &[u8]) {
        let headers = headers.lines().filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let body = String::from_utf8(body.to_vec()).unwrap();
        let mut answers = self.answers.lock().unwrap();
        answers.retain(|(known, _)| known != target);
        answers.push((target.to_owned(), (status, headers.collect(), body)));
    }
}
