//! What stands after the contents index: its padding, the signature, the end of the tar, and the seek table
//! (zstd's `contrib/seekable_format`), a skippable frame that other tools may use and landfall never does.

use super::contents::{Contents, Record};
use super::locator::Locator;
use super::{frame, header, sign};

const SKIPPABLE: u32 = 0x184d_2a5e;
const SEEKABLE: u32 = 0x8f92_eab1;

/// File length and content length of one frame.
pub(super) type Sizes = (u32, u32);

/// Everything after the content frames of the contents index: these have the sizes `index`, and the
/// index has `size` bytes.
pub(super) fn tail(contents: &Contents, index: &[Sizes], size: u64, signature: Option<&[u8]>) -> Vec<u8> {
    let (front, blobs) = contents.entries.split_at(contents.front_len());
    let mut frames: Vec<Sizes> = front.iter().flat_map(sizes).collect();
    frames.extend(Locator::contents().map(stored));
    frames.extend(blobs.iter().flat_map(sizes));
    frames.push(stored(header::BLOCK));
    frames.extend(index);
    let mut out = Vec::new();
    let signature = signature.map(sign::pieces).into_iter().flatten();
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

/// Length of [`tail`]'s result, without making it. A signature has `signature` bytes.
pub(super) fn tail_len(contents: &Contents, index: usize, size: u64, signature: Option<u64>) -> u64 {
    let signature = signature.map(sign::piece_lens).into_iter().flatten();
    let pieces =
        [header::padding(size) as u64].into_iter().chain(signature).chain([header::END.len() as u64]);
    let pieces: Vec<u64> = pieces.filter(|&content| content > 0).map(frame::stored_len).collect();
    let entries: usize = contents.entries.iter().map(|entry| entry.frames.len()).sum();
    let frames = entries + Locator::contents().len() + 1 + index + pieces.len();
    pieces.iter().sum::<u64>() + 8 + frames as u64 * 8 + 9
}

fn sizes(entry: &Record) -> impl Iterator<Item = Sizes> + '_ {
    entry.frames.iter().enumerate().map(|(index, frame)| (frame.0, entry.content_len(index) as u32))
}

fn stored(content: usize) -> Sizes {
    (frame::stored_len(content as u64) as u32, content as u32)
}
