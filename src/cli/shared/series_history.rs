//! What a site took before, by its receipts: an older bundle of a series is refused.

use crate::cli::shared::{CliError, Context, input_file};
use landfall_bundle::{Bundle, Serial};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The last bundle of each series that was taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct SeriesHistory {
    /// The number, and the receipt that says so.
    last: BTreeMap<String, (u64, PathBuf)>,
    allow_older: bool,
}

impl SeriesHistory {
    /// What the site's receipt says and the one that is to be written again, as far as they are
    /// there. With `allow_older` every bundle is taken.
    pub(crate) fn load(
        context: &Context,
        receipt: Option<&Path>,
        allow_older: bool,
    ) -> Result<SeriesHistory, CliError> {
        let mut taken = SeriesHistory {
            allow_older,
            ..SeriesHistory::default()
        };
        for path in receipt
            .map(Path::to_path_buf)
            .into_iter()
            .chain(context.site_receipt())
        {
            if matches!(path.try_exists(), Ok(false)) {
                continue;
            }
            for (series, number) in input_file::receipt(&path)?.series {
                let last = taken
                    .last
                    .entry(series)
                    .or_insert_with(|| (number, path.clone()));
                if last.0 < number {
                    *last = (number, path.clone());
                }
            }
        }
        Ok(taken)
    }

    /// Refuses a bundle that is older than the last one of its series.
    pub(crate) fn check(&self, bundle: &Bundle, path: &Path) -> Result<(), CliError> {
        let Some(Serial { series, number }) = bundle.serial().filter(|_| !self.allow_older) else {
            return Ok(());
        };
        match self.last.get(&series) {
            Some((last, receipt)) if *last > number => Err(CliError::refused(format!(
                "{} is number {number} of {series}, and number {last} was taken before, as {} says; to go back, add \
                 --allow-older",
                path.display(),
                receipt.display()
            ))),
            _ => Ok(()),
        }
    }

    /// The numbers for a new receipt, after this bundle was taken.
    pub(crate) fn after(&self, taken: Option<&Serial>) -> BTreeMap<String, u64> {
        let mut all: BTreeMap<String, u64> = self
            .last
            .iter()
            .map(|(series, (number, _))| (series.clone(), *number))
            .collect();
        all.extend(taken.map(|serial| (serial.series.clone(), serial.number)));
        all
    }
}
