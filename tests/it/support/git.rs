//! A git server on loopback: git's own `http-backend` behind a small HTTP server, and repositories.

use super::library::Digest;
use super::{Place, run, which};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// A git server with bare repositories in a folder. Its threads end with the process of the test.
pub struct GitServer {
    /// `127.0.0.1:port`.
    pub address: String,
    pub place: Place,
    state: Arc<GitServerState>,
}

/// The state that the threads of a server share.
#[derive(Default)]
struct GitServerState {
    requests: Mutex<Vec<String>>,
    behavior: Mutex<GitServerBehavior>,
}

/// How a server answers from now on.
#[derive(Default, Clone)]
pub struct GitServerBehavior {
    /// The `Authorization` header that requests need; requests without it get a challenge.
    pub authorization: Option<String>,
    /// The `host:port` in the URLs of large files; by default the `Host` header of the request.
    pub large_file_host: Option<String>,
    /// The headers that the server asks clients to send with transfers of large files. If this is
    /// set, the server also asks clients to confirm uploads.
    pub large_file_headers: Option<Value>,
    /// The status of responses to uploads of large files; by default `200 OK`.
    pub upload_status: Option<&'static str>,
    /// The number of packs that are still to be cut off after 10,000 bytes.
    pub cut_packs: usize,
    /// The number of lists of refs that are still to be cut off after 100 bytes.
    pub cut_lists: usize,
    /// The number of first answers of a service that are still to be cut off after 35 bytes, which
    /// is after the name of the service for pushes.
    pub cut_advertisements: usize,
    /// Whether the first answer to each request is cut off in the middle. Unlike the other answers
    /// that are cut off, it has a `Content-Length`.
    pub cut_first_answers: bool,
    /// A tag that moves after some lists of refs: the number of lists, the path of the repository,
    /// the full name of the tag, and its new object.
    pub move_tag: Option<(usize, PathBuf, String, String)>,
    /// Whether the server speaks version 0 of the protocol only.
    pub only_version_0: bool,
    /// Whether media types are sent in other case and with a parameter, as some frameworks do.
    pub odd_media_types: bool,
    /// After this many bytes of a pack, the server sends nothing until this field is `None` again.
    pub hold_packs_after: Option<u64>,
}

impl GitServer {
    /// An empty server; `None` if this machine has no git.
    pub fn new() -> Option<GitServer> {
        if !super::need(&["git"]) {
            return None;
        }
        let place = Place::new();
        std::fs::create_dir_all(place.path("repos")).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state: Arc<GitServerState> = Arc::default();
        let root = place.path("repos");
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let root = root.clone();
                let state = shared.clone();
                // if a client disconnects, only the thread of its connection panics
                std::thread::spawn(move || stream.map(|stream| answer(stream, &root, &state)));
            }
        });
        Some(GitServer {
            address,
            place,
            state,
        })
    }

    /// The URL of a repository.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }

    /// Creates a bare repository that accepts pushes, and returns its folder.
    pub fn create(&self, name: &str) -> PathBuf {
        let path = self.place.path("repos").join(name);
        self.git(
            Path::new("."),
            &["init", "-q", "--bare", "-b", "main", path.to_str().unwrap()],
        );
        self.git(&path, &["config", "http.receivepack", "true"]);
        path
    }

    /// Runs git in `folder` without any configuration of the machine, and returns its output.
    pub fn git(&self, folder: &Path, args: &[&str]) -> String {
        String::from_utf8(run(&mut git(&self.place, folder, args))).unwrap()
    }

    /// Adds commits by `git fast-import`.
    pub fn import(&self, repository: &Path, stream: &str) {
        let mut command = git(
            &self.place,
            repository,
            &["fast-import", "--quiet", "--force"],
        );
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(stream.as_bytes())
            .unwrap();
        assert!(child.wait().unwrap().success());
    }

    /// The requests so far: method and target, followed by `fetch` if the request is for a pack. An
    /// entry `held` means that the server paused within a pack.
    pub fn requests(&self) -> Vec<String> {
        self.state.requests.lock().unwrap().clone()
    }

    /// Adds a file to the Git LFS objects of the server.
    pub fn add_large_file(&self, content: &[u8]) {
        let name = Digest::sha256(content).hex();
        self.place.write(&format!("repos/lfs/{name}"), content);
    }

    /// The number of packs that were requested so far.
    pub fn pack_requests(&self) -> usize {
        let requests = self.requests();
        requests.iter().filter(|one| one.ends_with("fetch")).count()
    }

    /// The number of packs that the server has held after their first bytes.
    pub fn held_packs(&self) -> usize {
        self.requests().iter().filter(|one| *one == "held").count()
    }

    /// Changes how the server answers.
    pub fn set(&self, behavior: GitServerBehavior) {
        *self.state.behavior.lock().unwrap() = behavior;
    }
}

