//! A git server on loopback: git's own `http-backend` behind a small HTTP server, and repositories.

use super::{Place, run, which};
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
    requests: Arc<Mutex<Vec<String>>>,
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
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (root, log) = (place.path("repos"), requests.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (root, log) = (root.clone(), log.clone());
                // a client that disconnects ends only its own thread
                std::thread::spawn(move || stream.map(|stream| answer(stream, &root, &log)));
            }
        });
        Some(GitServer {
            address,
            place,
            requests,
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

    /// The requests so far: method and path.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
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
/// `from`, so a second call can continue the history of the first.
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

/// Answers one request by `git http-backend`, as a web server would by CGI.
fn answer(mut stream: TcpStream, root: &Path, log: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let mut words = line.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return;
    };
    let (method, target) = (method.to_owned(), target.to_owned());
    log.lock().unwrap().push(format!("{method} {target}"));
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
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
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
        .env("HTTP_GIT_PROTOCOL", header("git-protocol"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .env("REMOTE_ADDR", "127.0.0.1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = backend.stdin.take().unwrap();
    let writing = std::thread::spawn(move || {
        // a backend that refuses does not read the body
        let _ = input.write_all(&body);
    });
    let mut output = BufReader::new(backend.stdout.take().unwrap());
    let (mut status, mut head) = ("200 OK".to_owned(), String::new());
    loop {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        match line.trim_end().split_once(": ") {
            Some(("Status", value)) => value.clone_into(&mut status),
            Some((name, value)) => head += &format!("{name}: {value}\r\n"),
            None => break,
        }
    }
    let head = format!("HTTP/1.1 {status}\r\n{head}Connection: close\r\n\r\n");
    let _ = stream.write_all(head.as_bytes());
    let _ = std::io::copy(&mut output, &mut stream);
    let _ = backend.wait();
    let _ = writing.join();
}
