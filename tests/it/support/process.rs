//! Server processes, which are stopped at the end of the test that started them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A child process that is stopped when the guard is dropped: with SIGTERM, and with SIGKILL if it
/// keeps running. Its output is written to a file.
pub struct Guard {
    child: Child,
    name: String,
    log: tempfile::NamedTempFile,
}

impl Guard {
    /// Starts `command`. Its process is stopped when the guard is dropped.
    pub fn start(mut command: Command) -> Guard {
        let name = PathBuf::from(command.get_program())
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let log = tempfile::Builder::new()
            .prefix("log-")
            .tempfile_in(super::scratch())
            .expect("a log file");
        // opened for appending: servers that open /dev/stdout again must not overwrite earlier
        // output
        let end = || {
            std::fs::OpenOptions::new()
                .append(true)
                .open(log.path())
                .unwrap()
        };
        let child = command
            .stdin(Stdio::null())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        Guard { child, name, log }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The output so far.
    pub fn log(&self) -> String {
        let log = std::fs::read(self.log.path()).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Whether the process is still running.
    pub fn alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until a server at `address` answers an HTTP request, or closes the connection because
    /// it expects TLS.
    ///
    /// # Panics
    /// If the process ends first, or if a minute has passed; the panic shows the output.
    pub fn wait_for_http(&mut self, address: SocketAddr) {
        self.wait_until(&format!("an answer at {address}"), || answers(address));
    }

    /// Waits until `ready` returns true.
    ///
    /// # Panics
    /// If the process ends first, or if a minute has passed; the panic shows the output.
    pub fn wait_until(&mut self, what: &str, ready: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_mins(1);
        while !ready() {
            assert!(
                self.alive(),
                "{} ended before there was {what}:\n{}",
                self.name,
                self.log()
            );
            assert!(
                Instant::now() < end,
                "{}: no {what}:\n{}",
                self.name,
                self.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a signal by name, such as `INT`.
    pub fn signal(&self, signal: &str) {
        let kill = format!("kill -{signal} {}", self.pid());
        let _ = Command::new("sh")
            .args(["-c", &kill])
            .stderr(Stdio::null())
            .status();
    }

    /// Waits for the end, and returns the exit code.
    pub fn wait(mut self) -> Option<i32> {
        self.child.wait().ok().and_then(|status| status.code())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.alive() {
            return;
        }
        self.signal("TERM");
        let end = Instant::now() + Duration::from_secs(5);
        while self.alive() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until `done` returns true.
///
/// # Panics
/// After 6,000 tries, which take at least a minute; the panic says what was awaited.
pub fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} was not observed in time");
}

/// A free TCP port on loopback, below the range that the system assigns.
pub fn free_port() -> u16 {
    free_listener().local_addr().unwrap().port()
}

/// A listener at a free port, so that no other process can take the port.
pub fn free_listener() -> TcpListener {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(61);
    for _ in 0..10_000 {
        let next = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = 20_000 + (next % 12_000) as u16;
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            return listener;
        }
    }
    panic!("no free port on loopback");
}

/// Whether a server at `address` answers an HTTP request or closes the connection.
fn answers(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_secs(1)) else {
        return false;
    };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
    let request = format!("GET /v2/ HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let mut first = [0u8; 1];
    // a TLS server answers plain text with an alert (0x15) or closes; both mean that it is running
    stream.write_all(request.as_bytes()).is_ok() && stream.read(&mut first).is_ok()
}
