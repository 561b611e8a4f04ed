//! The signals that end or reload the program. Each is watched from the call of `watch` on, which
//! must be in a runtime of tokio, and does not end the program by itself any more.

use std::io::Result;

#[cfg(unix)]
use tokio::signal::unix::{
    Signal as InterruptSignal, Signal as TerminationSignal, Signal as ReloadSignal, SignalKind,
    signal,
};
#[cfg(windows)]
use tokio::signal::windows::{CtrlBreak as TerminationSignal, CtrlC as InterruptSignal};

/// Ctrl-C, which is SIGINT on Unix.
#[derive(Debug)]
pub struct CtrlC(InterruptSignal);

impl CtrlC {
    /// Watches for Ctrl-C.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn watch() -> Result<CtrlC> {
        #[cfg(unix)]
        return signal(SignalKind::interrupt()).map(CtrlC);
        #[cfg(windows)]
        return tokio::signal::windows::ctrl_c().map(CtrlC);
    }

    /// Waits for the next Ctrl-C.
    pub async fn recv(&mut self) {
        self.0.recv().await;
    }
}

/// The request to end a server: SIGTERM, on Windows Ctrl-Break.
#[derive(Debug)]
pub struct Terminations(TerminationSignal);

impl Terminations {
    /// Watches for the request to end.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn watch() -> Result<Terminations> {
        #[cfg(unix)]
        return signal(SignalKind::terminate()).map(Terminations);
        #[cfg(windows)]
        return tokio::signal::windows::ctrl_break().map(Terminations);
    }

    /// Waits for the request.
    pub async fn recv(&mut self) {
        self.0.recv().await;
    }
}

/// The request to reload: SIGHUP. It never comes on Windows, which has no such signal.
#[derive(Debug)]
pub struct Reloads(#[cfg(unix)] ReloadSignal);

impl Reloads {
    /// Watches for the request to reload.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn watch() -> Result<Reloads> {
        #[cfg(unix)]
        return signal(SignalKind::hangup()).map(Reloads);
        #[cfg(windows)]
        return Ok(Reloads());
    }

    /// Waits for the next request.
    pub async fn recv(&mut self) {
        #[cfg(unix)]
        self.0.recv().await;
        #[cfg(windows)]
        std::future::pending().await
    }
}
