//! An adaptive binary arithmetic coder.
//!
//! Encoder and decoder keep the bounds of an interval of 64-bit numbers. Each bit selects a part of
//! the interval, in proportion to the probability of the bit. Leading bytes in which both bounds
//! agree are written. After the last bit, one more byte is written. That byte, followed by zeros,
//! selects a number inside of the interval.

use crate::DeflateError;

/// The maximum number of bits over which a probability is averaged.
const MEMORY: u32 = 255;
/// The reciprocals of 1.5, 2.5, … in units of 1 / 65536: the weight with which the n-th bit changes
/// a probability.
const STEPS: [u32; MEMORY as usize + 1] = {
    let mut steps = [0; MEMORY as usize + 1];
    let mut count = 0;
    while count < steps.len() {
        steps[count] = (2 << 16) / (2 * count as u32 + 3);
        count += 1;
    }
    steps
};

/// The probability that a bit is set, learned from the bits before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probability {
    /// The probability of a set bit, in units of 2^-22.
    set: u32,
    /// The number of bits that it was learned from, at most `MEMORY`.
    count: u32,
}

impl Probability {
    /// The initial state: both values are equally likely.
    pub(super) const EVEN: Self = Self {
        set: 1 << 21,
        count: 0,
    };

    /// The probability in units of 2^-16, from 1 to 65,535.
    fn in_16_bits(self) -> u64 {
        u64::from(self.set >> 6).clamp(1, 0xffff)
    }

    fn learn(&mut self, bit: bool) {
        let step = STEPS[self.count as usize];
        let target = if bit { (1 << 22) - 1 } else { 0 };
        let distance = i64::from(target) - i64::from(self.set);
        let moved = i64::from(self.set) + ((distance * i64::from(step)) >> 16);
        self.set = moved as u32;
        self.count = (self.count + 1).min(MEMORY);
    }
}

/// Encodes or decodes bits, so that the code of a model is written once for both directions.
pub(super) trait BitCoder {
    /// Codes one bit and returns it. A decoder ignores `bit`.
    fn code(&mut self, bit: bool, probability: &mut Probability) -> bool;
}

/// The interval that both directions keep.
#[derive(Debug, Clone, Copy)]
struct CodeInterval {
    low: u64,
    high: u64,
}

impl CodeInterval {
    const ALL: Self = Self {
        low: 0,
        high: u64::MAX,
    };

    /// The last number of the part for a set bit.
    fn middle(self, probability: Probability) -> u64 {
        self.low + ((self.high - self.low) >> 16) * probability.in_16_bits()
    }

    fn select(&mut self, bit: bool, middle: u64) {
        if bit {
            self.high = middle;
        } else {
            self.low = middle + 1;
        }
    }

    /// Removes and returns the first byte if the bounds agree in it.
    fn shift(&mut self) -> Option<u8> {
        let byte = (self.low >> 56) as u8;
        if byte != (self.high >> 56) as u8 {
            return None;
        }
        self.low <<= 8;
        self.high = self.high << 8 | 0xff;
        Some(byte)
    }
}

/// The encoder of an arithmetic code for bits.
#[derive(Debug, Clone)]
pub(super) struct BitEncoder {
    interval: CodeInterval,
    bytes: Vec<u8>,
    is_used: bool,
}

impl BitEncoder {
    pub(super) fn new() -> Self {
        Self {
            interval: CodeInterval::ALL,
            bytes: Vec::new(),
            is_used: false,
        }
    }

    /// The number of bytes so far.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Ends the code and returns its bytes; none if no bit was coded.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.is_used {
            // the bounds differ in their first byte, so the first byte of `low` plus 1, followed by
            // zeros, is between them
            self.bytes.push((self.interval.low >> 56) as u8 + 1);
        }
        self.bytes
    }
}

impl BitCoder for BitEncoder {
    fn code(&mut self, bit: bool, probability: &mut Probability) -> bool {
        let middle = self.interval.middle(*probability);
        self.interval.select(bit, middle);
        probability.learn(bit);
        self.is_used = true;
        while let Some(byte) = self.interval.shift() {
            self.bytes.push(byte);
        }
        bit
    }
}

/// The state of a decoder, without the bytes that it reads.
#[derive(Debug, Clone)]
pub(super) struct DecoderState {
    interval: CodeInterval,
    value: u64,
    /// The number of bytes that were read, including the zeros after the last byte.
    read: usize,
}

/// The number of bytes that the decoder reads ahead.
const AHEAD: usize = 8;

impl DecoderState {
    pub(super) fn new() -> Self {
        Self {
            interval: CodeInterval::ALL,
            value: 0,
            read: 0,
        }
    }

