//! Rewrites the repository in sources of Kustomize and Terraform, and keeps the folder and version.

use super::word::begins;
use crate::edit::SpanEdit;
use crate::git_source::{GitSource, GitSourceForm};
use crate::index::{UrlLookup, UrlPattern};
use crate::occurrence::{Occurrence, ReferenceMeaning};
use crate::role::ReferenceRole;
use crate::settings::ScanSettings;
use std::ops::Range;

/// The occurrence of a locked repository at the beginning of the URL at `span` of `text`. `None` if
/// nothing follows the repository: it is then a URL like any other.
pub(super) fn in_url(
    settings: &ScanSettings<'_>,
    text: &str,
    span: Range<usize>,
) -> Option<Occurrence> {
    let source = GitSource::parse(&text[span.clone()])?;
    let has_more = source.repository.end < span.len();
    has_more.then(|| occurrence(settings, text, span, &source))?
}

/// The occurrence of a locked repository in `github.com/…`, without a scheme, at `span` of `text`.
/// `None` if neither a folder nor a version follows: the text may then be anything.
pub(super) fn without_scheme(
    settings: &ScanSettings<'_>,
    text: &str,
    span: Range<usize>,
) -> Option<Occurrence> {
    // most words are something else
    if !text[span.clone()].starts_with("github.com/") {
        return None;
    }
    let source = GitSource::parse(&text[span.clone()])?;
    let is_source = source.repository.end < span.len() || text[span.end..].starts_with("?ref=");
    (is_source && begins(&text[..span.start])).then(|| occurrence(settings, text, span, &source))?
}

fn occurrence(
    settings: &ScanSettings<'_>,
    text: &str,
    span: Range<usize>,
    source: &GitSource<'_>,
) -> Option<Occurrence> {
    let edited = span.start + source.repository.start..span.start + source.repository.end;
    // documents may leave `.git` out
    for url in [source.url.clone(), format!("{}.git", source.url)] {
        let whole = UrlPattern {
            head: &url,
            rest: Vec::new(),
        };
        let new = |meaning| {
            let written = &text[span.clone()];
            Occurrence::new(span.start, written, ReferenceRole::Url, meaning)
        };
        match settings.index.lookup_url(&whole) {
            UrlLookup::Known { item, to, .. } => {
                // without `git::`, Terraform would download an archive
                let scheme = match source.form {
                    GitSourceForm::GitHub => "git::",
                    _ => "",
                };
                let bytes = format!("{scheme}{to}");
                let meaning = ReferenceMeaning::Known {
                    item,
                    to: format!("{bytes}{}", &text[edited.end..span.end]),
                    reaches: Vec::new(),
                };
                return Some(Occurrence {
                    edits: vec![SpanEdit {
                        span: edited,
                        bytes,
                    }],
                    ..new(meaning)
                });
            }
            UrlLookup::Settled(Some(item)) => {
                return Some(new(ReferenceMeaning::Settled { item: Some(item) }));
            }
            UrlLookup::Left(why) => return Some(new(ReferenceMeaning::left(why))),
            UrlLookup::Settled(None) | UrlLookup::Unknown => {}
        }
    }
    None
}
