//! The two verbs: scan a text for references, and rewrite those that are known.

use super::index::ReferenceIndex;
use super::options::Options;
use super::scan_result::ScanResult;
use super::scanner::Scanner;
use super::settings::Settings;
use super::shapes::SHAPES;
use super::syntax::Syntax;
use super::walk;
use landfall_model::Limits;

/// A text after rewriting, and what was found in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The new text; the old one where nothing was changed.
    pub text: String,
    /// The references in the old text that concern something locked.
    pub scan: ScanResult,
}

/// Every reference in `text`, known or not: what [`rewrite`] changes and leaves, and everything
/// else that stands where an image does.
pub fn scan(text: &str, syntax: Syntax, index: &ReferenceIndex) -> ScanResult {
    run(text, syntax, index, Options::default(), true)
}

/// Rewrites every reference in `text` that is known. What cannot be changed without changing more
/// is left.
pub fn rewrite(text: &str, syntax: Syntax, index: &ReferenceIndex, options: Options) -> Rewritten {
    let scan = run(text, syntax, index, options, false);
    Rewritten {
        text: scan.apply(text),
        scan,
    }
}

fn run(
    text: &str,
    syntax: Syntax,
    index: &ReferenceIndex,
    options: Options,
    report_unknown: bool,
) -> ScanResult {
    let settings = Settings {
        index,
        options,
        report_unknown,
        limits: Limits::default(),
    };
    let scanner = Scanner {
        settings,
        read_document: |scanner, text, depth| walk::read(scanner, SHAPES, text, depth),
    };
    scanner
        .scan(text, syntax, 0)
        .with_lines(text)
        .without_literals()
}