    /// Whether exactly these bytes were read.
    pub(super) fn is_at_end(&self, bytes: &[u8]) -> bool {
        match self.read {
            0 => bytes.is_empty(),
            read => read + 1 == bytes.len() + AHEAD,
        }
    }

    /// A decoder that continues to read `bytes`, which must be the same in each call.
    pub(super) fn decoder<'a>(&'a mut self, bytes: &'a [u8]) -> BitDecoder<'a> {
        let mut decoder = BitDecoder { state: self, bytes };
        while decoder.state.read < AHEAD {
            decoder.read_byte();
        }
        decoder
    }
}

/// The decoder of the bits that a [`BitEncoder`] has written.
#[derive(Debug)]
pub(crate) struct BitDecoder<'a> {
    state: &'a mut DecoderState,
    bytes: &'a [u8],
}

impl BitDecoder<'_> {
    fn read_byte(&mut self) {
        let byte = self.bytes.get(self.state.read).copied().unwrap_or(0);
        self.state.value = self.state.value << 8 | u64::from(byte);
        self.state.read += 1;
    }

    /// Fails if the decoder has run past the end of the code.
    pub(crate) fn check(&self) -> Result<(), DeflateError> {
        if self.state.read >= self.bytes.len() + AHEAD {
            return Err(DeflateError::Recipe("its deviations end early"));
        }
        Ok(())
    }
}

impl BitCoder for BitDecoder<'_> {
    fn code(&mut self, _bit: bool, probability: &mut Probability) -> bool {
        let middle = self.state.interval.middle(*probability);
        let bit = self.state.value <= middle;
        self.state.interval.select(bit, middle);
        probability.learn(bit);
        while self.state.interval.shift().is_some() {
            self.read_byte();
        }
        bit
    }
}

/// Codes the low `bits` bits of a number, the highest first. Each bit has a probability for each
/// value of the bits before it: `tree` has `1 << bits` entries.
pub(super) fn code_tree<C: BitCoder>(
    coder: &mut C,
    number: usize,
    bits: u32,
    tree: &mut [Probability],
) -> usize {
    let mut node = 1;
    for bit in (0..bits).rev() {
        let bit = coder.code(number >> bit & 1 == 1, &mut tree[node]);
        node = node << 1 | usize::from(bit);
    }
    node - (1 << bits)
}

/// Codes numbers n below 2^24 - 1: the position of the highest bit of n + 1, then the bits below
/// it.
#[derive(Debug, Clone)]
pub(super) struct NumberModel {
    lengths: [Probability; 32],
    bits: [[Probability; 24]; 24],
}

impl NumberModel {
    const MAX_BITS: usize = 23;

    pub(super) fn new() -> Self {
        Self {
            lengths: [Probability::EVEN; 32],
            bits: [[Probability::EVEN; 24]; 24],
        }
    }

    pub(super) fn code<C: BitCoder>(&mut self, coder: &mut C, number: usize) -> usize {
        let number = number + 1;
        let length = code_tree(coder, number.ilog2() as usize, 5, &mut self.lengths);
        let length = length.min(Self::MAX_BITS);
        let mut coded = 1;
        for bit in (0..length).rev() {
            let bit = coder.code(number >> bit & 1 == 1, &mut self.bits[length][bit]);
            coded = coded << 1 | usize::from(bit);
        }
        coded - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_decoded_as_they_were_coded() {
        for (rounds, modulus) in [
            (0, 1),
            (1, 1),
            (2, 2),
            (5000, 7),
            (100_000, 1),
            (70_000, 1000),
        ] {
            let bit = |round: u32| round.wrapping_mul(0x9e37_79b1) >> 8 & 0xffff < 0xffff / modulus;
            let mut encoder = BitEncoder::new();
            let mut probability = Probability::EVEN;
            let mut numbers = NumberModel::new();
            for round in 0..rounds {
                encoder.code(bit(round), &mut probability);
                numbers.code(&mut encoder, round as usize * 100);
            }
            let bytes = encoder.finish();
            let mut state = DecoderState::new();
            assert_eq!(state.is_at_end(&bytes), rounds == 0);
            let mut probability = Probability::EVEN;
            let mut numbers = NumberModel::new();
            for round in 0..rounds {
                let mut decoder = state.decoder(&bytes);
                assert_eq!(decoder.code(false, &mut probability), bit(round));
                assert_eq!(numbers.code(&mut decoder, 0), round as usize * 100);
                decoder.check().unwrap();
            }
            assert!(state.is_at_end(&bytes));
        }
    }

    #[test]
    fn bits_that_are_expected_cost_nearly_nothing() {
        let mut encoder = BitEncoder::new();
        let mut probability = Probability::EVEN;
        for _ in 0..1_000_000 {
            encoder.code(true, &mut probability);
        }
        let size = encoder.finish().len();
        assert!(size < 100, "{size}");
    }
}
