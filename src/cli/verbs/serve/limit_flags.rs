//! The flags of `landfall serve` that limit clients.

use crate::cli::shared::nonzero_seconds;
use clap::Args;
use landfall_model::Limits;
use std::time::Duration;

/// The flags that limit clients.
#[derive(Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct LimitFlags {
    /// Maximum number of connections; a further connection replaces the one that is idle longest
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections,
        value_parser = count)]
    max_connections: usize,
    /// Maximum number of concurrent requests; further requests wait up to 30 s
    #[arg(long, value_name = "N", default_value_t = Limits::default().requests,
        value_parser = count)]
    pub(super) max_requests: usize,
    /// Maximum number of concurrent uploads
    #[arg(long, value_name = "N", default_value_t = Limits::default().uploads,
        value_parser = count)]
    max_uploads: usize,
    /// Timeout for idle connections
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = nonzero_seconds)]
    keep_alive: u64,
    /// Timeout for a client that stalls during a response or an upload
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = nonzero_seconds)]
    stall: u64,
    /// How long to serve after SIGTERM, while /readyz returns 503 and each connection is closed
    /// after its response
    #[arg(long, value_name = "TIME", value_parser = nonzero_seconds)]
    pub(super) drain: Option<u64>,
    /// Timeout for unfinished uploads, which are then deleted
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = nonzero_seconds)]
    upload_expiry: u64,
}

fn count(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| "must be a number above 0".into())
}

impl LimitFlags {
    /// Returns `limits` with the values of the flags.
    pub(super) fn limits(&self, limits: Limits) -> Limits {
        Limits {
            connections: self.max_connections,
            requests: self.max_requests,
            uploads: self.max_uploads,
            keep_alive: Duration::from_secs(self.keep_alive),
            stall: Duration::from_secs(self.stall),
            upload_expiry: Duration::from_secs(self.upload_expiry),
            ..limits
        }
    }
}
