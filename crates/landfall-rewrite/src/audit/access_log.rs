//! Logs of what nodes asked for: finds the names that they did not get.
//!
//! Read are the access logs of registries and web servers in the common or combined format (nginx,
//! Harbor, `landfall serve --access-log`), the log of docker-registry (text or JSON), nginx's error
//! log, the lines of containerd and kubelet about images that could not be pulled (`journalctl`,
//! `kubectl get events`), and the document `/misses.json` of `landfall serve`. Lines of other kinds
//! are skipped.

use super::{AuditFinding, FileFinding, Inventory, LockCoverage, NamedRepository, audit_text};
use landfall_item::{LockedGitRepository, RequestedName};
use landfall_model::report::EntryKind;
use landfall_model::{ImageRef, has_host};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{self, BufRead, Read};

/// The maximum number of bytes of a line that are read. Longer lines are cut.
const MAX_LINE: u64 = 64 << 10;

/// The maximum number of names that are kept.
const MAX_NAMES: usize = 100_000;

/// The maximum size of `/misses.json` in bytes: twice what 500 names of 1 KiB need.
const MAX_DOCUMENT: usize = 2 << 20;

/// The names that were asked for in vain, each once, with the line that has it first.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AccessLogMisses {
    names: Vec<(usize, EntryKind, String)>,
    /// Images whose request does not say which registry it stands in for.
    without_host: Vec<(usize, String)>,
    /// The number of requests and events that were recognized, whatever their outcome.
    pub recognized: u64,
    /// Whether some names were not kept, because there are too many.
    pub is_cut: bool,
}

/// Reads a log. `registry` is the host that names without a host belong to: the registry that wrote
/// the log.
///
/// # Errors
/// If the log cannot be read.
pub fn access_log_misses(
    mut log: impl BufRead,
    registry: Option<&str>,
) -> io::Result<AccessLogMisses> {
    let mut misses = AccessLogMisses::default();
    let mut seen = BTreeSet::new();
    let mut bytes = Vec::new();
    let mut number = 0;
    while next_line(&mut log, &mut bytes)? {
        number += 1;
        let line = String::from_utf8_lossy(&bytes);
        if number == 1 && line.starts_with("{\"") {
            let mut text = line.to_string();
            if let Some(names) = misses_document(&mut text, &mut log)? {
                misses.recognized += 1;
                for (at, miss) in names.into_iter().enumerate() {
                    misses.add(at + 1, miss, registry, &mut seen);
                }
                return Ok(misses);
            }
        }
        if let Some((target, is_miss)) = request(&line) {
            misses.recognized += 1;
            if is_miss && let Some(name) = RequestedName::of_target(target, None) {
                misses.add(number, name, registry, &mut seen);
            }
        }
        for (image, is_miss) in images(&line) {
            misses.recognized += 1;
            if is_miss {
                misses.add(number, image, registry, &mut seen);
            }
        }
    }
    Ok(misses)
}

