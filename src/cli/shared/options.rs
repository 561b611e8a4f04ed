//! The flags that every verb takes.

use super::progress::ProgressMode;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Flags that every verb takes.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Global {
    /// The store: a folder, or an object store as `s3://BUCKET/PREFIX`, `gs://…` or `az://…`
    /// [default: landfall/store in the user's cache folder]
    #[arg(long, global = true, env = "LANDFALL_STORE", value_name = "DIR|URL")]
    pub store: Option<PathBuf>,
    /// The site file: registry, destination paths, proxy, upstreams
    #[arg(long, global = true, env = "LANDFALL_SITE", value_name = "FILE")]
    pub site: Option<PathBuf>,
    /// Speak plain http with this host (may be repeated)
    #[arg(long, global = true, value_name = "HOST[:PORT]")]
    pub plain_http: Vec<String>,
    /// Transfers in flight
    #[arg(long, global = true, value_name = "N", default_value_t = 12, value_parser = jobs)]
    pub jobs: usize,
    /// Longest wait that a server may ask for, as in 90s, 15m or 2h
    #[arg(long, global = true, value_name = "TIME", default_value = "15m", value_parser = seconds)]
    pub max_wait: u64,
    /// Longest wait for the first byte of an answer [default: 2m, or 10m through a proxy]
    #[arg(long, global = true, value_name = "TIME", value_parser = patience)]
    pub first_byte: Option<u64>,
    /// Longest wait for the next byte in the middle of a transfer
    #[arg(long, global = true, value_name = "TIME", default_value = "60s", value_parser = patience)]
    pub idle: u64,
    /// How progress is shown on stderr
    #[arg(long, global = true, value_enum, default_value_t)]
    pub progress: ProgressMode,
    /// What stdout carries
    #[arg(long, global = true, value_enum, default_value_t)]
    pub output: OutputMode,
    /// Write a report to this file too: a page where its name ends in .html, else JSON
    #[arg(long, global = true, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// The choice of `--output`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputMode {
    /// Text for people.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// Markdown, as for a pull request.
    Markdown,
    /// Text with GitHub's annotations; the Markdown goes to the summary of the step.
    Github,
}

fn jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(jobs @ 1..=256) => Ok(jobs),
        _ => Err("a number from 1 to 256 is needed".into()),
    }
}

/// A time of at least a second, in seconds.
pub(crate) fn patience(text: &str) -> Result<u64, String> {
    match seconds(text)? {
        0 => Err("at least 1s is needed".into()),
        seconds => Ok(seconds),
    }
}

fn seconds(text: &str) -> Result<u64, String> {
    let (number, factor) = match text.as_bytes().last() {
        Some(b's') => (&text[..text.len() - 1], 1),
        Some(b'm') => (&text[..text.len() - 1], 60),
        Some(b'h') => (&text[..text.len() - 1], 3600),
        Some(b'd') => (&text[..text.len() - 1], 86400),
        _ => (text, 1),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "write a number with s, m, h or d, as in 15m".to_owned())?;
    number
        .checked_mul(factor)
        .ok_or_else(|| "that is too long".into())
}
