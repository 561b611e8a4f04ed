//! Moves input into the window and the dictionary.

use super::{Dialect, Engine, InputEnd};
use crate::encoder::symbols::{MAX_LENGTH, MIN_LENGTH};
use crate::encoder::zlib::effort::Parsing;
use crate::encoder::zlib::window::WANTED_AHEAD;

impl<D: Dialect> Engine<D> {
    /// Copies input into the window until `wanted` bytes are ahead or the input is used up.
    fn fill(&mut self, wanted: usize, input: &mut &[u8], end: InputEnd) {
        loop {
            let moves = match end {
                // the window moves once it has no room for `wanted` bytes: if zlib gets the whole
                // input at once, it does not check earlier
                InputEnd::Open => 2 * self.window.size() - self.position < wanted,
                InputEnd::Reached => self.is_movable() && !self.end_marked,
            };
            if moves {
                self.slide();
            }
            if input.is_empty() {
                break;
            }
            let count = self.window.append(self.position + self.ahead, input);
            *input = &input[count..];
            self.ahead += count;
            self.enter_input();
            if self.ahead >= wanted {
                break;
            }
        }
        if D::READS_PAST_END && end == InputEnd::Reached && !self.end_marked {
            let end = self.position + self.ahead;
            self.window.clear(end, MIN_LENGTH - 1);
            self.index.link_up_to(self.window.bytes(), end + MAX_LENGTH);
            self.end_marked = true;
        }
    }

    /// Whether no match can reach the lower half of the window any more.
    fn is_movable(&self) -> bool {
        self.position >= 2 * self.window.size() - WANTED_AHEAD
    }

    fn slide(&mut self) {
        let size = self.window.size();
        self.window.slide();
        match self.effort.parsing {
            Parsing::Greedy => self.chains.slide(),
            Parsing::Lazy => self.index.slide(),
            Parsing::Runs | Parsing::Literals => {}
        }
        self.position -= size;
        self.block_start -= size as isize;
        // if there is no match, this position can have any value
        self.latest.position = self.latest.position.wrapping_sub(size);
        self.pending_inserts = self.pending_inserts.min(self.position);
    }

    /// Enters positions into the dictionary if all bytes that they need have arrived.
    fn enter_input(&mut self) {
        match self.effort.parsing {
            Parsing::Greedy => {
                while self.pending_inserts > 0 && self.ahead + self.pending_inserts >= MIN_LENGTH {
                    let at = self.position - self.pending_inserts;
                    self.chains.insert(self.window.bytes(), at);
                    self.pending_inserts -= 1;
                }
            }
            Parsing::Lazy => {
                let end = self.position + self.ahead;
                self.index.link_up_to(self.window.bytes(), end);
            }
            Parsing::Runs | Parsing::Literals => {}
        }
    }

    pub(super) fn insert_range(&mut self, from: usize, to: usize) {
        for at in from..to {
            self.chains.insert(self.window.bytes(), at);
        }
    }

    /// Reads input until `wanted` bytes are ahead, or the input is used up. Returns whether the
    /// position can be searched.
    #[inline]
    pub(super) fn prepare(&mut self, wanted: usize, input: &mut &[u8], end: InputEnd) -> bool {
        if self.ahead >= wanted {
            return true;
        }
        self.fill(wanted, input, end);
        self.ahead >= wanted || (end == InputEnd::Reached && self.ahead > 0)
    }
}