/// git in `folder` without any configuration of the machine.
pub fn git(place: &Place, folder: &Path, args: &[&str]) -> Command {
    let mut command = place.clean("git");
    command
        .arg("-C")
        .arg(folder)
        .args(["-c", "user.name=T", "-c", "user.email=t@example.com"])
        .args(["-c", "protocol.file.allow=always"])
        .args(args)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_COMMITTER_DATE", "1700000000 +0000")
        .env("GIT_AUTHOR_DATE", "1700000000 +0000");
    command
}

/// A history of `count` commits on `branch` for `git fast-import`. The first commit has the number
/// `from`, so a second call can continue the history of the first call.
pub fn history(branch: &str, from: usize, count: usize) -> String {
    let mut stream = String::new();
    for n in from..from + count {
        let message = format!("Commit {n}\n");
        let path = format!("src/d{}/f{}.txt", n % 7, n % 31);
        let lines: String = (0..40)
            .map(|line| format!("line {line} of {path} is {}\n", n / (line + 1)))
            .collect();
        stream += &format!("commit refs/heads/{branch}\nmark :{}\n", n + 1);
        stream += &format!("committer T <t@example.com> {} +0000\n", 1_600_000_000 + n);
        stream += &format!("data {}\n{message}", message.len());
        if n == from && n > 0 {
            stream += &format!("from refs/heads/{branch}^0\n");
        }
        stream += &format!("M 100644 inline {path}\ndata {}\n{lines}\n", lines.len());
    }
    stream
}

/// The Git LFS pointer to a file with this content.
pub fn pointer(content: &[u8]) -> String {
    let digest = Digest::sha256(content);
    let size = content.len();
    format!("version https://git-lfs.github.com/spec/v1\noid {digest}\nsize {size}\n")
}

/// Returns the answer to a request of Git LFS: the batch API of a repository, and transfers below
/// `/lfs/`.
fn answer_lfs(
    root: &Path,
    method: &str,
    path: &str,
    body: &[u8],
    host: &str,
    behavior: &GitServerBehavior,
) -> Vec<u8> {
    let upload_status = behavior.upload_status.unwrap_or("200 OK");
    let file = |oid: &str| root.join("lfs").join(oid);
    let (status, answer) = match (method, path.strip_prefix("/lfs/")) {
        ("PUT", Some(oid)) => {
            if upload_status.starts_with('2') {
                std::fs::create_dir_all(root.join("lfs")).unwrap();
                std::fs::write(file(oid), body).unwrap();
            }
            (upload_status, Vec::new())
        }
        (_, Some(oid)) => match std::fs::read(file(oid)) {
            Ok(content) => ("200 OK", content),
            Err(_) => ("404 Not Found", Vec::new()),
        },
        (_, None) => {
            let request: Value = serde_json::from_slice(body).unwrap();
            let operation = request["operation"].as_str().unwrap();
            let objects = request["objects"].as_array().unwrap().iter();
            let objects = objects.map(|object| {
                let oid = object["oid"].as_str().unwrap();
                let headers = &behavior.large_file_headers;
                let action = |path: &str| {
                    let href = format!("http://{host}/lfs/{path}");
                    match headers {
                        Some(headers) => json!({"href": href, "header": headers}),
                        None => json!({"href": href}),
                    }
                };
                match (operation, file(oid).exists()) {
                    ("upload", true) => json!({"oid": oid}),
                    ("upload", false) | ("download", true) => {
                        let mut actions = json!({operation: action(oid)});
                        if operation == "upload" && headers.is_some() {
                            actions["verify"] = action("verify");
                        }
                        json!({"oid": oid, "actions": actions})
                    }
                    _ => json!({"oid": oid, "error": {"code": 404, "message": "not here"}}),
                }
            });
            let answer = json!({"objects": objects.collect::<Vec<_>>()});
            ("200 OK", answer.to_string().into_bytes())
        }
    };
    let length = answer.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    [head.as_bytes(), &answer].concat()
}

/// Moves the tag of [`GitServerBehavior::move_tag`] if it is time.
fn move_tag(root: &Path, state: &GitServerState) {
    let mut behavior = state.behavior.lock().unwrap();
    let Some((lists, repository, tag, object)) = &mut behavior.move_tag else {
        return;
    };
    if *lists > 0 {
        *lists -= 1;
        return;
    }
    run(Command::new("git")
        .arg("--git-dir")
        .arg(repository)
        .args(["update-ref", tag, object])
        .env("HOME", root));
    behavior.move_tag = None;
}

