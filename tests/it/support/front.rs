//! A server in front of a registry. It answers some requests itself, with refusals, pages or wrong
//! content.

use super::http;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// A server in front of a registry. It answers some requests itself, and forwards the others
/// without their bodies.
pub struct Front {
    pub address: String,
    pub answers: Arc<Mutex<Vec<(String, Answer)>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

/// A response: status, headers and body. Status 0 closes the connection.
pub type Answer = (u16, String, Vec<u8>);

impl Front {
    pub fn new(upstream: &str) -> Front {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let answers: Arc<Mutex<Vec<(String, Answer)>>> = Arc::default();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let known = answers.clone();
        let asking = requests.clone();
        let upstream = upstream.to_owned();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let known = known.clone();
                let asking = asking.clone();
                let upstream = upstream.clone();
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    let mut head = Vec::new();
                    let mut line = String::new();
                    while reader.read_line(&mut line).unwrap_or(0) > 2 {
                        head.push(std::mem::take(&mut line));
                    }
                    // the ClientHello of a TLS probe is not an HTTP request: it gets a 400
                    let first = head.first().cloned().unwrap_or_else(|| "GET ?".into());
                    let mut words = first.split(' ').map(str::to_owned);
                    let (method, target) =
                        (words.next().unwrap(), words.next().unwrap_or_default());
                    if target.starts_with("/v2/") {
                        asking.lock().unwrap().push(format!("{method} {target}"));
                    }
                    let own = known
                        .lock()
                        .unwrap()
                        .iter()
                        .find(|(t, _)| format!("{method} {target}").ends_with(t))
                        .cloned();
                    let (status, headers, body) = own.map_or_else(
                        || {
                            if !target.starts_with('/') {
                                return (400, String::new(), vec![]);
                            }
                            let accept = [("Accept", http::ACCEPT)];
                            let got = http::request(&method, &upstream, &target, &accept, b"");
                            let kept = got.headers.iter().filter(|(name, _)| {
                                !["connection", "transfer-encoding", "content-length"]
                                    .contains(&name.as_str())
                            });
                            let kept = kept
                                .map(|(name, value)| format!("{name}: {value}\r\n"))
                                .collect();
                            (got.status, kept, got.body)
                        },
                        |(_, answer)| answer,
                    );
                    if status == 0 {
                        return;
                    }
                    let head = format!(
                        "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
                        body.len()
                    );
                    let _ = stream.write_all(head.as_bytes());
                    if method != "HEAD" {
                        let _ = stream.write_all(&body);
                    }
                });
            }
        });
        Front {
            address,
            answers,
            requests,
        }
    }

    /// The requests below `/v2/` since the last call, sorted, without `/v2/` itself.
    pub fn requests(&self) -> Vec<String> {
        let mut requests = std::mem::take(&mut *self.requests.lock().unwrap());
        requests.retain(|line| !line.ends_with(" /v2/"));
        requests.sort();
        requests
    }

    /// Sets the status, headers and body of responses to requests whose `METHOD TARGET` ends with
    /// `target`.
    pub fn answer(&self, target: &str, status: u16, headers: &str, body: &[u8]) {
        let mut answers = self.answers.lock().unwrap();
        answers.retain(|(known, _)| known != target);
        answers.push((
            target.to_owned(),
            (status, headers.to_owned(), body.to_vec()),
        ));
    }
}
