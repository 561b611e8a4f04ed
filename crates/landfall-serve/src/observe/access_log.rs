//! The access log: one line for each request, in the combined log format of other web servers,
//! followed by the duration of the request in seconds.

use http::header::USER_AGENT;
use http::{HeaderValue, Method, Request, StatusCode, Uri, Version};
use jiff::Timestamp;
use landfall_item::namespace;
use landfall_model::locked;
use landfall_os::Blocking;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The number of lines that may wait for the disk. Further lines are dropped and counted.
const MAX_WAITING: usize = 4096;

/// Where the access log is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTarget {
    /// To the standard error stream.
    Stderr,
    /// To the end of a file.
    File(PathBuf),
}

/// The access log. A separate thread writes it, so that no request waits for a disk.
pub struct AccessLog {
    commands: SyncSender<LogCommand>,
    target: LogTarget,
    /// The log that replaces the current one before the next line is written. It is not a command,
    /// because the queue of commands may be full.
    replacement: Arc<Mutex<Option<LogWriter>>>,
    lost_lines: AtomicU64,
}

type LogWriter = Box<dyn Write + Send>;

enum LogCommand {
    Write(String),
    /// Close the current log if there is a replacement.
    Replace,
}

impl LogTarget {
    fn open(&self) -> io::Result<LogWriter> {
        Ok(match self {
            LogTarget::Stderr => Box::new(Blocking(io::stderr())),
            LogTarget::File(path) => {
                Box::new(File::options().create(true).append(true).open(path)?)
            }
        })
    }
}

impl AccessLog {
    /// Opens the log.
    ///
    /// # Errors
    /// If its file cannot be opened, or its thread cannot be started.
    pub fn open(target: LogTarget) -> io::Result<AccessLog> {
        let out = target.open()?;
        // bounded, so that a slow disk cannot fill the memory
        let (commands, receiver) = sync_channel(MAX_WAITING);
        let replacement = Arc::<Mutex<Option<LogWriter>>>::default();
        let replaced_by = replacement.clone();
        std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || write_lines(&receiver, &replaced_by, out))?;
        Ok(AccessLog {
            commands,
            target,
            replacement,
            lost_lines: AtomicU64::new(0),
        })
    }

    pub(super) fn write(&self, line: String) {
        // never waits: a full disk must not stop the server
        if self.commands.try_send(LogCommand::Write(line)).is_err() {
            self.lost_lines.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Opens the file again, as after log rotation. If that fails, the current one is kept.
    pub(crate) fn reopen(&self) -> io::Result<()> {
        *locked(&self.replacement) = Some(self.target.open()?);
        // if the queue is full, the next line in it has the same effect
        let _ = self.commands.try_send(LogCommand::Replace);
        Ok(())
    }

    /// The number of lines that were dropped because the disk was too slow.
    pub(crate) fn lost_lines(&self) -> u64 {
        self.lost_lines.load(Ordering::Relaxed)
    }
}

fn write_lines(
    commands: &Receiver<LogCommand>,
    replacement: &Mutex<Option<LogWriter>>,
    mut out: LogWriter,
) {
    for command in commands {
        if let Some(opened) = locked(replacement).take() {
            out = opened;
        }
        if let LogCommand::Write(line) = command {
            // an error cannot be reported here; writing continues with the next line
            drop(out.write_all(line.as_bytes()));
        }
    }
}

/// The log line of a request that was completed at `now`. The query is masked but for `ns`, since
/// it may contain secrets.
pub(super) fn combined_log_line(completed: &CompletedRequest<'_>, now: Timestamp) -> String {
    let request = completed.request;
    // an IPv4 client of an IPv6 socket is shown by its IPv4 address
    let peer = request.peer.ip().to_canonical();
    let user = escaped_or_dash(completed.user.map(str::as_bytes));
    let time = now.strftime("%d/%b/%Y:%H:%M:%S +0000");
    let path = escaped(request.uri.path().as_bytes());
    let query = shown_query(request.uri.query());
    let agent = escaped_or_dash(request.agent.as_ref().map(http::HeaderValue::as_bytes));
    format!(
        "{peer} - {user} [{time}] \"{} {path}{query} {:?}\" {} {} \"-\" \"{agent}\" {:.3}\n",
        request.method,
        request.version,
        completed.status.as_u16(),
        completed.bytes,
        completed.duration.as_secs_f64(),
    )
}

/// The query of a request as far as it is shown: the host that containerd names (`ns`), which says
/// for whom the request was.
fn shown_query(query: Option<&str>) -> String {
    match query.map(namespace) {
        None => String::new(),
        Some(Some(host)) => format!("?ns={host}"),
        Some(None) => "?…".to_owned(),
    }
}

fn escaped_or_dash(text: Option<&[u8]>) -> String {
    text.map_or_else(|| "-".to_owned(), escaped)
}

/// Escapes quotes, backslashes and everything outside of printable ASCII, so that text from a
/// client can neither forge log lines nor control a terminal.
fn escaped(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'"' | b'\\' | 0..0x20 | 0x7f.. => drop(write!(out, "\\x{byte:02x}")),
            _ => out.push(byte as char),
        }
    }
    out
}

