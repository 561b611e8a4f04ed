//! Renders charts with the helm of this machine.

use landfall_model::{Failure, Limits};
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// The maximum size of helm's error message, in bytes.
const MESSAGE_BYTES: u64 = 64 << 10;
/// How often it is checked whether helm has ended, after it has closed its output.
const EXIT_INTERVAL: Duration = Duration::from_millis(5);

/// A helm program and its arguments.
#[derive(Debug, Clone)]
pub struct HelmCommand {
    /// The path of the program.
    pub program: PathBuf,
    values: Vec<PathBuf>,
    /// The version of Kubernetes to render for; helm has a default.
    kubernetes: Option<String>,
}

impl HelmCommand {
    /// Finds the first `helm` in the folders of `path`, the value of PATH. The command renders with
    /// the values files `values`.
    pub fn find(path: Option<&OsStr>, values: &[PathBuf]) -> Option<HelmCommand> {
        let folders = std::env::split_paths(path?);
        let program = folders
            .map(|folder| folder.join("helm"))
            .find(|program| program.is_file())?;
        Some(HelmCommand {
            program,
            values: values.to_vec(),
            kubernetes: None,
        })
    }

    /// Renders for this version of Kubernetes.
    #[must_use]
    pub fn for_kubernetes(self, version: Option<&str>) -> HelmCommand {
        HelmCommand {
            kubernetes: version.map(str::to_owned),
            ..self
        }
    }

    /// Returns the version of helm, without a `v`.
    ///
    /// # Errors
    /// If helm cannot be run, fails, exceeds a limit, or writes text that is not UTF-8.
    pub fn version(&self) -> Result<String, Failure> {
        let mut command = Command::new(&self.program);
        command.args(["version", "--template", "{{.Version}}"]);
        let text = output(&mut command, &Limits::DEFAULT)?;
        Ok(text.trim().trim_start_matches('v').to_owned())
    }

    /// Returns the output of `helm template` for a chart.
    ///
    /// # Errors
    /// If helm cannot be run, fails, exceeds a limit, or writes text that is not UTF-8.
    pub fn template(&self, chart: &Path) -> Result<String, Failure> {
        let mut command = Command::new(&self.program);
        command
            .args(["template", "landfall"])
            .arg(chart)
            .arg("--include-crds");
        self.values.iter().for_each(|file| {
            command.arg("--values").arg(file);
        });
        self.kubernetes.iter().for_each(|version| {
            command.args(["--kube-version", version]);
        });
        output(&mut command, &Limits::DEFAULT)
    }
}

fn run_error(error: io::Error) -> Failure {
    Failure::failed(error.to_string())
}

fn timed_out(limits: &Limits) -> Failure {
    let seconds = limits.helm_time.as_secs();
    Failure::failed(format!("it did not end within {seconds} seconds"))
}

fn output(command: &mut Command, limits: &Limits) -> Result<String, Failure> {
    // the standard input may be a text for landfall (`-`), which helm must not consume
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(run_error)?;
    let written = read_output(&mut child, limits);
    if written.is_err() {
        // It may have ended by itself meanwhile. A program that it started is not ended: a process
        // group of its own would include that program, but would not receive Ctrl-C.
        let _ = child.kill();
        // the status of an ended process is kept until it is read
        let _ = child.wait();
    }
    let HelmOutput {
        status,
        text,
        message,
    } = written?;
    if !status.success() {
        return Err(Failure::failed(
            String::from_utf8_lossy(&message).trim().to_owned(),
        ));
    }
    String::from_utf8(text).map_err(|_| Failure::failed("its output is not UTF-8"))
}

/// How helm ended, and what it wrote to its standard output and its standard error.
struct HelmOutput {
    status: ExitStatus,
    text: Vec<u8>,
    message: Vec<u8>,
}

/// Reads the output of `child` to its end, and waits until `child` ends, within the limits.
fn read_output(child: &mut Child, limits: &Limits) -> Result<HelmOutput, Failure> {
    let deadline = Instant::now() + limits.helm_time;
    // a program that goes on writing ends at the closed pipe
    let text = read_in_thread(child.stdout.take(), limits.helm_output_bytes, drop);
    // the pipe stays open: it would end a program that only writes many warnings
    let message = read_in_thread(child.stderr.take(), MESSAGE_BYTES, |mut rest| {
        let _ = io::copy(&mut rest, &mut io::sink());
    });
    let receive = |bytes: &Receiver<io::Result<Vec<u8>>>| {
        let left = deadline.saturating_duration_since(Instant::now());
        match bytes.recv_timeout(left) {
            Ok(read) => read.map_err(run_error),
            Err(_) => Err(timed_out(limits)),
        }
    };
    let text = receive(&text)?;
    if text.len() as u64 > limits.helm_output_bytes {
        let limit = limits.helm_output_bytes;
        return Err(Failure::failed(format!(
            "its output has more than {limit} bytes"
        )));
    }
    let message = receive(&message)?;
    loop {
        if let Some(status) = child.try_wait().map_err(run_error)? {
            return Ok(HelmOutput {
                status,
                text,
                message,
            });
        }
        if Instant::now() >= deadline {
            return Err(timed_out(limits));
        }
        thread::sleep(EXIT_INTERVAL);
    }
}

/// Reads `stream` in a thread. Returns a receiver of its content, or of the first bytes, one more
/// than `limit`. Passes the stream with the other bytes to `end`.
fn read_in_thread<R: Read + Send + 'static>(
    stream: Option<R>,
    limit: u64,
    end: impl FnOnce(R) + Send + 'static,
) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let Some(mut stream) = stream else { return };
        let mut bytes = Vec::new();
        let read = stream.by_ref().take(limit + 1).read_to_end(&mut bytes);
        // nobody receives it after the time limit
        let _ = sender.send(read.map(|_| bytes));
        end(stream);
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_and_the_time_of_helm_are_limited() {
        let run =
            |script: &str, limits: &Limits| output(Command::new("sh").args(["-c", script]), limits);
        let limits = Limits {
            helm_output_bytes: 10,
            ..Limits::DEFAULT
        };
        assert_eq!(run("echo text", &limits).unwrap(), "text\n");
        let failed = run("echo why >&2; exit 1", &limits).unwrap_err();
        assert_eq!(failed.to_string(), "why");
        let endless = run("yes", &limits).unwrap_err();
        assert_eq!(endless.message, "its output has more than 10 bytes");
        let limits = Limits {
            helm_time: Duration::from_millis(50),
            ..Limits::DEFAULT
        };
        let slow = run("exec sleep 600", &limits).unwrap_err();
        assert!(slow.message.starts_with("it did not end within "), "{slow}");
        let silent = run("exec >&- 2>&-; exec sleep 600", &limits).unwrap_err();
        assert!(
            silent.message.starts_with("it did not end within "),
            "{silent}"
        );
    }

    #[test]
    fn a_program_that_helm_started_ends_when_its_output_is_too_large() {
        let dir = tempfile::tempdir().unwrap();
        let ended = dir.path().join("ended");
        let script = format!("(yes; : > '{}') & wait", ended.display());
        let limits = Limits {
            helm_output_bytes: 10,
            ..Limits::DEFAULT
        };
        let endless = output(Command::new("sh").args(["-c", &script]), &limits).unwrap_err();
        assert_eq!(endless.message, "its output has more than 10 bytes");
        let deadline = Instant::now() + Duration::from_secs(30);
        while !ended.exists() {
            assert!(Instant::now() < deadline, "the program still writes");
            thread::sleep(EXIT_INTERVAL);
        }
    }
}
