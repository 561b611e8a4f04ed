//! Decodes the tokens of a block.

use super::{COPIED_BYTES, DecodedToken, Inflater};
use crate::bits::BitReader;
use crate::error::DeflateError;
use crate::symbols::{DISTANCES, END_OF_BLOCK, FIRST_LENGTH_SYMBOL, LENGTHS, LONGEST_MATCH};
use std::io::Read;

impl Inflater {
    /// Reads the tokens whose bits are in memory. Stops when `buffer` has `end` bytes, or before
    /// the end of the block or an invalid token.
    fn read_buffered_tokens<R: Read, const RECORD: bool>(
        &mut self,
        input: &mut BitReader<R>,
        end: usize,
    ) {
        let mut bulk = input.bulk();
        if !bulk.refill() {
            return;
        }
        let mut at = self.buffer.len();
        self.buffer.resize(end + LONGEST_MATCH + COPIED_BYTES, 0);
        let buffer = &mut self.buffer[..];
        let mut count = 0;
        while at < end && bulk.refill() {
            // a token takes at most 48 bits
            let bits = bulk.peek();
            let entry = self.literals.decode(bits);
            let symbol = usize::from(entry.value);
            let mut taken = u32::from(entry.bits);
            if taken == 0 {
                break;
            }
            if symbol < END_OF_BLOCK {
                bulk.consume(taken);
                buffer[at] = symbol as u8;
                at += 1;
                count += 1;
                if RECORD {
                    self.tokens.push(DecodedToken::literal(symbol as u8));
                }
                continue;
            }
            let index = symbol.wrapping_sub(FIRST_LENGTH_SYMBOL);
            let Some(range) = LENGTHS.get(index) else {
                break;
            };
            let extra = bits >> taken & ((1 << range.extra) - 1);
            let length = usize::from(range.base) + extra as usize;
            taken += u32::from(range.extra);
            let entry = self.distances.decode(bits >> taken);
            taken += u32::from(entry.bits);
            let Some(range) = DISTANCES.get(usize::from(entry.value)) else {
                break;
            };
            let extra = bits >> taken & ((1 << range.extra) - 1);
            let distance = usize::from(range.base) + extra as usize;
            taken += u32::from(range.extra);
            if entry.bits == 0 || distance > at {
                break;
            }
            bulk.consume(taken);
            copy_match(buffer, at, length, distance);
            at += length;
            count += 1;
            if RECORD {
                self.tokens.push(decoded_match(symbol, length, distance));
            }
        }
        bulk.finish();
        self.buffer.truncate(at);
        self.token_count += count;
    }

    /// Reads tokens up to the end of the block, or until `buffer` has `end` bytes.
    pub(super) fn read_tokens<R: Read, const RECORD: bool>(
        &mut self,
        input: &mut BitReader<R>,
        end: usize,
    ) -> Result<(), DeflateError> {
        while self.buffer.len() < end {
            self.read_buffered_tokens::<R, RECORD>(input, end);
            if self.buffer.len() >= end {
                break;
            }
            // the next token is at the end of the bytes in memory, ends the block, or is invalid
            input.refill()?;
            let entry = self.literals.decode(input.peek());
            if entry.bits == 0 {
                return Err(input.error("a code of a literal or length is invalid"));
            }
            input.consume(u32::from(entry.bits))?;
            let symbol = usize::from(entry.value);
            if symbol < END_OF_BLOCK {
                self.buffer.push(symbol as u8);
                if RECORD {
                    self.tokens.push(DecodedToken::literal(symbol as u8));
                }
                self.token_count += 1;
                continue;
            }
            if symbol == END_OF_BLOCK {
                self.end_block(input);
                return Ok(());
            }
            let Some(range) = LENGTHS.get(symbol - FIRST_LENGTH_SYMBOL) else {
                return Err(input.error("a length symbol is invalid"));
            };
            let extra = input.take(u32::from(range.extra))?;
            let length = usize::from(range.base) + extra as usize;
            let entry = self.distances.decode(input.peek());
            if entry.bits == 0 {
                return Err(input.error("a code of a distance is invalid"));
            }
            input.consume(u32::from(entry.bits))?;
            let Some(range) = DISTANCES.get(usize::from(entry.value)) else {
                return Err(input.error("a distance symbol is invalid"));
            };
            let extra = input.take(u32::from(range.extra))?;
            let distance = usize::from(range.base) + extra as usize;
            if distance > self.buffer.len() {
                return Err(input.error("a distance points before the beginning of the stream"));
            }
            let at = self.buffer.len();
            self.buffer.resize(at + length + COPIED_BYTES, 0);
            copy_match(&mut self.buffer, at, length, distance);
            self.buffer.truncate(at + length);
            if RECORD {
                self.tokens.push(decoded_match(symbol, length, distance));
            }
            self.token_count += 1;
        }
        Ok(())
    }
}

/// The token of a match whose length has this symbol.
fn decoded_match(symbol: usize, length: usize, distance: usize) -> DecodedToken {
    if length == LONGEST_MATCH && symbol != FIRST_LENGTH_SYMBOL + 28 {
        DecodedToken::matched_in_long_form(distance)
    } else {
        DecodedToken::matched(length, distance)
    }
}

/// Writes a match at `at`: a copy of the `length` bytes that begin `distance` bytes earlier and may
/// overlap with the copy. Fewer than [`COPIED_BYTES`] bytes after the copy are overwritten.
#[inline]
fn copy_match(buffer: &mut [u8], at: usize, length: usize, distance: usize) {
    let from = at - distance;
    if distance >= COPIED_BYTES {
        for step in (0..length).step_by(COPIED_BYTES) {
            let mut bytes = [0; COPIED_BYTES];
            bytes.copy_from_slice(&buffer[from + step..from + step + COPIED_BYTES]);
            buffer[at + step..at + step + COPIED_BYTES].copy_from_slice(&bytes);
        }
    } else if distance == 1 {
        let byte = buffer[from];
        buffer[at..at + length].fill(byte);
    } else {
        for step in 0..length {
            buffer[at + step] = buffer[from + step];
        }
    }
}
