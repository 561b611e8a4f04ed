//! The tokens that were found so far in one block.

use crate::encoder::bytes::boxed_array;
use crate::encoder::symbols::Token;

/// The capacity for the tokens of a block. The largest blocks, those of zlib's memory level 9 and
/// of GNU gzip, have one token fewer.
const MAX_TOKENS: usize = 1 << 15;

/// Collects the tokens of a block.
#[derive(Debug)]
pub(super) struct Tokens {
    tokens: Box<[Token; MAX_TOKENS]>,
    len: usize,
}

impl Tokens {
    pub(super) fn new() -> Self {
        Self {
            tokens: boxed_array(Token::literal(0)),
            len: 0,
        }
    }

    /// Appends a token to a block that is not full.
    #[inline]
    pub(super) fn push(&mut self, token: Token) {
        self.tokens[self.len % MAX_TOKENS] = token;
        self.len += 1;
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn as_slice(&self) -> &[Token] {
        &self.tokens[..self.len]
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }
}