/// Reads the next line without its end into `bytes`, at most [`MAX_LINE`] bytes of it. Returns
/// whether there was one.
fn next_line(log: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<bool> {
    bytes.clear();
    if log.by_ref().take(MAX_LINE).read_until(b'\n', bytes)? == 0 {
        return Ok(false);
    }
    if bytes.last() != Some(&b'\n') && bytes.len() as u64 == MAX_LINE {
        log.skip_until(b'\n')?;
    }
    Ok(true)
}

impl AccessLogMisses {
    fn add(
        &mut self,
        line: usize,
        requested: RequestedName,
        registry: Option<&str>,
        seen: &mut BTreeSet<String>,
    ) {
        let RequestedName { kind, name, .. } = requested;
        let is_named = kind == EntryKind::Image && !has_host(&name);
        let full = match registry {
            Some(registry) if is_named => format!("{registry}/{name}"),
            _ => name,
        };
        let is_readable = match kind {
            EntryKind::Image => full.parse::<ImageRef>().is_ok(),
            EntryKind::File | EntryKind::Git => true,
            _ => false,
        };
        if !is_readable || seen.contains(&full) {
            return;
        }
        if seen.len() >= MAX_NAMES {
            self.is_cut = true;
            return;
        }
        seen.insert(full.clone());
        match registry {
            None if is_named => self.without_host.push((line, full)),
            _ => self.names.push((line, kind, full)),
        }
    }

    /// Compares the names with the lock; those without a host are undecided. `file` is the name of
    /// the log.
    pub fn audit(&self, file: &str, inventory: &Inventory<'_>) -> Vec<FileFinding> {
        let finding = |line: usize, reference: &str, coverage| FileFinding {
            file: file.to_owned(),
            finding: AuditFinding::new((line, 1), reference.to_owned(), coverage),
        };
        let named = self.names.iter().flat_map(|(line, kind, name)| {
            let coverage = match kind {
                EntryKind::Image => {
                    let mut found = audit_text(file, &format!("{name}\n"), inventory);
                    for one in &mut found {
                        one.finding.line = *line;
                    }
                    return found;
                }
                _ => url_coverage(name, inventory),
            };
            let mut found = finding(*line, name, coverage);
            if *kind == EntryKind::Git {
                found.finding.repository = Some(NamedRepository {
                    url: name.clone(),
                    revision: None,
                    is_range: false,
                });
            }
            vec![found]
        });
        let undecided = self.without_host.iter().map(|(line, name)| {
            let why = "the log does not say which registry it is of".into();
            finding(*line, name, LockCoverage::Undecided { why })
        });
        named.chain(undecided).collect()
    }
}

/// Whether the lock has the file or the git repository at `url`.
fn url_coverage(url: &str, inventory: &Inventory<'_>) -> LockCoverage {
    let repositories = inventory.repositories.iter();
    let mut repositories = repositories.map(LockedGitRepository::url);
    let item = inventory.urls.item(url);
    match item.or_else(|| repositories.find(|own| *own == url)) {
        Some(item) => LockCoverage::Held { item: item.into() },
        None => LockCoverage::missing_url(url, "not in the lock".into()),
    }
}

/// Reads the rest of the log as the document at `/misses.json`, if its first line is the start of
/// that document, and returns its names.
fn misses_document(
    text: &mut String,
    log: &mut impl BufRead,
) -> io::Result<Option<Vec<RequestedName>>> {
    if !text.contains("\"misses\"") && !text.starts_with("{\"dropped\"") {
        return Ok(None);
    }
    let room = MAX_DOCUMENT.saturating_sub(text.len()) as u64;
    log.take(room).read_to_string(text)?;
    let document: Option<Value> = serde_json::from_str(text).ok();
    Ok(document.and_then(|document| Vec::deserialize(document.get("misses")?).ok()))
}

/// The target of the request in a line, and whether it was answered with 404.
fn request(line: &str) -> Option<(&str, bool)> {
    if let Some(target) = member(line, "http.request.uri") {
        // docker-registry logs a line when it answers, and lines without a status before
        let status = member(line, "http.response.status")?;
        let is_read = member(line, "http.request.method").is_none_or(is_read);
        return Some((target, is_read && status == "404"));
    }
    let (_, request) = line.split_once('"')?;
    // nginx's error log has the request in a member of its own
    let request = match line.split_once("request: \"") {
        Some((_, request)) => request,
        None => request,
    };
    let (method, rest) = request.split_once(' ')?;
    let (target, rest) = rest.split_once(" HTTP/")?;
    let (_, after) = rest.split_once('"')?;
    let status = after.split_whitespace().next().unwrap_or_default();
    let is_miss = status == "404" || line.contains("(2: No such file or directory)");
    let is_target = target.starts_with('/') && !target.contains([' ', '"']);
    is_target.then_some((target, is_read(method) && is_miss))
}

fn is_read(method: &str) -> bool {
    matches!(method, "GET" | "HEAD")
}

/// The value of a member of a log line, as in `key=value`, `key="value"` or `"key":"value"`.
fn member<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    let (_, rest) = line.split_once(key)?;
    let rest = rest.strip_prefix('"').unwrap_or(rest);
    let rest = rest.strip_prefix(['=', ':'])?;
    let value = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split([' ', ',', '}']).next(),
    };
    value.map(str::trim_end).filter(|value| !value.is_empty())
}

/// What containerd and kubelet write before the name of an image.
const IMAGE_MARKERS: [&str; 6] = [
    "PullImage \"",
    "pull and unpack image \"",
    "resolve reference \"",
    "ulling image \"",
    "pull image \"",
    "pulled image \"",
];

/// The images in a line of containerd or kubelet, and whether the line says that they could not be
/// pulled.
fn images(line: &str) -> Vec<(RequestedName, bool)> {
    // in logs within logs, quotes are escaped, more than once
    let line = line.replace('\\', "");
    let fails = ["failed", "Failed", "Back-off", "not found"];
    let is_miss = fails.iter().any(|word| line.contains(word));
    let mut found: Vec<(RequestedName, bool)> = Vec::new();
    for marker in IMAGE_MARKERS {
        for (at, _) in line.match_indices(marker) {
            let name = line[at + marker.len()..].split('"').next();
            let name = name.unwrap_or_default();
            if name.parse::<ImageRef>().is_err() || found.iter().any(|(one, _)| one.name == name) {
                continue;
            }
            let requested = RequestedName {
                kind: EntryKind::Image,
                name: with_host(name),
                host: None,
            };
            found.push((requested, is_miss));
        }
    }
    found
}

