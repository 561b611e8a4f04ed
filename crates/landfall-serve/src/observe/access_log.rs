//! The access log: a line for each request, in the combined format of other web servers, and the
//! seconds that it took.

use super::request::Ended;
use jiff::Timestamp;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Lines that may wait for the disk. More are left out, and counted.
const WAITING: usize = 4096;

/// Where the access log goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTarget {
    /// To stderr.
    Stderr,
    /// To the end of a file.
    File(PathBuf),
}

/// The access log. A thread of its own writes it, so that no request waits for a disk.
pub struct AccessLog {
    lines: SyncSender<Told>,
    lost: AtomicU64,
}

enum Told {
    Line(String),
    /// The file may have been moved away.
    Reopen,
}

impl LogTarget {
    fn open(&self) -> io::Result<Box<dyn Write + Send>> {
        Ok(match self {
            LogTarget::Stderr => Box::new(io::stderr()),
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
    /// When its file cannot be opened.
    pub fn open(target: LogTarget) -> io::Result<AccessLog> {
        let out = target.open()?;
        let (lines, told) = sync_channel(WAITING);
        std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || write_all(&told, &target, out))?;
        Ok(AccessLog {
            lines,
            lost: AtomicU64::new(0),
        })
    }

    /// Adds a line.
    pub(super) fn write(&self, line: String) {
        if self.lines.try_send(Told::Line(line)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Opens the file anew, as it may have been moved away.
    pub(in super::super) fn reopen(&self) {
        let _ = self.lines.try_send(Told::Reopen);
    }

    /// Lines that were left out because the disk did not keep up.
    pub(in super::super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

fn write_all(told: &Receiver<Told>, target: &LogTarget, mut out: Box<dyn Write + Send>) {
    for told in told {
        match told {
            // what cannot be written is lost: there is nobody to tell
            Told::Line(line) => drop(out.write_all(line.as_bytes())),
            Told::Reopen => {
                if let Ok(opened) = target.open() {
                    out = opened;
                }
            }
        }
    }
}

/// The line of a request that ended at `now`. A query may hold secrets, and is not shown.
pub(super) fn line(ended: &Ended<'_>, now: Timestamp) -> String {
    let Ended {
        caller,
        user,
        status,
        bytes,
        took,
    } = ended;
    let user = user.map_or_else(|| "-".to_owned(), |user| escaped(user.as_bytes()));
    let agent = caller
        .agent
        .as_ref()
        .map_or_else(|| "-".to_owned(), |agent| escaped(agent.as_bytes()));
    let path = escaped(caller.uri.path().as_bytes());
    let query = if caller.uri.query().is_some() {
        "?…"
    } else {
        ""
    };
    let time = now.strftime("%d/%b/%Y:%H:%M:%S +0000");
    let (peer, method, status) = (
        caller.peer.ip().to_canonical(),
        &caller.method,
        status.as_u16(),
    );
    let (version, seconds) = (caller.version, took.as_secs_f64());
    format!(
        "{peer} - {user} [{time}] \"{method} {path}{query} {version:?}\" {status} {bytes} \"-\" \"{agent}\" {seconds:.3}\n"
    )
}

/// Text of a client without quotes, blanks and control characters.
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

#[cfg(test)]
mod tests {
    use super::super::request::Caller;
    use super::*;
    use axum::http::{HeaderValue, Request, StatusCode};
    use std::time::Duration;

    #[test]
    fn a_line_is_in_the_combined_format_and_shows_no_query_and_no_control_character() {
        let mut request = Request::get("/files/h/a?token=secret").body(()).unwrap();
        let agent =
            HeaderValue::from_bytes(b"x\"\x1b\xff y").unwrap_or(HeaderValue::from_static("x\"y"));
        request.headers_mut().insert("user-agent", agent);
        let caller = Caller::of(&request, "[::ffff:10.0.0.7]:4321".parse().unwrap());
        let (status, took) = (StatusCode::PARTIAL_CONTENT, Duration::from_millis(532));
        let ended = Ended {
            caller: &caller,
            user: Some("anna"),
            status,
            bytes: 77,
            took,
        };
        let line = line(&ended, "2026-11-21T18:30:00Z".parse().unwrap());
        let expected = "10.0.0.7 - anna [21/Nov/2026:18:30:00 +0000] \"GET /files/h/a?… HTTP/1.1\" 206 77 \"-\" \"";
        assert!(line.starts_with(expected), "{line}");
        assert!(
            line.ends_with(" 0.532\n") && line.contains("\"x\\x22"),
            "{line}"
        );
        assert!(
            !line.trim_end().contains(|c: char| c.is_control()),
            "{line}"
        );
    }
}
