//! The flags that every verb takes.

use super::output_file::written_path;
use crate::cli::shared::progress::ProgressMode;
use clap::{ArgAction, Args, ValueEnum};
use landfall_model::config::is_host;
use std::path::PathBuf;

#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalFlags {
    /// The store: a folder, or an object store as `s3://BUCKET/PREFIX`, `gs://…` or `az://…`
    /// [default: landfall/store in the user's cache folder]
    #[arg(long, global = true, env = "LANDFALL_STORE", value_name = "DIR|URL")]
    pub store: Option<PathBuf>,
    /// The site file, with the registry, destination paths, proxy and upstreams
    #[arg(long, global = true, env = "LANDFALL_SITE", value_name = "FILE")]
    pub site: Option<PathBuf>,
    /// Use plain HTTP for this host (may be repeated)
    #[arg(long, global = true, value_name = "HOST[:PORT]", value_parser = plain_host)]
    pub plain_http: Vec<String>,
    /// Number of concurrent transfers
    #[arg(long, global = true, value_name = "N", default_value_t = 12, value_parser = jobs)]
    pub jobs: usize,
    /// Longest wait that a server may request, as in 90s, 15m or 2h
    #[arg(long, global = true, value_name = "TIME", default_value = "15m", value_parser = seconds)]
    pub max_wait: u64,
    /// Timeout for the first byte of a response [default: 2m, or 10m through a proxy]
    #[arg(long, global = true, value_name = "TIME", value_parser = nonzero_seconds)]
    pub first_byte: Option<u64>,
    /// Timeout for the next byte of a transfer
    #[arg(long, global = true, value_name = "TIME", default_value = "60s",
        value_parser = nonzero_seconds)]
    pub idle: u64,
    /// How to show progress on stderr
    #[arg(long, global = true, value_enum, value_name = "MODE", default_value_t)]
    pub progress: ProgressMode,
    /// The format of stdout
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        default_value_t
    )]
    pub output: OutputMode,
    /// Also write a report to this file: HTML if its name ends in .html or .htm, else JSON
    #[arg(long, global = true, value_name = "FILE", value_parser = written_path())]
    pub report: Option<PathBuf>,
    /// The evidence log; each command that changes or approves content appends a record to it (see
    /// `landfall help evidence`)
    /// [default: log of the site]
    #[arg(long, global = true, env = "LANDFALL_LOG_FILE", value_name = "FILE",
        value_parser = written_path())]
    pub log: Option<PathBuf>,
    /// Log requests, retries and reused blobs; -vv also logs waits and cache decisions (see also
    /// `LANDFALL_LOG`)
    #[arg(short = 'v', long = "verbose", global = true, action = ArgAction::Count)]
    pub verbose: u8,
}

/// The format of stdout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputMode {
    /// Text for people
    #[default]
    Text,
    /// One JSON document
    Json,
    /// Markdown, as for a pull request
    Markdown,
    /// Text with GitHub annotations; the Markdown goes to the summary of the step
    Github,
}

/// Parses a host in the form in which hosts are compared. A URL with the scheme http means its
/// host.
fn plain_host(text: &str) -> Result<String, String> {
    let text = text.to_ascii_lowercase();
    let host = text.strip_prefix("http://").unwrap_or(&text);
    let host = host.trim_end_matches('/');
    if is_host(host) {
        Ok(host.to_owned())
    } else {
        Err("write HOST or HOST:PORT, as in 172.20.0.2:5000".into())
    }
}

fn jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(jobs @ 1..=256) => Ok(jobs),
        _ => Err("must be a number from 1 to 256".into()),
    }
}

/// Parses a number above 0.
pub(crate) fn nonzero_count(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| "must be a number above 0".into())
}

/// Parses a duration of at least one second. Returns seconds.
pub(crate) fn nonzero_seconds(text: &str) -> Result<u64, String> {
    match seconds(text)? {
        0 => Err("must be at least 1s".into()),
        seconds => Ok(seconds),
    }
}

/// Parses a duration such as `90s` or `2h`. Returns seconds.
fn seconds(text: &str) -> Result<u64, String> {
    let (number, factor) = match text.as_bytes().last() {
        Some(b's') => (&text[..text.len() - 1], 1),
        Some(b'm') => (&text[..text.len() - 1], 60),
        Some(b'h') => (&text[..text.len() - 1], 3600),
        Some(b'd') => (&text[..text.len() - 1], 86400),
        // Without a unit, a number is seconds; anything else fails below.
        _ => (text, 1),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "write a number with s, m, h or d, as in 15m".to_owned())?;
    number
        .checked_mul(factor)
        .ok_or_else(|| "the duration is too long".into())
}
