//! Looks for a better match at the end of a match.

use super::LazyEncoder;
use crate::bits::BitWriter;
use crate::encoder::bytes::match_length;
use crate::encoder::chain_search::ChainMatch;
use crate::encoder::symbols::{MAX_DISTANCE, MAX_LENGTH};

/// The maximum number of bytes by which a better match may begin later.
const SKIPPED: usize = 2;

impl LazyEncoder {
    /// Replaces the match at `index` − 1 by a longer one if there is one. The longer match is found
    /// by the hash of the last two bytes of the first match and the two bytes after it.
    pub(super) fn improve_whole(
        &self,
        found: &mut ChainMatch,
        lookahead: usize,
        insert_end: usize,
    ) {
        let start = self.index - 1;
        let end = start + found.length;
        if end + 2 >= insert_end {
            return;
        }
        let first = self.index.saturating_sub(MAX_DISTANCE);
        let source = self.chains.last_up_to(self.index, end - 2);
        let Some(source) = source.and_then(|last| (last + 2).checked_sub(found.length)) else {
            return;
        };
        if source > first {
            let limit = lookahead.min(MAX_LENGTH);
            let length = match_length(&self.window[..], source, start, limit);
            if length > found.length {
                *found = ChainMatch {
                    length,
                    distance: start - source,
                };
            }
        }
    }

    /// Replaces the match at `index` − 1 by a longer one if there is one. The longer match is found
    /// by the hash of the bytes after the first match. It may begin up to two bytes later; the
    /// bytes before it are then literals.
    pub(super) fn improve_skipping(
        &mut self,
        found: &mut ChainMatch,
        lookahead: usize,
        insert_end: usize,
        is_flush: bool,
        out: &mut BitWriter,
    ) {
        let start = self.index - 1;
        if found.length >= MAX_LENGTH - SKIPPED || start + found.length >= insert_end {
            return;
        }
        let first = self.index.saturating_sub(MAX_DISTANCE);
        let source = self.chains.last_up_to(self.index, start + found.length);
        let Some(source) = source.and_then(|last| last.checked_sub(found.length)) else {
            return;
        };
        if start - source == found.distance || source <= first + SKIPPED {
            return;
        }
        let limit = lookahead.min(MAX_LENGTH + SKIPPED) - SKIPPED;
        let length = match_length(&self.window[..], source + SKIPPED, start + SKIPPED, limit);
        if length <= found.length {
            return;
        }
        *found = ChainMatch {
            length,
            distance: start - source,
        };
        for offset in (0..SKIPPED).rev() {
            if found.length < MAX_LENGTH
                && self.window[start + offset] == self.window[source + offset]
            {
                found.length += 1;
                continue;
            }
            for _ in 0..=offset {
                self.push_literal(is_flush, out);
                self.index += 1;
            }
            break;
        }
    }
}