// The properties of a request for the access log and the metrics.

/// The name of the authenticated user, as an extension of the response.
#[derive(Clone)]
pub(crate) struct UserName(pub(crate) String);

/// A request as it was received.
pub(crate) struct RequestInfo {
    pub(super) peer: SocketAddr,
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) version: Version,
    pub(super) agent: Option<HeaderValue>,
    pub(super) received: Instant,
}

impl RequestInfo {
    /// Records `request` from `peer`, received now.
    pub(crate) fn new<T>(request: &Request<T>, peer: SocketAddr) -> RequestInfo {
        RequestInfo {
            peer,
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            agent: request.headers().get(USER_AGENT).cloned(),
            received: Instant::now(),
        }
    }
}

/// A request whose response has ended.
pub(super) struct CompletedRequest<'a> {
    pub(super) request: &'a RequestInfo,
    pub(super) user: Option<&'a str>,
    pub(super) status: StatusCode,
    /// The number of body bytes that were passed to hyper, which writes them to the connection.
    pub(super) bytes: u64,
    pub(super) duration: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_reopened_while_its_queue_is_full() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let (commands, receiver) = sync_channel(1);
        let log = AccessLog {
            commands,
            target: LogTarget::File(path.clone()),
            replacement: Arc::default(),
            lost_lines: AtomicU64::new(0),
        };
        log.write("waiting\n".into());
        log.reopen().unwrap();
        let replacement = log.replacement.clone();
        drop(log);
        write_lines(&receiver, &replacement, Box::new(io::sink()));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "waiting\n");
    }

    #[test]
    fn a_log_that_cannot_be_reopened_is_reported_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("logs");
        std::fs::create_dir(&folder).unwrap();
        let log = AccessLog::open(LogTarget::File(folder.join("log"))).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(log.reopen().is_err());
        assert!(locked(&log.replacement).is_none());
    }

    #[test]
    fn a_line_is_in_the_combined_format_and_shows_no_query_and_no_control_character() {
        let mut request = Request::get("/files/h/a?token=secret").body(()).unwrap();
        // a tab is the only control character that hyper accepts in a header
        let agent = HeaderValue::from_bytes(b"x\"\t\\\xff y").unwrap();
        request.headers_mut().insert("user-agent", agent);
        let info = RequestInfo::new(&request, "[::ffff:10.0.0.7]:4321".parse().unwrap());
        let completed = CompletedRequest {
            request: &info,
            user: Some("an\x1b[2J\nna"),
            status: StatusCode::PARTIAL_CONTENT,
            bytes: 77,
            duration: Duration::from_millis(532),
        };
        assert_eq!(
            combined_log_line(&completed, "2026-11-21T18:30:00Z".parse().unwrap()),
            "10.0.0.7 - an\\x1b[2J\\x0ana [21/Nov/2026:18:30:00 +0000] \
         \"GET /files/h/a?… HTTP/1.1\" 206 77 \"-\" \"x\\x22\\x09\\x5c\\xff y\" 0.532\n"
        );
    }
}
