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

    /// The numbers for the receipts of a push of the bundle `pushed`.
    pub(crate) fn after(&self, pushed: Option<&Serial>) -> SeriesNumbers {
        let last = self.last.iter();
        let before: BTreeMap<String, u64> = last
            .map(|(series, (number, _))| (series.clone(), *number))
            .collect();
        let mut after = before.clone();
        after.extend(pushed.map(|serial| (serial.series.clone(), serial.number)));
        SeriesNumbers { before, after }
    }
}

/// The number of the last bundle of each series, before and after a push.
#[derive(Debug)]
pub(crate) struct SeriesNumbers {
    before: BTreeMap<String, u64>,
    after: BTreeMap<String, u64>,
}

impl SeriesNumbers {
    /// The numbers for a receipt that has the numbers `present` at the end of the push. Another
    /// push may have raised them meanwhile; without its numbers, older bundles would be accepted.
    pub(crate) fn merged_with(&self, present: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
        let mut merged = self.after.clone();
        for (series, number) in present {
            let before = self.before.get(&series);
            // a number that this push has lowered on purpose is not raised again
            if before.is_none_or(|before| number > *before) {
                let last = merged.entry(series).or_insert(number);
                *last = number.max(*last);
            }
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers<const N: usize>(numbers: [(&str, u64); N]) -> BTreeMap<String, u64> {
        numbers
            .map(|(series, number)| (series.to_owned(), number))
            .into()
    }

    #[test]
    fn a_receipt_keeps_the_numbers_of_a_push_that_ended_meanwhile() {
        let series = SeriesNumbers {
            before: numbers([("nodes", 6), ("lowered", 9), ("old", 1)]),
            after: numbers([("nodes", 7), ("lowered", 5), ("old", 1)]),
        };
        let unchanged = numbers([("nodes", 6), ("lowered", 9), ("old", 1)]);
        assert_eq!(series.merged_with(unchanged), series.after);
        assert_eq!(series.merged_with(BTreeMap::new()), series.after);
        let raised = numbers([("nodes", 8), ("lowered", 9), ("new", 3)]);
        assert_eq!(
            series.merged_with(raised),
            numbers([("nodes", 8), ("lowered", 5), ("old", 1), ("new", 3)])
        );
    }
}
