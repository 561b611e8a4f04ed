//! Finds references as exact words of a text without structure. A word is a reference only if
//! nothing before or after it could belong to the reference.

use super::comments::comments;
use super::git_source_url;
use super::joined_text::JoinedText;
use super::meaning::decide;
use super::text_marks::TextMarks;
use super::url;
use super::word::{ReferenceWord, WordIter};
use crate::occurrence::Occurrence;
use crate::role::ReferenceRole;
use crate::settings::ScanSettings;

/// Whether a text has several lines, so that it may have comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextLines {
    /// A text with several lines.
    Many,
    /// One line, such as the value of a scalar.
    One,
}

/// Finds every reference in `text`. `role` is the role of the whole text.
pub(crate) fn scan(
    settings: &ScanSettings<'_>,
    text: &str,
    lines: TextLines,
    role: ReferenceRole,
) -> Vec<Occurrence> {
    let Some(joined) = JoinedText::of(text) else {
        return scan_words(settings, text, lines, role);
    };
    scan_words(settings, joined.text(), lines, role)
        .into_iter()
        .map(|occurrence| joined.restored(occurrence))
        .collect()
}

/// Finds every reference in `text`, whose quoted lines are joined.
fn scan_words(
    settings: &ScanSettings<'_>,
    text: &str,
    lines: TextLines,
    role: ReferenceRole,
) -> Vec<Occurrence> {
    let mut found = Vec::new();
    let comments = match lines {
        TextLines::Many if !settings.options.comments => comments(text),
        _ => Vec::new(),
    };
    let mut marks = TextMarks::of(text);
    let mut words = WordIter { text, at: 0 };
    let mut comment = comments.iter().peekable();
    while let Some(word) = words.next() {
        while comment
            .next_if(|comment| comment.end <= word.start)
            .is_some()
        {}
        if comment
            .peek()
            .is_some_and(|comment| comment.start <= word.start)
        {
            continue;
        }
        let occurrence = match url::at(text, &word, settings.limits.reference_bytes) {
            Some(url) => {
                // a URL with placeholders is longer than its first word
                words.at = words.at.max(url.end);
                url::decide(settings, text, &url)
            }
            None => git_source_url::without_scheme(settings, text, word.clone()).or_else(|| {
                decide(
                    settings,
                    text,
                    &ReferenceWord::of(text, word),
                    role,
                    &mut marks,
                )
            }),
        };
        found.extend(occurrence.map(|mut occurrence| {
            if let Some(why) = marks
                .keeps(occurrence.at)
                .filter(|_| occurrence.is_change())
            {
                occurrence.leave(why);
            }
            occurrence
        }));
    }
    found
}
