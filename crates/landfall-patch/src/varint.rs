//! Numbers of variable length (LEB128): seven bits a byte, the lowest first. The top bit is set in
//! each byte except the last. A signed number is mapped to an unsigned one first: 0, -1, 1, -2 …
//! become 0, 1, 2, 3 …

use std::io::{self, Read};

/// The length of the longest encoding of 64 bits, in bytes.
const MAX_BYTES: u32 = 10;

pub(crate) fn push(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn push_signed(out: &mut Vec<u8>, number: i64) {
    push(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// Reads a number. Fails if the input ends, or if the encoding has more than 64 bits.
pub(crate) fn read(input: &mut impl Read) -> io::Result<u64> {
    let mut number = 0_u64;
    for index in 0..MAX_BYTES {
        let mut byte = [0];
        input.read_exact(&mut byte)?;
        let bits = u64::from(byte[0] & 0x7f);
        let shifted = bits << (7 * index);
        if shifted >> (7 * index) != bits {
            break;
        }
        number |= shifted;
        if byte[0] < 0x80 {
            return Ok(number);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        "a number of more than 64 bits",
    ))
}

pub(crate) fn read_signed(input: &mut impl Read) -> io::Result<i64> {
    let number = read(input)?;
    Ok((number >> 1) as i64 ^ -((number & 1) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_read_as_they_were_written(number: u64, signed: i64) {
            let mut bytes = Vec::new();
            push(&mut bytes, number);
            push_signed(&mut bytes, signed);
            let mut input = &bytes[..];
            prop_assert_eq!(read(&mut input).unwrap(), number);
            prop_assert_eq!(read_signed(&mut input).unwrap(), signed);
            prop_assert!(input.is_empty());
        }
    }

    #[test]
    fn more_than_64_bits_are_refused() {
        assert!(read(&mut &[0xff; 11][..]).is_err());
        assert!(read(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..]).is_err());
        assert_eq!(
            read(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1][..]).unwrap(),
            u64::MAX
        );
    }
}
