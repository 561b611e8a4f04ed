//! The bundles that a site received before, from its receipts: an older bundle of a series is
//! refused.

use crate::cli::shared::{CliError, Context, input_file};
use landfall_bundle::{Bundle, Serial};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The last bundle of each series.
#[derive(Debug, Clone, Default)]
pub(crate) struct SeriesHistory {
    /// For each series, the number of its last bundle and the receipt that records it.
    last: BTreeMap<String, (u64, PathBuf)>,
    allow_older: bool,
}

impl SeriesHistory {
    /// Reads the receipt of the site, and the one that this push replaces, if they exist. With
    /// `allow_older`, every bundle is accepted.
    pub(crate) fn load(
        context: &Context,
        receipt: Option<&Path>,
        allow_older: bool,
    ) -> Result<SeriesHistory, CliError> {
        let mut history = SeriesHistory {
            allow_older,
            ..SeriesHistory::default()
        };
        for path in receipt
            .map(Path::to_path_buf)
            .into_iter()
            .chain(context.site_receipt())
        {
            // If the receipt cannot be looked up, reading it below reports the cause.
            if matches!(path.try_exists(), Ok(false)) {
                continue;
            }
            for (series, number) in input_file::receipt(&path)?.series {
                let last = history
                    .last
                    .entry(series)
                    .or_insert_with(|| (number, path.clone()));
                if last.0 < number {
                    *last = (number, path.clone());
                }
            }
        }
        Ok(history)
    }

    /// Refuses a bundle that is older than the last one of its series.
    pub(crate) fn check(&self, bundle: &Bundle, path: &Path) -> Result<(), CliError> {
        let Some(Serial { series, number }) = bundle.serial().filter(|_| !self.allow_older) else {
            return Ok(());
        };
        match self.last.get(&series) {
            Some((last, receipt)) if *last > number => Err(CliError::refused(format!(
                "{} is number {number} of {series}, but number {last} was received before (see {})",
                path.display(),
                receipt.display()
            ))
            .with_help("add --allow-older to go back")),
            _ => Ok(()),
        }
    }

    /// The last number of each series, for the receipt of a push of the bundle `pushed`.
    pub(crate) fn after(&self, pushed: Option<&Serial>) -> BTreeMap<String, u64> {
        let mut all: BTreeMap<String, u64> = self
            .last
            .iter()
            .map(|(series, (number, _))| (series.clone(), *number))
            .collect();
        all.extend(pushed.map(|serial| (serial.series.clone(), serial.number)));
        all
    }
}
