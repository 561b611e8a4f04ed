//! The two entry points: scan a text for references, and rewrite those that are known.

use crate::index::ReferenceIndex;
use crate::inventory::Inventory;
use crate::rules::RULES;
use crate::scan_result::{RewriteOptions, ScanResult, ScanSettings, TextSyntax};
use crate::text::ShellVariables;
use crate::walk::{Collects, DocumentScan, ReferenceScanner};
use landfall_model::Limits;
use std::path::Path;

/// A rewritten text, and the references that were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewriteResult {
    /// The new text; the old one if nothing changed.
    pub text: String,
    /// The references in the old text that concern locked items.
    pub scan: ScanResult,
}

/// Finds every reference in `text`, known or not: those that [`rewrite`] changes or leaves, and all
/// other values at positions that require an image.
pub fn scan(text: &str, syntax: TextSyntax, index: &ReferenceIndex) -> ScanResult {
    run(text, syntax, index, RewriteOptions::default(), true)
}

/// Rewrites each known reference in `text`, unless the edit would also change something else.
pub fn rewrite(
    text: &str,
    syntax: TextSyntax,
    index: &ReferenceIndex,
    options: RewriteOptions,
) -> RewriteResult {
    let scan = run(text, syntax, index, options, false);
    RewriteResult {
        text: scan.apply(text),
        scan,
    }
}

fn run(
    text: &str,
    syntax: TextSyntax,
    index: &ReferenceIndex,
    options: RewriteOptions,
    report_unknown: bool,
) -> ScanResult {
    let settings = ScanSettings {
        variables: &ShellVariables::of(text),
        index,
        options,
        report_unknown,
        limits: Limits::default(),
        inventory: None,
        file: None,
    };
    let scanner = ReferenceScanner {
        settings,
        rules: &RULES,
    };
    scanner
        .scan(text, syntax, 0)
        .with_lines(text)
        .without_secret_literals()
}

/// Finds the images and git repositories that the documents of `text` name, whether the lock
/// contains them or not, and with `occurrences` every reference that [`scan`] finds. The second
/// value is `None` if `text` is not YAML. `file` is the name of the file.
pub(crate) fn scan_documents(
    file: &Path,
    text: &str,
    inventory: &Inventory<'_>,
    occurrences: bool,
) -> (ScanResult, Option<DocumentScan>) {
    let settings = ScanSettings {
        variables: &ShellVariables::of(text),
        index: inventory.index(),
        options: RewriteOptions::default(),
        report_unknown: true,
        limits: Limits::default(),
        inventory: Some(inventory),
        file: Some(file),
    };
    let scanner = ReferenceScanner {
        settings,
        rules: &RULES,
    };
    let collects = Collects {
        occurrences,
        candidates: true,
    };
    let (scan, documents) = scanner.read(text, 0, collects);
    let scan = scan.with_lines(text).without_secret_literals();
    (scan, documents)
}