/// The name of an image as a node reads it: without a host, it is one of docker.io.
fn with_host(name: &str) -> String {
    if has_host(name) {
        name.to_owned()
    } else {
        format!("docker.io/{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(log: &str, registry: Option<&str>) -> Vec<(usize, String)> {
        let misses = access_log_misses(log.as_bytes(), registry).unwrap();
        let names = misses.names.into_iter();
        names.map(|(line, _, name)| (line, name)).collect()
    }

    #[test]
    fn requests_that_were_answered_with_404_are_misses() {
        let log = "\
10.0.0.7 - - [29/Nov/2026:10:00:00 +0000] \"GET /v2/library/nginx/manifests/1.27?ns=docker.io HTTP/1.1\" 404 60 \"-\" \"containerd/2.2\" 0.001
10.0.0.7 - - [29/Nov/2026:10:00:01 +0000] \"HEAD /v2/app/manifests/v1 HTTP/1.1\" 200 0 \"-\" \"x\"
10.0.0.7 - - [29/Nov/2026:10:00:01 +0000] \"PUT /v2/app/manifests/v2 HTTP/1.1\" 404 0 \"-\" \"x\"
10.0.0.8 - - [29/Nov/2026:10:00:02 +0000] \"GET /v2/library/nginx/manifests/1.27?ns=docker.io HTTP/1.1\" 404 60
time=\"2026-11-29T10:00:03Z\" level=error msg=\"response completed with error\" err.code=\"manifest unknown\" http.request.method=GET http.request.uri=\"/v2/team/app/manifests/v3\" http.response.status=404 vars.name=team/app
{\"level\":\"error\",\"http.request.method\":\"HEAD\",\"http.request.uri\":\"/v2/team/app/manifests/v4?ns=quay.io\",\"http.response.status\":404}
2026/11/29 10:00:00 [error] 7#7: *1 open() \"/srv/files/dl.k8s.io/v1/kubelet\" failed (2: No such file or directory), client: 10.0.0.7, server: _, request: \"GET /files/dl.k8s.io/v1/kubelet HTTP/1.1\", host: \"files:8080\"
a line of something else
";
        let expected = [
            (1, "docker.io/library/nginx:1.27"),
            (5, "172.20.0.2:5000/team/app:v3"),
            (6, "quay.io/team/app:v4"),
            (7, "https://dl.k8s.io/v1/kubelet"),
        ]
        .map(|(line, name)| (line, name.to_owned()));
        assert_eq!(names(log, Some("172.20.0.2:5000")), expected);
        let misses = access_log_misses(log.as_bytes(), None).unwrap();
        assert_eq!(misses.without_host, [(5, "team/app:v3".to_owned())]);
        assert_eq!(misses.recognized, 7);
    }

    #[test]
    fn events_of_containerd_and_kubelet_name_images() {
        let log = r#"
time="2026-11-29T10:00:00Z" level=info msg="PullImage \"quay.io/a/b:v1\""
time="2026-11-29T10:00:00Z" level=error msg="PullImage \"quay.io/a/b:v2\" failed" error="rpc error: code = NotFound desc = failed to pull and unpack image \"quay.io/a/b:v2\": failed to resolve reference \"quay.io/a/b:v2\": quay.io/a/b:v2: not found"
E1129 10:00:00 kubelet: "Failed to pull image" err="... failed to pull image \\\"nginx:1.27\\\": not found"
default  2m  Warning  Failed   pod/x   Failed to pull image "172.20.0.2:5000/app:v3": rpc error
default  2m  Normal   Pulled   pod/y   Successfully pulled image "quay.io/a/c:v1" in 1s
default  2m  Normal   BackOff  pod/z   Back-off pulling image "quay.io/a/d@sha256:0"
"#;
        let expected = [
            (3, "quay.io/a/b:v2"),
            (4, "docker.io/nginx:1.27"),
            (5, "172.20.0.2:5000/app:v3"),
        ]
        .map(|(line, name)| (line, name.to_owned()));
        assert_eq!(names(log, None), expected);
    }

    #[test]
    fn the_list_of_the_server_is_read() {
        let log = r#"{"dropped":0,"misses":[{"clients":["10.0.0.7"],"count":2,"kind":"image","name":"quay.io/a:v1"},
{"kind":"file","name":"https://h/x","count":1},{"kind":"chart","name":"app-1.0.tgz"}]}"#;
        let expected = [(1, "quay.io/a:v1"), (2, "https://h/x")];
        let expected = expected.map(|(line, name)| (line, name.to_owned()));
        assert_eq!(names(log, None), expected);
    }

    #[test]
    fn forged_lines_add_no_names() {
        let long = format!(
            "x \"GET /v2/{}/manifests/v1 HTTP/1.1\" 404",
            "a/".repeat(9000)
        );
        for line in [
            "x \"GET /v2/../manifests/v1 HTTP/1.1\" 404",
            "x \"GET /v2/a/manifests/v1%0amissing HTTP/1.1\" 404",
            "x \"GET /v2/a/manifests/<b> HTTP/1.1\" 404",
            "x \"GET http://h/v2/a/manifests/v1 HTTP/1.1\" 404",
            "failed to pull image \"../../etc/passwd\"",
            "failed to pull image \"a b\"",
            "failed to pull image \"",
            "\"\"\" HTTP/ \"",
            "{\"misses\": [[[[",
            &long,
        ] {
            assert_eq!(names(line, Some("r.test")), [], "{line}");
        }
        let endless = "\"".repeat(1 << 20);
        assert_eq!(names(&endless, None), []);
    }
}
