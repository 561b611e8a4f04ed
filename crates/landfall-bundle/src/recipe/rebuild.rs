//! Rebuilds a blob from its recipe and its bases.

use super::plain_file::PlainFile;
use crate::format::blob_recipe::{BlobCoding, RecipeHeader, SECTIONS};
use landfall_deflate::{Rebuilder, Recipe};
use landfall_model::{Descriptor, Hasher};
use landfall_patch::{PatchReader, PatchSections, PlainSource};
use std::io::{self, Read, Write};
use std::sync::Arc;

/// Opens the content of a recipe at an offset.
pub(super) type OpenRecipe<'a> = &'a dyn Fn(u64) -> io::Result<Box<dyn Read + Send>>;

/// Writes the blob to `sink`. Never writes more bytes than the blob has; fails with
/// [`InvalidData`](io::ErrorKind::InvalidData) if the result does not have the blob's digest.
pub(super) fn rebuild(
    blob: &Descriptor,
    header: &RecipeHeader,
    open: OpenRecipe<'_>,
    bases: Vec<Arc<PlainFile>>,
    sink: impl Write,
) -> io::Result<()> {
    let section = |number: usize| -> io::Result<io::Take<Box<dyn Read + Send>>> {
        Ok(open(header.offset(number))?.take(header.sections[number]))
    };
    let mut patch = Vec::new();
    for number in 1..SECTIONS {
        patch.push(section(number)?);
    }
    let patch = patch.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
    let bases = bases
        .into_iter()
        .map(|base| base as Arc<dyn PlainSource>)
        .collect();
    let mut plain = PatchReader::new(PatchSections::from_array(patch), bases, header.plain)
        .map_err(io::Error::other)?;
    let mut sink = BlobWriter {
        sink,
        left: blob.size,
        hasher: Hasher::new(blob.digest.algorithm()),
    };
    match header.coding {
        BlobCoding::Plain => {
            io::copy(&mut plain, &mut sink)?;
        }
        BlobCoding::Deflate => {
            let mut bytes = Vec::new();
            section(0)?.read_to_end(&mut bytes)?;
            let recipe = Recipe::parse(bytes).map_err(io::Error::other)?;
            compress(&mut plain, Rebuilder::new(recipe, &mut sink))?;
        }
    }
    sink.finish(blob)
}

fn compress(plain: &mut impl Read, mut rebuilder: Rebuilder<impl Write>) -> io::Result<()> {
    let mut buffer = vec![0; 128 << 10];
    loop {
        let count = plain.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        rebuilder
            .write(&buffer[..count])
            .map_err(io::Error::other)?;
    }
    rebuilder.finish().map_err(io::Error::other)?;
    Ok(())
}

/// Writes a blob, not a byte more than it has, and hashes it.
struct BlobWriter<W> {
    sink: W,
    left: u64,
    hasher: Hasher,
}

impl<W: Write> BlobWriter<W> {
    fn finish(mut self, blob: &Descriptor) -> io::Result<()> {
        self.sink.flush()?;
        if self.left > 0 || self.hasher.finish() != blob.digest {
            let why = "what the recipe rebuilds does not have the digest";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(())
    }
}

impl<W: Write> Write for BlobWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.left {
            let why = "the recipe rebuilds more bytes than the blob has";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        self.sink.write_all(bytes)?;
        self.hasher.update(bytes);
        self.left -= bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}