/// Answers one request by `git http-backend`, as a web server would by CGI. A client that uses the
/// server as a proxy sends whole URLs.
fn answer(mut stream: TcpStream, root: &Path, state: &GitServerState) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let mut words = line.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return;
    };
    let method = method.to_owned();
    let target = target.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(':') {
            Some((name, value)) => {
                headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
            None => break,
        }
    }
    let header = |name: &str| {
        let found = headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    if header("expect") == "100-continue" {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
    }
    let mut body = Vec::new();
    if header("transfer-encoding") == "chunked" {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size).unwrap();
            let size = u64::from_str_radix(size.trim(), 16).unwrap();
            std::io::copy(&mut reader.by_ref().take(size), &mut body).unwrap();
            reader.read_line(&mut String::new()).unwrap();
            if size == 0 {
                break;
            }
        }
    } else {
        let length = header("content-length").parse().unwrap_or(0);
        reader.take(length).read_to_end(&mut body).unwrap();
    }
    // in version 0, the request ends with `done`
    let is_fetch = body.windows(14).any(|part| part == b"command=fetch\n")
        || (target.ends_with("/git-upload-pack") && body.ends_with(b"0009done\n"));
    let is_list = body.windows(16).any(|part| part == b"command=ls-refs\n");
    let command = if is_fetch { " fetch" } else { "" };
    let line = format!("{method} {target}{command}");
    let is_first_cut = {
        let mut requests = state.requests.lock().unwrap();
        let is_first = !requests.contains(&line);
        requests.push(line);
        // the answer to a push is not requested again, and that to an upload is empty
        let is_push = method == "PUT" || method == "POST" && target.ends_with("-receive-pack");
        is_first && !is_push && state.behavior.lock().unwrap().cut_first_answers
    };
    if is_list {
        move_tag(root, state);
    }
    let needed = state.behavior.lock().unwrap().authorization.clone();
    if needed.is_some_and(|needed| header("authorization") != needed) {
        let head =
            "HTTP/1.1 401 X\r\nWWW-Authenticate: Basic realm=\"git\"\r\nContent-Length: 0\r\n";
        let _ = stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes());
        return;
    }
    let local = match target.split_once("://") {
        Some((_, rest)) => &rest[rest.find('/').unwrap_or(0)..],
        None => &target,
    };
    let (path, query) = local.split_once('?').unwrap_or((local, ""));
    if path.contains("/lfs/") {
        let behavior = state.behavior.lock().unwrap().clone();
        let host = behavior.large_file_host.clone();
        let host = host.unwrap_or_else(|| header("host"));
        let answer = answer_lfs(root, &method, path, &body, &host, &behavior);
        let sent = answer.len() / if is_first_cut { 2 } else { 1 };
        let _ = stream.write_all(&answer[..sent]);
        return;
    }
    let only_version_0 = state.behavior.lock().unwrap().only_version_0;
    let protocol = match only_version_0 {
        true => String::new(),
        false => header("git-protocol"),
    };
    let program = which("git").unwrap();
    let mut backend = Command::new(program)
        .arg("http-backend")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .env("HOME", root)
        .env("REQUEST_METHOD", &method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("HTTP_GIT_PROTOCOL", &protocol)
        .env("GIT_PROTOCOL", &protocol)
        .env("REMOTE_ADDR", "127.0.0.1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = backend.stdin.take().unwrap();
    let writing = std::thread::spawn(move || {
        // a backend that refuses the request does not read the body
        let _ = input.write_all(&body);
    });
    let mut output = BufReader::new(backend.stdout.take().unwrap());
    let mut status = "200 OK".to_owned();
    let mut head = String::new();
    loop {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        match line.trim_end().split_once(": ") {
            Some(("Status", value)) => value.clone_into(&mut status),
            Some(("Content-Type", value)) if state.behavior.lock().unwrap().odd_media_types => {
                let value = value.replace("application/", "Application/");
                head += &format!("Content-Type: {value};charset=UTF-8\r\n");
            }
            Some((name, value)) => head += &format!("{name}: {value}\r\n"),
            None => break,
        }
    }
    if is_first_cut {
        head += "Content-Length: 1000000\r\n";
    }
    let head = format!("HTTP/1.1 {status}\r\n{head}Connection: close\r\n\r\n");
    let _ = stream.write_all(head.as_bytes());
    let cut_at = {
        let mut behavior = state.behavior.lock().unwrap();
        let (cuts, at) = match (is_fetch, is_list) {
            (true, _) => (Some(&mut behavior.cut_packs), 10_000),
            (_, true) => (Some(&mut behavior.cut_lists), 100),
            _ if path.ends_with("/info/refs") => (Some(&mut behavior.cut_advertisements), 35),
            _ => (None, 0),
        };
        match cuts {
            _ if is_first_cut => Some(20),
            Some(cuts) if *cuts > 0 => {
                *cuts -= 1;
                Some(at)
            }
            _ => None,
        }
    };
    if let Some(at) = cut_at {
        let _ = std::io::copy(&mut output.take(at), &mut stream);
        let _ = backend.kill();
        let _ = backend.wait();
        return;
    }
    if is_fetch {
        let behavior = || state.behavior.lock().unwrap();
        let held = behavior().hold_packs_after;
        if let Some(bytes) = held {
            let _ = std::io::copy(&mut output.by_ref().take(bytes), &mut stream);
            state.requests.lock().unwrap().push("held".into());
        }
        while behavior().hold_packs_after.is_some() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
    let _ = std::io::copy(&mut output, &mut stream);
    // if the client has disconnected, the backend must not wait for a reader of its output
    drop(output);
    let _ = backend.wait();
    let _ = writing.join();
}
