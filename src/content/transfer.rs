//! Moving parts: a source that can be opened at any offset, and the way of one part into the store.

use super::Source;
use crate::content::{BlobRead, Sink, StoreError, Writer, read_blocking};
use crate::content::{Origin, Part};
use crate::http::{ByteStream, Error, ErrorKind, backoff};
use crate::model::{Descriptor, Hasher};
use crate::report::{Progress, Side};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// The whole of a small part, such as a manifest, checked.
///
/// # Errors
/// When the source has it not, or has other bytes.
pub async fn read_part(source: &dyn Source, part: &Part) -> Result<Bytes, Error> {
    let (_, stream) = source.open(part, 0).await?;
    let mut stream = checked(stream, &part.descriptor);
    let mut all = Vec::new();
    while let Some(bytes) = stream.next().await {
        all.extend_from_slice(&bytes?);
    }
    Ok(all.into())
}

/// A part that could not be moved: whose fault it was, and why.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct TransferError {
    /// Which side failed.
    pub side: Side,
    /// The class, for decisions.
    pub kind: ErrorKind,
    /// What happened.
    pub message: String,
    /// Error codes of the distribution API, where the answer named some.
    pub codes: Vec<String>,
}

impl TransferError {
    /// An error of this side and class.
    pub fn new(side: Side, kind: ErrorKind, message: impl Into<String>) -> TransferError {
        TransferError { side, kind, message: message.into(), codes: Vec::new() }
    }

    /// An error of the source.
    pub fn source(error: Error) -> TransferError {
        let Error { kind, message, codes } = error;
        TransferError { side: Side::Source, kind, message, codes }
    }

    /// An error of the destination.
    pub fn destination(error: Error) -> TransferError {
        TransferError { side: Side::Destination, ..TransferError::source(error) }
    }
}

impl std::convert::From<StoreError> for TransferError {
    fn from(error: StoreError) -> TransferError {
        let (side, kind) = match &error {
            StoreError::Digest { .. } | StoreError::Size { .. } => (Side::Source, ErrorKind::Invalid),
            _ => (Side::Destination, ErrorKind::Local),
        };
        TransferError::new(side, kind, error.to_string())
    }
}

/// A store or a bundle as a [`Source`] of what is sent: a stream that ends early or with an error must not
/// be taken for content.
pub struct LocalSource(pub Arc<dyn BlobRead>);

impl Source for LocalSource {
    fn open<'a>(&'a self, part: &'a Part, offset: u64) -> BoxFuture<'a, Result<(u64, ByteStream), Error>> {
        let (blobs, part) = (self.0.clone(), part.clone());
        Box::pin(async move {
            if let Origin::Computed(bytes) = part.from {
                return Ok((0, whole(bytes.into())));
            }
            let local = |error: String| Error::new(ErrorKind::Local, error);
            let digest = part.descriptor.digest;
            let opening = tokio::task::spawn_blocking(move || match offset {
                0 => blobs.open_whole(&digest),
                _ => blobs.open(&digest, offset),
            });
            let reader = opening.await.map_err(|error| local(error.to_string()))?;
            Ok((offset, read_blocking(reader.map_err(|error| local(error.to_string()))?)))
        })
    }

    fn is_checked(&self) -> bool {
        true
    }
}

/// A stream of one piece.
pub fn whole(bytes: Bytes) -> ByteStream {
    futures_util::stream::iter([Ok(bytes)]).boxed()
}

/// Brings one part where it belongs. A cut connection goes on at the last byte on disk; attempts count
/// only while nothing new comes. Returns the bytes received: 0 where it was there already.
///
/// # Errors
/// Which side failed, after all attempts.
pub async fn fetch(
    source: &dyn Source,
    into: &Arc<dyn Sink>,
    part: &Part,
    progress: &dyn Progress,
) -> Result<u64, TransferError> {
    let limits = source.limits();
    let mut received = 0;
    let mut failures = 0;
    let mut wrong = 0;
    let mut farthest = 0;
    loop {
        let (to, descriptor) = (into.clone(), part.descriptor.clone());
        let begun = blocking(move || to.begin(&descriptor, false)).await?;
        let Some((mut writer, _)) = begun else { return Ok(received) };
        farthest = farthest.max(writer.offset());
        // opening was tried often enough by the transport; here only a stream that broke is gone on with
        let opened = open_at(source, &mut writer, part).await?;
        let went_on = writer.offset() > 0;
        let pumped = match opened {
            Some(stream) => pump(stream, &mut writer, part, progress, &mut received).await,
            None => Ok(()),
        };
        let reached = writer.offset();
        let result = match pumped {
            Ok(()) => blocking(move || writer.commit()).await,
            Err(error) => Err(error),
        };
        let Err(error) = result else { return Ok(received) };
        let progressed = reached > farthest;
        failures = if progressed { 0 } else { failures + 1 };
        farthest = farthest.max(reached);
        let again = match error.kind {
            ErrorKind::Network => failures < limits.attempts,
            ErrorKind::Invalid if error.side == Side::Source => {
                farthest = 0;
                if went_on {
                    // the beginning or the rest was wrong: the whole will tell
                    source.distrust_ranges(part).await;
                } else {
                    // wrong bytes once may be a bad link or cache; twice is what the source has
                    wrong += 1;
                }
                wrong < 2 && failures < limits.attempts
            }
            _ => false,
        };
        if !again {
            return Err(error);
        }
        // what gets on is not slowed down
        if !progressed {
            tokio::time::sleep(backoff(failures, limits.backoff, limits.backoff_most)).await;
        }
    }
}

