//! A stream that is checked against the digest that it should have.

use super::error::ended;
use super::{EntryPart, PartSource};
use bytes::Bytes;
use futures_util::StreamExt;
use landfall_http::{ByteStream, ErrorKind, HttpError};
use landfall_model::{Descriptor, Hasher};

/// The whole of a small part, such as a manifest, checked.
///
/// # Errors
/// When the source lacks it, or has other bytes.
pub async fn read_part(source: &dyn PartSource, part: &EntryPart) -> Result<Bytes, HttpError> {
    let opened = source.open(part, 0).await?;
    let mut stream = verify_stream(opened.stream, &part.descriptor);
    let mut all = Vec::new();
    while let Some(bytes) = stream.next().await {
        all.extend_from_slice(&bytes?);
    }
    Ok(all.into())
}

/// `stream` checked against `descriptor`: the last piece is held back until size and digest are
/// known to be right, so that a receiver that counts bytes does not accept wrong content.
pub fn verify_stream(stream: ByteStream, descriptor: &Descriptor) -> ByteStream {
    struct State {
        stream: ByteStream,
        hasher: Option<Hasher>,
        held: Option<Bytes>,
        seen: u64,
        descriptor: Descriptor,
    }
    let hasher = Some(Hasher::new(descriptor.digest.algorithm()));
    let state = State {
        stream,
        hasher,
        held: None,
        seen: 0,
        descriptor: descriptor.clone(),
    };
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
                    let error = if state.seen < wanted.size {
                        ended(wanted, state.seen)
                    } else {
                        let message = format!(
                            "the bytes that came are not {}: they are {found}",
                            wanted.digest
                        );
                        HttpError::new(ErrorKind::Invalid, message)
                    };
                    return Some((Err(error), state));
                }
            }
        }
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::Digest;

    async fn run(pieces: &[&'static str], wanted: &str) -> Result<String, HttpError> {
        let pieces: Vec<_> = pieces
            .iter()
            .map(|piece| Ok(Bytes::from_static(piece.as_bytes())))
            .collect();
        let descriptor = Descriptor {
            digest: Digest::sha256(wanted.as_bytes()),
            size: wanted.len() as u64,
            media_type: "x".into(),
        };
        let mut stream = verify_stream(futures_util::stream::iter(pieces).boxed(), &descriptor);
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
        assert_eq!(
            run(&["he", "llO"], "hello").await.unwrap_err().kind,
            ErrorKind::Invalid
        );
        assert_eq!(
            run(&["he"], "hello").await.unwrap_err().kind,
            ErrorKind::Network
        );
        assert_eq!(
            run(&["hello", "!"], "hello").await.unwrap_err().kind,
            ErrorKind::Invalid
        );
    }
}
