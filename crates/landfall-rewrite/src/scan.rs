//! The two entry points: scan a text for references, and rewrite those that are known.

use super::index::ReferenceIndex;
use super::options::RewriteOptions;
use super::scan_result::ScanResult;
use super::scanner::ReferenceScanner;
use super::settings::ScanSettings;
use super::shapes::SHAPES;
use super::syntax::TextSyntax;
use super::walk;
use landfall_model::Limits;

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
        index,
        options,
        report_unknown,
        limits: Limits::default(),
    };
    let scanner = ReferenceScanner {
        settings,
        read_document: |scanner, text, depth| walk::read(scanner, SHAPES, text, depth),
    };
    scanner
        .scan(text, syntax, 0)
        .with_lines(text)
        .without_secret_literals()
}