/// The stream that goes on where the writer stands, or `None` where it has everything.
async fn open_at(
    source: &dyn Source,
    writer: &mut Writer,
    part: &Part,
) -> Result<Option<ByteStream>, TransferError> {
    if writer.offset() == part.descriptor.size && part.descriptor.size > 0 {
        return Ok(None);
    }
    let (start, stream) = source.open(part, writer.offset()).await.map_err(TransferError::source)?;
    if start != writer.offset() {
        writer.restart()?;
    }
    Ok(Some(stream))
}

async fn pump(
    mut stream: ByteStream,
    writer: &mut Writer,
    part: &Part,
    progress: &dyn Progress,
    received: &mut u64,
) -> Result<(), TransferError> {
    while let Some(bytes) = stream.next().await {
        let bytes = bytes.map_err(TransferError::source)?;
        // written here and not on a blocking thread: a write into the page cache is shorter than a switch
        writer.write(&bytes)?;
        *received += bytes.len() as u64;
        progress.bytes(bytes.len() as u64);
    }
    if writer.offset() < part.descriptor.size {
        let message = format!(
            "{}: the answer ended after {} of {} bytes",
            part.descriptor.digest,
            writer.offset(),
            part.descriptor.size
        );
        return Err(TransferError::new(Side::Source, ErrorKind::Network, message));
    }
    Ok(())
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, TransferError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(TransferError::from),
        Err(error) => Err(TransferError::new(Side::Destination, ErrorKind::Local, error.to_string())),
    }
}

/// `stream` checked against `descriptor`: the last piece is held back until size and digest are known to
/// be right, so that a receiver that counts bytes never takes wrong content for whole.
pub fn checked(stream: ByteStream, descriptor: &Descriptor) -> ByteStream {
    struct State {
        stream: ByteStream,
        hasher: Option<Hasher>,
        held: Option<Bytes>,
        seen: u64,
        descriptor: Descriptor,
    }
    let hasher = Some(Hasher::new(descriptor.digest.algorithm()));
    let state = State { stream, hasher, held: None, seen: 0, descriptor: descriptor.clone() };
    futures_util::stream::unfold(state, |mut state| async move {
        loop {
            // the end was seen already; a stream is not asked again after that
            state.hasher.as_ref()?;
            match state.stream.next().await {
                Some(Ok(bytes)) => {
                    let hasher = state.hasher.as_mut()?;
                    hasher.update(&bytes);
                    state.seen += bytes.len() as u64;
                    if let Some(held) = state.held.replace(bytes) {
                        return Some((Ok(held), state));
                    }
                }
                Some(Err(error)) => {
                    state.hasher = None;
                    return Some((Err(error), state));
                }
                None => {
                    let found = state.hasher.take()?.finish();
                    let wanted = &state.descriptor;
                    if found == wanted.digest && state.seen == wanted.size {
                        return state.held.take().map(|held| (Ok(held), state));
                    }
                    let (kind, message) = if state.seen < wanted.size {
                        let message = format!(
                            "{}: the answer ended after {} of {} bytes",
                            wanted.digest, state.seen, wanted.size
                        );
                        (ErrorKind::Network, message)
                    } else {
                        (
                            ErrorKind::Invalid,
                            format!("the bytes that came are not {}: they are {found}", wanted.digest),
                        )
                    };
                    return Some((Err(Error::new(kind, message)), state));
                }
            }
        }
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Digest;

    async fn run(pieces: &[&'static str], wanted: &str) -> Result<String, Error> {
        let pieces: Vec<_> = pieces.iter().map(|piece| Ok(Bytes::from_static(piece.as_bytes()))).collect();
        let descriptor = Descriptor {
            digest: Digest::sha256(wanted.as_bytes()),
            size: wanted.len() as u64,
            media_type: "x".into(),
        };
        let mut stream = checked(futures_util::stream::iter(pieces).boxed(), &descriptor);
        let mut all = String::new();
        while let Some(piece) = stream.next().await {
            all.push_str(std::str::from_utf8(&piece?).unwrap());
        }
        Ok(all)
    }

    #[tokio::test]
    async fn only_the_right_bytes_pass_to_their_end() {
        assert_eq!(run(&["he", "l", "lo"], "hello").await.unwrap(), "hello");
        assert_eq!(run(&[], "").await.unwrap(), "");
        assert_eq!(run(&["he", "llO"], "hello").await.unwrap_err().kind, ErrorKind::Invalid);
        assert_eq!(run(&["he"], "hello").await.unwrap_err().kind, ErrorKind::Network);
        assert_eq!(run(&["hello", "!"], "hello").await.unwrap_err().kind, ErrorKind::Invalid);
    }
}
