//! Diagnostic logs on stderr: `-v`, `-vv` and the environment variable `LANDFALL_LOG`.
//!
//! Only landfall's own crates are logged. The libraries that it uses (hyper, rustls,
//! `object_store`) may write headers and signed URLs into their logs, so they are never enabled.

use super::CliError;
use landfall_model::Failure;
use landfall_model::report::Progress;
use std::io;
use std::sync::Arc;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;

/// The variable that holds log directives, such as `landfall_http=trace,warn`.
const VARIABLE: &str = "LANDFALL_LOG";

/// The crates that a directive may name.
const CRATES: [&str; 14] = [
    "landfall",
    "landfall_bundle",
    "landfall_content",
    "landfall_deflate",
    "landfall_git",
    "landfall_http",
    "landfall_item",
    "landfall_model",
    "landfall_packages",
    "landfall_patch",
    "landfall_render",
    "landfall_rewrite",
    "landfall_serve",
    "landfall_signature",
];

/// Starts logging if `-v` (given `verbose` times) or `LANDFALL_LOG` enables it. Events are written
/// through `progress`, so that they do not break a progress bar.
pub(crate) fn start_logging(verbose: u8, progress: &Arc<dyn Progress>) -> Result<(), CliError> {
    let directives = match std::env::var(VARIABLE) {
        Ok(text) => text,
        Err(std::env::VarError::NotPresent) => String::new(),
        Err(std::env::VarError::NotUnicode(_)) => {
            return Err(CliError::usage(format!("{VARIABLE}: not UTF-8")));
        }
    };
    let targets = log_targets(verbose, &directives)
        .map_err(|error| CliError::usage(format!("{VARIABLE}: {error}")))?;
    // Without a subscriber each event costs one load of an atomic.
    if let Some(targets) = targets {
        let progress = progress.clone();
        let events = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_writer(move || EventLine(progress.clone()));
        let subscriber = tracing_subscriber::registry().with(events).with(targets);
        tracing::subscriber::set_global_default(subscriber)
            .map_err(|error| CliError::usage(format!("cannot start logging: {error}")))?;
    }
    Ok(())
}

/// The crates and modules to log, each with its level; `None` if nothing is to be logged.
///
/// A level without a target applies to all of landfall. `-v` means `info`, and `-vv` means `debug`.
/// If `directives` also contain such a level, the more verbose one applies.
fn log_targets(verbose: u8, directives: &str) -> Result<Option<Targets>, Failure> {
    let mut general = match verbose {
        0 => LevelFilter::OFF,
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    let mut modules = Vec::new();
    for directive in directives.split(',').map(str::trim) {
        if directive.is_empty() {
            continue;
        }
        let (target, level) = match directive.split_once('=') {
            Some((target, level)) => (Some(target.trim()), parse_level(level.trim())?),
            None => match parse_level(directive) {
                Ok(level) => (None, level),
                Err(_) => (Some(directive), LevelFilter::TRACE),
            },
        };
        let Some(target) = target else {
            general = general.max(level);
            continue;
        };
        let name = target.split("::").next().unwrap_or_default();
        if !CRATES.contains(&name) {
            return Err(Failure::usage(format!(
                "'{target}' is neither a level (off, error, warn, info, debug, trace) nor a crate \
                 of landfall ({}); other libraries are not logged, since they may log headers and \
                 signed URLs",
                CRATES.join(", ")
            )));
        }
        modules.push((target.to_owned(), level));
    }
    if modules.is_empty() && general == LevelFilter::OFF {
        return Ok(None);
    }
    // Targets match by prefix: `landfall` covers `landfall_http`, and the longest match wins.
    let targets = Targets::new().with_target(CRATES[0], general);
    Ok(Some(targets.with_targets(modules)))
}

fn parse_level(text: &str) -> Result<LevelFilter, Failure> {
    let refused = || {
        Failure::usage(format!(
            "'{text}' is not a level; write off, error, warn, info, debug or trace"
        ))
    };
    // `LevelFilter` would also accept numbers and the empty string.
    if text.is_empty() || text.bytes().any(|byte| !byte.is_ascii_alphabetic()) {
        return Err(refused());
    }
    text.parse().map_err(|_| refused())
}

/// Writes one event through the progress display: the formatter writes an event with one call.
struct EventLine(Arc<dyn Progress>);

impl io::Write for EventLine {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.0.note(String::from_utf8_lossy(event).trim_end());
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    fn targets(verbose: u8, directives: &str) -> Targets {
        log_targets(verbose, directives).unwrap().unwrap()
    }

    #[test]
    fn flags_and_directives_select_levels() {
        assert_eq!(log_targets(0, ""), Ok(None));
        assert_eq!(log_targets(0, " , off"), Ok(None));
        let info = targets(1, "");
        assert!(info.would_enable("landfall_http::send", &Level::INFO));
        assert!(!info.would_enable("landfall_http::send", &Level::DEBUG));
        assert!(targets(2, "warn").would_enable("landfall::push", &Level::DEBUG));
        let mixed = targets(0, "landfall_http=trace, warn");
        assert!(mixed.would_enable("landfall_http::send", &Level::TRACE));
        assert!(mixed.would_enable("landfall_content::opener", &Level::WARN));
        assert!(!mixed.would_enable("landfall_content::opener", &Level::INFO));
        assert!(
            targets(0, "landfall_http::send").would_enable("landfall_http::send", &Level::TRACE)
        );
    }

    #[test]
    fn libraries_are_never_logged() {
        for target in [
            "hyper::client",
            "object_store",
            "reqwest::connect",
            "rustls",
        ] {
            assert!(
                !targets(2, "trace").would_enable(target, &Level::ERROR),
                "{target}"
            );
        }
        for directives in ["object_store=trace", "debgu", "landfall_htpp=info", "=info"] {
            let refused = log_targets(0, directives).unwrap_err();
            assert!(refused.message.contains("neither a level"), "{refused}");
        }
    }

    #[test]
    fn every_crate_of_the_workspace_can_be_named() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/crates");
        let crates = std::fs::read_dir(folder).unwrap();
        let names = crates.map(|one| one.unwrap().file_name().into_string().unwrap());
        let names = names.map(|name| name.replace('-', "_"));
        // these log nothing: test data, and the calls of the operating system
        let silent = ["landfall_seed", "landfall_os"];
        let names = names.filter(|name| !silent.contains(&name.as_str()));
        let mut names: Vec<String> = names.collect();
        names.sort();
        assert_eq!(CRATES[1..], names);
    }

    #[test]
    fn an_unknown_level_is_refused() {
        for directives in ["landfall_http=loud", "landfall=", "landfall=5"] {
            let refused = log_targets(0, directives).unwrap_err();
            assert!(refused.message.contains("is not a level"), "{refused}");
        }
    }
}
