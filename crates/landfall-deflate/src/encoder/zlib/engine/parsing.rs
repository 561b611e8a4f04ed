//! Cuts input into tokens.

use super::{Dialect, Engine, InputEnd, NO_MATCH};
use crate::bits::BitWriter;
use crate::encoder::symbols::{MAX_LENGTH, MIN_LENGTH, Token};
use crate::encoder::zlib::effort::Parsing;
use crate::encoder::zlib::window::{FARTHEST_OF_SHORTEST, Match, Search, WANTED_AHEAD};

impl<D: Dialect> Engine<D> {
    /// Cuts `input` and the remaining earlier input into tokens. If more input may follow, the last
    /// bytes remain for the next call.
    pub(super) fn run(&mut self, mut input: &[u8], end: InputEnd, out: &mut BitWriter) {
        match self.effort.parsing {
            Parsing::Lazy => self.search_lazily(&mut input, end, out),
            Parsing::Greedy => self.search_greedily(&mut input, end, out),
            Parsing::Runs => self.search_runs(&mut input, end, out),
            Parsing::Literals => self.collect_literals(&mut input, end, out),
        }
    }

    /// The parameters of a search for a match that is longer than `longer_than`. Returns `None` if
    /// there can be no such match. `head` is the head of the position's chain.
    #[inline]
    fn plan_search(&self, head: usize, longer_than: usize) -> Option<Search> {
        let too_far = self.position - head > self.window.size() - WANTED_AHEAD;
        // the position can be this near to the window's end only after the end of the input
        let near_end = self.position > 2 * self.window.size() - WANTED_AHEAD;
        if head == 0 || too_far || near_end || longer_than >= self.ahead {
            return None;
        }
        let patient = longer_than < self.effort.good;
        Some(Search {
            longer_than,
            chain: if patient {
                self.effort.chain
            } else {
                self.effort.chain / 4
            },
            nice: if D::READS_PAST_END {
                self.effort.nice
            } else {
                self.effort.nice.min(self.ahead)
            },
        })
    }

    /// Searches for a match of more than `longer_than` bytes at the position, with lazy matching.
    #[inline]
    fn search_index(&self, longer_than: usize) -> Option<Match> {
        let head = self.index.head(self.position);
        let search = self.plan_search(head, longer_than)?;
        let bytes = self.window.bytes();
        let mut found = self
            .index
            .longest_match(bytes, self.position, head, search)?;
        found.length = found.length.min(self.ahead);
        Some(found)
    }

    /// Enters the position into the chains and searches for a match, without lazy matching.
    #[inline]
    fn search_chain(&mut self) -> Option<Match> {
        if !D::READS_PAST_END && self.ahead < MIN_LENGTH {
            return None;
        }
        let head = self.chains.insert(self.window.bytes(), self.position);
        let search = self.plan_search(head, NO_MATCH)?;
        let bytes = self.window.bytes();
        let mut found = self
            .chains
            .longest_match(bytes, self.position, head, search)?;
        found.length = found.length.min(self.ahead);
        Some(found)
    }

    fn search_lazily(&mut self, input: &mut &[u8], end: InputEnd, out: &mut BitWriter) {
        while self.prepare(WANTED_AHEAD, input, end) {
            let before = self.latest;
            self.latest.length = NO_MATCH;
            if before.length < self.effort.lazy
                && let Some(found) = self.search_index(before.length)
            {
                self.latest = found;
                let far = self.position - found.position > FARTHEST_OF_SHORTEST;
                if (found.length == MIN_LENGTH && far)
                    || found.length <= self.effort.shortest_dropped
                {
                    self.latest.length = NO_MATCH;
                }
            }
            if before.length >= MIN_LENGTH && self.latest.length <= before.length {
                self.push_match_before(before, out);
            } else if self.literal_waits {
                self.push_literal(self.position - 1);
                if self.block_is_full() {
                    self.write_block(false, out);
                }
                self.position += 1;
                self.ahead -= 1;
            } else {
                self.literal_waits = true;
                self.position += 1;
                self.ahead -= 1;
            }
        }
    }

    /// Writes the match that begins at the previous position.
    #[inline]
    fn push_match_before(&mut self, found: Match, out: &mut BitWriter) {
        let start = self.position - 1;
        let distance = start - found.position;
        self.tokens.push(Token::matched(found.length, distance));
        // decided before the position moves past the match
        let full = self.block_is_full();
        self.ahead -= found.length - 1;
        self.position = start + found.length;
        self.literal_waits = false;
        self.latest.length = NO_MATCH;
        if full {
            self.write_block(false, out);
        }
    }

    fn search_greedily(&mut self, input: &mut &[u8], end: InputEnd, out: &mut BitWriter) {
        while self.prepare(WANTED_AHEAD, input, end) {
            let full;
            match self.search_chain() {
                Some(found) if found.length >= MIN_LENGTH => {
                    let distance = self.position - found.position;
                    self.tokens.push(Token::matched(found.length, distance));
                    full = self.block_is_full();
                    self.ahead -= found.length;
                    let after = self.position + found.length;
                    let inserts = found.length <= self.effort.lazy
                        && (D::READS_PAST_END || self.ahead >= MIN_LENGTH);
                    if inserts {
                        self.insert_range(self.position + 1, after);
                    }
                    self.position = after;
                }
                _ => {
                    self.push_literal(self.position);
                    full = self.block_is_full();
                    self.ahead -= 1;
                    self.position += 1;
                }
            }
            if full {
                self.write_block(false, out);
            }
        }
    }

    /// Writes runs of one byte as matches at distance 1, and finds no other matches.
    fn search_runs(&mut self, input: &mut &[u8], end: InputEnd, out: &mut BitWriter) {
        while self.prepare(MAX_LENGTH + 1, input, end) {
            let run = self.window.run_length(self.position).min(self.ahead);
            let taken = if run >= MIN_LENGTH {
                self.tokens.push(Token::matched(run, 1));
                run
            } else {
                self.push_literal(self.position);
                1
            };
            let full = self.block_is_full();
            self.position += taken;
            self.ahead -= taken;
            if full {
                self.write_block(false, out);
            }
        }
    }

    fn collect_literals(&mut self, input: &mut &[u8], end: InputEnd, out: &mut BitWriter) {
        while self.prepare(1, input, end) {
            self.push_literal(self.position);
            let full = self.block_is_full();
            self.position += 1;
            self.ahead -= 1;
            if full {
                self.write_block(false, out);
            }
        }
    }
}
