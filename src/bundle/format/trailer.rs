//! The trailer: what stands after the contents index. That is its padding, the signature, the end of the tar, and the
//! seek table (zstd's `contrib/seekable_format`), a skippable frame for other tools.

use super::contents::Contents;
use super::entry::TarEntry;
use super::frame;
use super::header;
use super::locator::Locator;
use super::signature;
use super::stored::stored_len;

const SKIPPABLE: u32 = 0x184d_2a5e;
const SEEKABLE: u32 = 0x8f92_eab1;

/// File length and content length of one frame.
pub(crate) type Sizes = (u32, u32);

/// Everything after the content frames of the contents index. These frames have the sizes `index`, and the
/// index has `size` bytes.
pub(crate) fn trailer(contents: &Contents, index: &[Sizes], size: u64, signature: Option<&[u8]>) -> Vec<u8> {
    let (front, blobs) = contents.entries.split_at(contents.front_len());
    let mut frames: Vec<Sizes> = front.iter().flat_map(sizes).collect();
    frames.extend(Locator::content_lens().map(stored));
    frames.extend(blobs.iter().flat_map(sizes));
    frames.push(stored(header::BLOCK));
    frames.extend(index);
    let mut out = Vec::new();
    let signature = signature.map(signature::pieces).into_iter().flatten();
    let pieces = [vec![0; header::padding(size)]].into_iter().chain(signature).chain([header::END.into()]);
    for content in pieces.filter(|content| !content.is_empty()) {
        frames.push(stored(content.len()));
        out.extend(frame::stored(&content));
    }
    out.extend(SKIPPABLE.to_le_bytes());
    out.extend((frames.len() as u32 * 8 + 9).to_le_bytes());
    for (length, content) in &frames {
        out.extend(length.to_le_bytes());
        out.extend(content.to_le_bytes());
    }
    out.extend((frames.len() as u32).to_le_bytes());
    // Seek_Table_Descriptor: no checksums
    out.push(0);
    out.extend(SEEKABLE.to_le_bytes());
    out
}

/// Length of [`trailer`]'s result, without making it. A signature has `signature` bytes.
pub(crate) fn trailer_len(contents: &Contents, index: usize, size: u64, signature: Option<u64>) -> u64 {
    let signature = signature.map(signature::piece_lens).into_iter().flatten();
    let pieces =
        [header::padding(size) as u64].into_iter().chain(signature).chain([header::END.len() as u64]);
    let pieces: Vec<u64> = pieces.filter(|&content| content > 0).map(stored_len).collect();
    let entries: usize = contents.entries.iter().map(|entry| entry.frames.len()).sum();
    let frames = entries + Locator::content_lens().len() + 1 + index + pieces.len();
    pieces.iter().sum::<u64>() + table_len(frames as u64)
}

fn sizes(entry: &TarEntry) -> impl Iterator<Item = Sizes> + '_ {
    entry.frames.iter().enumerate().map(|(index, frame)| (frame.0, entry.content_len(index) as u32))
}

fn stored(content: usize) -> Sizes {
    (stored_len(content as u64) as u32, content as u32)
}

/// The seek table, as it stands at the end of a bundle.
pub(crate) struct SeekTable {
    /// All frames before it.
    pub frames: Vec<Sizes>,
}

impl SeekTable {
    /// Length of its last part, which says how long it is.
    pub(crate) const END: usize = 9;

    /// Length of the table that ends with these bytes.
    pub(crate) fn len(end: &[u8]) -> Option<u64> {
        let (count, rest) = end.split_first_chunk::<4>()?;
        let is_table = rest.first() == Some(&0) && rest[1..] == SEEKABLE.to_le_bytes();
        is_table.then(|| table_len(u32::from_le_bytes(*count).into()))
    }

    /// Parses a table.
    pub(crate) fn parse(table: &[u8]) -> Option<SeekTable> {
        let frames = table.get(8..table.len().checked_sub(SeekTable::END)?)?;
        let number = |bytes: &[u8]| Some(u32::from_le_bytes(bytes.try_into().ok()?));
        let frames = frames.chunks(8).map(|sizes| Some((number(&sizes[..4])?, number(sizes.get(4..)?)?)));
        Some(SeekTable { frames: frames.collect::<Option<_>>()? })
    }

    /// How many bytes the bundle has before the table.
    pub(crate) fn start(&self) -> u64 {
        self.frames.iter().map(|frame| u64::from(frame.0)).sum()
    }

    /// How many bytes the bundle has.
    pub(crate) fn bundle_len(&self) -> u64 {
        self.start() + table_len(self.frames.len() as u64)
    }
}

/// Length of a seek table of so many frames, the header of its skippable frame included.
fn table_len(frames: u64) -> u64 {
    8 + frames * 8 + SeekTable::END as u64
}
