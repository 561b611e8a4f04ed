//! Tables that decode the symbols of a Huffman code.

use crate::symbols::LONGEST_CODE;

/// A symbol, or a link to a second table for codes that are longer than the first table's index.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DecodeEntry {
    /// The symbol, or the index of the second table.
    pub(crate) value: u16,
    /// The length of the code. For a link, the maximum length of the codes in the second table. 0
    /// if no code begins with these bits.
    pub(crate) bits: u8,
    /// Whether this is a link.
    is_link: bool,
}

/// Decodes the symbols of one code.
#[derive(Debug, Default)]
pub(crate) struct DecodeTable {
    entries: Vec<DecodeEntry>,
    index_bits: u32,
}

/// A set of code lengths that is not a complete prefix code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidCode;

impl DecodeTable {
    /// Builds the table of the canonical code with these lengths. Codes of up to `index_bits` bits
    /// are decoded in one step.
    ///
    /// A code must use all bit patterns. As in zlib, a code with a single symbol of length 1 is
    /// accepted too, and so is a code without symbols, which cannot decode anything.
    pub(crate) fn build(&mut self, lengths: &[u8], index_bits: u32) -> Result<(), InvalidCode> {
        let mut counts = [0_u32; LONGEST_CODE + 1];
        for &length in lengths {
            counts[usize::from(length)] += 1;
        }
        let used = lengths.len() as u32 - counts[0];
        counts[0] = 0;
        let mut left = 1_i32;
        for &count in &counts[1..] {
            left = 2 * left - count as i32;
            if left < 0 {
                return Err(InvalidCode);
            }
        }
        if left > 0 && !(used == 0 || used == 1 && counts[1] == 1) {
            return Err(InvalidCode);
        }
        self.index_bits = index_bits;
        self.entries.clear();
        self.entries.resize(1 << index_bits, DecodeEntry::default());
        let mut next = [0_u32; LONGEST_CODE + 1];
        for length in 1..LONGEST_CODE {
            next[length + 1] = (next[length] + counts[length]) << 1;
        }
        // the prefix of the codes in the current second table
        let mut prefix = None;
        for length in 1..=LONGEST_CODE as u32 {
            if counts[length as usize] == 0 {
                continue;
            }
            for (symbol, _) in lengths
                .iter()
                .enumerate()
                .filter(|(_, l)| u32::from(**l) == length)
            {
                let code = next[length as usize];
                next[length as usize] += 1;
                let reversed = code.reverse_bits() >> (32 - length);
                let entry = DecodeEntry {
                    value: symbol as u16,
                    bits: length as u8,
                    is_link: false,
                };
                if length <= index_bits {
                    fill(
                        &mut self.entries[..1 << index_bits],
                        reversed,
                        length,
                        entry,
                    );
                    continue;
                }
                let root = code >> (length - index_bits);
                if prefix != Some(root) {
                    prefix = Some(root);
                    self.add_second(reversed, code, length, &counts);
                }
                let link = self.entries[reversed as usize & ((1 << index_bits) - 1)];
                let second = &mut self.entries[usize::from(link.value)..];
                let second_bits = u32::from(link.bits) - index_bits;
                fill(
                    &mut second[..1 << second_bits],
                    reversed >> index_bits,
                    length - index_bits,
                    entry,
                );
            }
        }
        Ok(())
    }

    /// Adds a second table for the first code with a new prefix. Codes are assigned in order, so
    /// the counts determine the longest code with this prefix, and with it the size of the table.
    fn add_second(&mut self, reversed: u32, code: u32, length: u32, counts: &[u32; 16]) {
        let mut bits = length - self.index_bits;
        let mut room = 1_i32 << bits;
        // the earlier codes of this length are in other tables
        let first_code_of_length = first_code(counts, length);
        let mut count = counts[length as usize] - (code - first_code_of_length);
        loop {
            room -= count as i32;
            if room <= 0 || self.index_bits + bits == LONGEST_CODE as u32 {
                break;
            }
            bits += 1;
            room *= 2;
            count = counts[(self.index_bits + bits) as usize];
        }
        let link = DecodeEntry {
            value: self.entries.len() as u16,
            bits: (self.index_bits + bits) as u8,
            is_link: true,
        };
        self.entries[reversed as usize & ((1 << self.index_bits) - 1)] = link;
        let length = self.entries.len();
        self.entries
            .resize(length + (1 << bits), DecodeEntry::default());
    }

    /// Returns the entry of the next symbol, for the caller to consume its `bits`. An entry with 0
    /// bits means that no code begins with these bits.
    #[inline]
    pub(crate) fn decode(&self, bits: u64) -> DecodeEntry {
        let index = bits as usize & ((1 << self.index_bits) - 1);
        let entry = self.entries[index];
        if !entry.is_link {
            return entry;
        }
        let rest = (bits & ((1 << entry.bits) - 1)) >> self.index_bits;
        self.entries[usize::from(entry.value) + rest as usize]
    }
}

/// The first canonical code of a length.
fn first_code(counts: &[u32; 16], length: u32) -> u32 {
    counts[..length as usize]
        .iter()
        .fold(0, |code, &count| (code + count) << 1)
}

/// Writes `entry` to all indexes whose low `length` bits are `code`.
fn fill(entries: &mut [DecodeEntry], code: u32, length: u32, entry: DecodeEntry) {
    for slot in entries[code as usize..].iter_mut().step_by(1 << length) {
        *slot = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::huffman::Code;
    use crate::symbols::FIXED_LITERAL_LENGTHS;

    fn check(lengths: &[u8], index_bits: u32) {
        let mut table = DecodeTable::default();
        table.build(lengths, index_bits).unwrap();
        let mut code: Code<288> = Code::EMPTY;
        code.set_lengths(lengths);
        for (symbol, &length) in lengths.iter().enumerate() {
            if length > 0 {
                let (word, _) = code.word(symbol);
                for after in [0, 0x5a5a_5a5a_u64, u64::MAX] {
                    let entry = table.decode(u64::from(word) | after << length);
                    assert_eq!((usize::from(entry.value), entry.bits), (symbol, length));
                }
            }
        }
    }

    #[test]
    fn codes_of_every_length_are_decoded() {
        check(&FIXED_LITERAL_LENGTHS, 10);
        check(&FIXED_LITERAL_LENGTHS, 8);
        check(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 15], 9);
        check(
            &[2, 15, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 2],
            5,
        );
        check(&[1], 9);
    }

    #[test]
    fn lengths_that_are_not_a_complete_code_are_rejected() {
        let mut table = DecodeTable::default();
        for lengths in [&[1_u8, 1, 1][..], &[2, 2], &[1, 2], &[2]] {
            assert_eq!(table.build(lengths, 9), Err(InvalidCode), "{lengths:?}");
        }
        table.build(&[0, 0], 9).unwrap();
        assert_eq!(table.decode(0).bits, 0);
    }
}
