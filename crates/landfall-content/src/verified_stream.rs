//! A stream that is checked against the descriptor of its blob.

use super::error::truncated;
use super::{EntryPart, PartSource};
use bytes::Bytes;
use futures_util::StreamExt;
use landfall_http::{ByteStream, ErrorKind, HttpError};
use landfall_model::{Descriptor, Hasher};

/// Reads the whole of a small part, such as a manifest, and checks its digest.
///
/// # Errors
/// If the source lacks the part, or its bytes have another digest.
pub async fn read_part(source: &dyn PartSource, part: &EntryPart) -> Result<Bytes, HttpError> {
    let opened = source.open(part, 0).await?;
    let mut stream = verify_stream(opened.stream, &part.descriptor);
    let mut all = Vec::new();
    while let Some(bytes) = stream.next().await {
        all.extend_from_slice(&bytes?);
    }
    Ok(all.into())
}

/// Checks size and digest of `stream` while it passes. The last piece is held back until both are
/// known to be right: a receiver that counts bytes, such as a registry, must not accept a blob that
/// turns out wrong.
pub fn verify_stream(stream: ByteStream, descriptor: &Descriptor) -> ByteStream {
    struct StreamState {
        stream: ByteStream,
        /// `None` after the end or an error.
        hasher: Option<Hasher>,
        held_back: Option<Bytes>,
        received: u64,
        descriptor: Descriptor,
    }
    let state = StreamState {
        stream,
        hasher: Some(Hasher::new(descriptor.digest.algorithm())),
        held_back: None,
        received: 0,
        descriptor: descriptor.clone(),
    };
    futures_util::stream::unfold(state, |mut state| async move {
        loop {
            // a stream must not be polled again after its end or an error
            state.hasher.as_ref()?;
            match state.stream.next().await {
                // an empty piece must not release the piece that is held back
                Some(Ok(bytes)) if bytes.is_empty() => {}
                Some(Ok(bytes)) => {
                    state.hasher.as_mut()?.update(&bytes);
                    state.received += bytes.len() as u64;
                    let Descriptor { digest, size, .. } = &state.descriptor;
                    // a receiver that stops at `size` would never learn that the digest is wrong
                    if state.received > *size {
                        let message =
                            format!("received wrong bytes: more than the {size} bytes of {digest}");
                        state.hasher = None;
                        return Some((Err(HttpError::new(ErrorKind::Invalid, message)), state));
                    }
                    if let Some(previous) = state.held_back.replace(bytes) {
                        return Some((Ok(previous), state));
                    }
                }
                Some(Err(error)) => {
                    state.hasher = None;
                    return Some((Err(error), state));
                }
                None => {
                    let found = state.hasher.take()?.finish();
                    let wanted = &state.descriptor;
                    if found == wanted.digest && state.received == wanted.size {
                        return state.held_back.take().map(|last| (Ok(last), state));
                    }
                    let error = if state.received < wanted.size {
                        truncated(wanted, state.received)
                    } else {
                        let digest = &wanted.digest;
                        let message =
                            format!("received wrong bytes: expected {digest}, got {found}");
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
    async fn a_stream_ends_without_error_only_for_the_right_bytes() {
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

    #[tokio::test]
    async fn a_wrong_stream_yields_fewer_bytes_than_the_size_of_the_blob() {
        for pieces in [
            &["hel", "lO"][..],
            &["helLo", "!"],
            &["hel", "lO", "", "!"],
            &["helLo", ""],
        ] {
            let pieces = pieces
                .iter()
                .map(|piece| Ok(Bytes::from_static(piece.as_bytes())));
            let descriptor = Descriptor {
                digest: Digest::sha256(b"hello"),
                size: 5,
                media_type: "x".into(),
            };
            let stream = futures_util::stream::iter(pieces.collect::<Vec<_>>()).boxed();
            let passed: Vec<Result<Bytes, HttpError>> =
                verify_stream(stream, &descriptor).collect().await;
            let (last, good) = passed.split_last().unwrap();
            assert!(
                last.as_ref()
                    .is_err_and(|error| error.kind == ErrorKind::Invalid)
            );
            let bytes: usize = good.iter().map(|piece| piece.as_ref().unwrap().len()).sum();
            assert!(bytes < 5, "{passed:?}");
        }
    }
}
