//! References as exact words of a text that has no readable structure. A word counts if nothing
//! that could belong to a reference stands before or after it.

use super::comments::comments;
use super::meaning::decide;
use super::places::Places;
use super::url;
use super::word::{Word, Words};
use crate::occurrence::Occurrence;
use crate::role::Role;
use crate::settings::Settings;

/// Whether a text has lines, in which comments may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lines {
    /// A text of its own.
    Many,
    /// A word or sentence.
    One,
}

/// Every reference in `text`. `role` is that of the text as a whole.
pub(crate) fn scan(
    settings: &Settings<'_>,
    text: &str,
    lines: Lines,
    role: Role,
) -> Vec<Occurrence> {
    let mut found = Vec::new();
    let comments = match lines {
        Lines::Many if !settings.options.comments => comments(text),
        _ => Vec::new(),
    };
    let places = Places::of(text);
    let mut words = Words { text, at: 0 };
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
                words.at = words.at.max(url.end);
                url::decide(settings, text, &url)
            }
            None => decide(settings, text, &Word::of(text, word), role, &places),
        };
        found.extend(occurrence.map(|mut occurrence| {
            if let Some(why) = places
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
