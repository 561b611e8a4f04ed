//! Reads the body of a request of git's protocol, piece by piece.

use crate::response::{Body, RequestError};
use flate2::write::GzDecoder;
use futures_util::StreamExt;
use http::header::CONTENT_ENCODING;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use http_body_util::BodyExt;
use std::io::{self, Write};

/// The unpacked size that any request may have, in bytes.
const UNPACKED: usize = 1 << 20;
/// The ratio of the unpacked to the received size that a larger request may have. The ids of
/// objects compress to half of their size, and lists of similar names to a tenth.
const MAX_RATIO: usize = 32;

/// Calls `take` with each piece of the body of a request, which git compresses if it is long. The
/// connection table closes the connection of a client that stalls.
pub(super) async fn read_message(
    parts: &Parts,
    body: Body,
    most: usize,
    take: impl FnMut(&[u8]),
) -> Result<(), RequestError> {
    let bad = |why: &str| RequestError::bad_request("UNSUPPORTED", why);
    let pieces = LimitedPieces {
        take,
        size: 0,
        allowed: 0,
    };
    let mut unpacker = match parts
        .headers
        .get(CONTENT_ENCODING)
        .map(HeaderValue::as_bytes)
    {
        None => Unpacker::Plain(pieces),
        Some(b"gzip" | b"x-gzip") => Unpacker::Gzip(Box::new(GzDecoder::new(pieces))),
        Some(_) => return Err(bad("the request has an unknown encoding")),
    };
    let mut received = 0;
    let mut body = body.into_data_stream();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|_| bad("the request is incomplete"))?;
        received += piece.len();
        unpacker.unpacked().allowed = most.min(UNPACKED + received * MAX_RATIO);
        let written = unpacker.write(&piece);
        if unpacker.unpacked().is_too_large() {
            let message = format!("the request is too large: it may have {most} bytes");
            let status = StatusCode::PAYLOAD_TOO_LARGE;
            return Err(RequestError::new(status, "SIZE_INVALID", message));
        }
        written.map_err(|_| bad("the request is not valid gzip"))?;
    }
    let finished = unpacker.finish();
    finished.map_err(|_| bad("the request is not valid gzip"))
}

enum Unpacker<F: FnMut(&[u8])> {
    Plain(LimitedPieces<F>),
    Gzip(Box<GzDecoder<LimitedPieces<F>>>),
}

impl<F: FnMut(&[u8])> Unpacker<F> {
    fn unpacked(&mut self) -> &mut LimitedPieces<F> {
        match self {
            Unpacker::Plain(pieces) => pieces,
            Unpacker::Gzip(decoder) => decoder.get_mut(),
        }
    }

    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        match self {
            Unpacker::Plain(pieces) => pieces.write_all(piece),
            Unpacker::Gzip(decoder) => decoder.write_all(piece),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Unpacker::Plain(_) => Ok(()),
            Unpacker::Gzip(decoder) => decoder.finish().map(drop),
        }
    }
}

/// Passes unpacked bytes on until their number exceeds the limit.
struct LimitedPieces<F> {
    take: F,
    size: usize,
    allowed: usize,
}

impl<F> LimitedPieces<F> {
    fn is_too_large(&self) -> bool {
        self.size > self.allowed
    }
}

impl<F: FnMut(&[u8])> Write for LimitedPieces<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.size += bytes.len();
        if self.is_too_large() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        (self.take)(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response::streamed_body;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use futures_util::stream;
    use http::Request;

    const MOST: usize = 8 << 20;

    /// The size that is read of a body, or the status of the error.
    async fn read(pieces: Vec<Vec<u8>>, encoding: Option<&str>) -> Result<usize, u16> {
        let mut request = Request::builder();
        if let Some(encoding) = encoding {
            request = request.header(CONTENT_ENCODING, encoding);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let body = streamed_body(stream::iter(pieces.into_iter().map(Ok::<_, io::Error>)));
        let mut size = 0;
        let result = read_message(&parts, body, MOST, |piece| size += piece.len()).await;
        result.map(|()| size).map_err(|error| error.status.as_u16())
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[tokio::test]
    async fn a_request_is_unpacked_up_to_a_ratio_of_its_size() {
        let zeros = |size: usize| vec![gzip(&vec![0; size])];
        assert_eq!(read(zeros(UNPACKED), Some("gzip")).await, Ok(UNPACKED));
        assert_eq!(read(zeros(MOST), Some("x-gzip")).await, Err(413));
        let random: Vec<u8> = (0..400_000_u32)
            .flat_map(|n| (n.wrapping_mul(2_654_435_761) ^ 0x4d).to_be_bytes())
            .collect();
        let hex: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let packed: Vec<Vec<u8>> = gzip(hex.as_bytes()).chunks(7).map(<[u8]>::to_vec).collect();
        assert_eq!(read(packed, Some("gzip")).await, Ok(hex.len()));
    }

    #[tokio::test]
    async fn a_plain_request_is_limited_and_others_are_refused() {
        assert_eq!(read(vec![vec![0; MOST]], None).await, Ok(MOST));
        assert_eq!(read(vec![vec![0; MOST], vec![0]], None).await, Err(413));
        assert_eq!(
            read(vec![b"no gzip".to_vec()], Some("gzip")).await,
            Err(400)
        );
        let cut = gzip(b"abc")[..9].to_vec();
        assert_eq!(read(vec![cut], Some("gzip")).await, Err(400));
        assert_eq!(read(vec![], Some("br")).await, Err(400));
    }
}
