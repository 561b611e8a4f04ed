//! A token gate in front of a registry: it forwards requests with a valid Bearer token of its realm
//! and refuses all other requests (distribution, `docs/spec/auth/token.md`).

use super::http;
use base64::Engine as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
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
    seen: Arc<Mutex<Seen>>,
}

impl Gate {
    /// A gate in front of the registry at `behind`. If `account` (`user:password`) is given, only
    /// this account gets tokens; otherwise every client gets them. A token is valid for `uses`
    /// requests.
    pub fn new(behind: &str, account: Option<&str>, uses: usize) -> Gate {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let rules = Arc::new(Rules {
            address: address.clone(),
            behind: behind.into(),
            account: account.map(str::to_owned),
            uses,
            seen: seen.clone(),
            given: Mutex::default(),
        });
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let rules = rules.clone();
                std::thread::spawn(move || rules.answer(stream));
            }
        });
        Gate { address, seen }
    }

    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }
}

struct Rules {
    address: String,
    behind: String,
    account: Option<String>,
    uses: usize,
    seen: Arc<Mutex<Seen>>,
    /// The scopes and remaining uses of each token, by its number.
    given: Mutex<Vec<(String, usize)>>,
}

impl Rules {
    fn answer(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut head = String::new();
        let mut line = String::new();
        while reader.read_line(&mut line).unwrap_or(0) > 2 {
            head.push_str(&line);
            line.clear();
        }
        let mut lines = head.lines();
        let mut first = lines.next().unwrap_or("").split(' ');
        let method = first.next().unwrap_or("").to_owned();
        let target = first.next().unwrap_or("").to_owned();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let header = |name: &str| {
            headers
                .iter()
                .find(|(n, _)| n == name)
                .map(|(_, value)| value.as_str())
        };
        let length = header("content-length")
            .and_then(|length| length.parse().ok())
            .unwrap_or(0);
        let mut body = Vec::new();
        let _ = reader.take(length).read_to_end(&mut body);
        let answer = match target.split_once('?') {
            Some(("/token", query)) => self.token(query, header("authorization")),
            _ if self.passes(&target, header("authorization")) => {
                self.forward(&method, &target, &headers, &body)
            }
            _ => self.refuse(&target),
        };
        let mut stream = stream;
        let _ = stream.write_all(&answer);
        let _ = stream.shutdown(Shutdown::Write);
    }

    fn token(&self, query: &str, authorization: Option<&str>) -> Vec<u8> {
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
            return b"HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
                .to_vec();
        }
        let mut given = self.given.lock().unwrap();
        given.push((scopes.join(" "), self.uses));
        let body = format!(
            r#"{{"access_token":"t{}","expires_in":300}}"#,
            given.len() - 1
        );
        let head = format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        (head + &body).into_bytes()
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

    fn refuse(&self, target: &str) -> Vec<u8> {
        // the ClientHello of a probe is not a request
        if target.starts_with('/') {
            self.seen.lock().unwrap().refused += 1;
        }
        let repository = target.trim_start_matches("/v2/");
        let end = ["/manifests/", "/blobs/", "/tags/"]
            .iter()
            .filter_map(|word| repository.find(word))
            .min();
        let repository = &repository[..end.unwrap_or(repository.len())];
        let challenge = format!(
            "Bearer realm=\"http://{}/token\",service=\"gate\",scope=\"repository:{repository}:pull\"",
            self.address
        );
        format!(
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: {challenge}\r\nConnection: close\r\n\
             Content-Length: 0\r\n\r\n"
        )
        .into_bytes()
    }

    fn forward(
        &self,
        method: &str,
        target: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Vec<u8> {
        let kept: Vec<(&str, &str)> = headers
            .iter()
            .filter(|(name, _)| ["accept", "content-type", "range"].contains(&name.as_str()))
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let answer = http::request(method, &self.behind, target, &kept, body);
        let mut head = format!("HTTP/1.1 {} X\r\nConnection: close\r\n", answer.status);
        for (name, value) in &answer.headers {
            let name = name.to_ascii_lowercase();
            match name.as_str() {
                "connection" | "transfer-encoding" => {}
                "content-length" if method != "HEAD" => {}
                "location" => {
                    head += &format!(
                        "Location: {}\r\n",
                        value.replace(&self.behind, &self.address)
                    );
                }
                _ => head += &format!("{name}: {value}\r\n"),
            }
        }
        if method != "HEAD" {
            head += &format!("Content-Length: {}\r\n", answer.body.len());
        }
        let mut bytes = (head + "\r\n").into_bytes();
        bytes.extend(answer.body);
        bytes
    }
}
