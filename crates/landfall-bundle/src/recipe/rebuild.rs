//! Rebuilds a blob from its recipe and its bases.

use super::hashed_writer::HashedWriter;
use super::plain_file::PlainFile;
use crate::format::blob_recipe::{BlobCoding, RecipeHeader, SECTIONS};
use landfall_deflate::{DeflateError, Rebuilder, Recipe};
use landfall_model::Descriptor;
use landfall_patch::{PatchReader, PatchSections, PlainSource};
use std::io::{self, Read, Write};
use std::sync::Arc;

/// Opens the content of a recipe at an offset.
pub(super) type OpenRecipe<'a> = &'a dyn Fn(u64) -> io::Result<Box<dyn Read + Send>>;

/// Writes the blob to `sink`, and returns `sink`. Never writes more bytes than the blob has; fails
/// with [`InvalidData`](io::ErrorKind::InvalidData) if the result does not have the blob's digest.
pub(super) fn rebuild<W: Write>(
    blob: &Descriptor,
    header: &RecipeHeader,
    open: OpenRecipe<'_>,
    bases: Vec<Arc<PlainFile>>,
    sink: W,
) -> io::Result<W> {
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
    let mut sink = HashedWriter::of_blob(sink, blob);
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
    sink.finish_blob(blob)
}

fn compress(plain: &mut impl Read, mut rebuilder: Rebuilder<impl Write>) -> io::Result<()> {
    let mut buffer = vec![0; 128 << 10];
    loop {
        let count = plain.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        rebuilder.write(&buffer[..count]).map_err(io_error)?;
    }
    rebuilder.finish().map_err(io_error)?;
    Ok(())
}

/// An error of the sink stays as it is, so that its cause can be found.
fn io_error(error: DeflateError) -> io::Error {
    match error {
        DeflateError::Io(error) => error,
        error => io::Error::other(error),
    }
}
