//! Writes a recipe while a stream is read.

use super::member::StreamMember;
use super::recipe::{Recipe, VERSION};
use super::wire::{put_bytes, put_number};
use crate::error::DeflateError;
use crate::framing::{StreamFormat, TrailingBytes};

/// Collects the members of a recipe.
#[derive(Debug)]
pub(crate) struct RecipeBuilder {
    format: StreamFormat,
    /// The encoded members, without `last`.
    members: Vec<u8>,
    /// The member before `last`.
    before: Option<StreamMember>,
    /// The last member that differs from the member before it, and how many equal ones follow it.
    last: Option<(StreamMember, u64)>,
    plain_size: u64,
}

impl RecipeBuilder {
    /// A builder for a stream with this framing.
    pub(crate) fn new(format: StreamFormat) -> Self {
        Self {
            format,
            members: Vec::new(),
            before: None,
            last: None,
            plain_size: 0,
        }
    }

    /// The approximate size of the recipe so far, without deviations.
    pub(crate) fn size(&self) -> u64 {
        self.members.len() as u64
    }

    pub(crate) fn add(&mut self, member: StreamMember) {
        self.plain_size += member.plain_size;
        match &mut self.last {
            Some((last, repeats)) if *last == member => *repeats += 1,
            _ => {
                self.write_last();
                self.last = Some((member, 0));
            }
        }
    }

    fn write_last(&mut self) {
        if let Some((last, repeats)) = self.last.take() {
            let before = self.before.as_ref();
            last.write(before, repeats, self.format, &mut self.members);
            self.before = Some(last);
        }
    }

    /// The recipe of a stream of `compressed_size` bytes.
    pub(crate) fn finish(
        mut self,
        compressed_size: u64,
        trailing: &TrailingBytes,
        deviations: &[u8],
    ) -> Result<Recipe, DeflateError> {
        self.write_last();
        let mut bytes = vec![VERSION, self.format.to_byte()];
        put_number(self.plain_size, &mut bytes);
        put_number(compressed_size, &mut bytes);
        put_bytes(&self.members, &mut bytes);
        put_number(trailing.zeros, &mut bytes);
        put_bytes(&trailing.bytes, &mut bytes);
        put_bytes(deviations, &mut bytes);
        Recipe::parse(bytes)
    }
}
