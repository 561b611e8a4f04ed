//! Bodies that a server or proxy compresses in transit (RFC 9110, 8.4), although landfall requests
//! them without compression.

use super::body::{ByteStream, HttpResponse};
use super::error::{ErrorKind, HttpError};
use bytes::Bytes;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use flate2::write;
use futures_util::StreamExt;
use landfall_model::Digest;
use reqwest::StatusCode;
use std::io::{self, Read, Write};

/// How many compressed bytes are decoded before the length of the result is compared: each may
/// become a thousand.
const STEP: usize = 4 << 10;

/// A coding that landfall decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentCoding {
    Gzip,
    Deflate,
    Zstd,
}

impl ContentCoding {
    fn of(name: &str) -> Option<ContentCoding> {
        match name.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => Some(ContentCoding::Gzip),
            "deflate" => Some(ContentCoding::Deflate),
            "zstd" => Some(ContentCoding::Zstd),
            _ => None,
        }
    }

    /// Whether `body` begins as this coding does. Some servers announce a coding and send the
    /// content itself.
    fn may_be(self, body: &[u8]) -> bool {
        match self {
            ContentCoding::Gzip => body.starts_with(b"\x1f\x8b"),
            ContentCoding::Zstd => body.starts_with(b"\x28\xb5\x2f\xfd"),
            // without any signature, some servers omit the zlib header
            ContentCoding::Deflate => true,
        }
    }

    /// Decodes `body`; `None` if it is not in this coding or longer than `limit`.
    fn decode(self, body: &[u8], limit: usize) -> Option<Vec<u8>> {
        let limit = limit as u64;
        match self {
            ContentCoding::Gzip => read_up_to(MultiGzDecoder::new(body), limit),
            ContentCoding::Deflate => read_up_to(ZlibDecoder::new(body), limit)
                .or_else(|| read_up_to(DeflateDecoder::new(body), limit)),
            ContentCoding::Zstd => read_up_to(zstd::Decoder::with_buffer(body).ok()?, limit),
        }
    }
}

/// The coding, if it is the only one and landfall knows it.
fn single_coding(names: &[String]) -> Option<ContentCoding> {
    match names {
        [only] => ContentCoding::of(only),
        _ => None,
    }
}

fn read_up_to(reader: impl Read, limit: u64) -> Option<Vec<u8>> {
    let mut decoded = Vec::new();
    let mut reader = reader.take(limit + 1);
    reader.read_to_end(&mut decoded).ok()?;
    (decoded.len() as u64 <= limit).then_some(decoded)
}

/// Decodes a body while it arrives, up to a length.
enum BodyDecoder {
    Gzip(write::MultiGzDecoder<Vec<u8>>),
    Deflate(write::ZlibDecoder<Vec<u8>>),
    Zstd(zstd::stream::write::Decoder<'static, Vec<u8>>),
}

impl BodyDecoder {
    fn new(coding: ContentCoding) -> io::Result<BodyDecoder> {
        Ok(match coding {
            ContentCoding::Gzip => BodyDecoder::Gzip(write::MultiGzDecoder::new(Vec::new())),
            ContentCoding::Deflate => BodyDecoder::Deflate(write::ZlibDecoder::new(Vec::new())),
            ContentCoding::Zstd => {
                BodyDecoder::Zstd(zstd::stream::write::Decoder::new(Vec::new())?)
            }
        })
    }

    /// Decodes the next bytes that were sent, or the end if there are none. Subtracts the length of
    /// the result from `left`.
    fn decode(&mut self, sent: Option<&[u8]>, left: &mut u64) -> io::Result<Bytes> {
        let pieces: Vec<Option<&[u8]>> = match sent {
            Some(sent) => sent.chunks(STEP).map(Some).collect(),
            None => vec![None],
        };
        let mut content = Vec::new();
        for piece in pieces {
            let decoded = self.decode_piece(piece)?;
            *left = left
                .checked_sub(decoded.len() as u64)
                .ok_or_else(|| io::Error::other("it decodes to more bytes than the content has"))?;
            content.extend(decoded);
        }
        Ok(content.into())
    }

    fn decode_piece(&mut self, bytes: Option<&[u8]>) -> io::Result<Vec<u8>> {
        match (&mut *self, bytes) {
            (BodyDecoder::Gzip(decoder), Some(bytes)) => decoder.write_all(bytes)?,
            (BodyDecoder::Gzip(decoder), None) => decoder.try_finish()?,
            (BodyDecoder::Deflate(decoder), Some(bytes)) => decoder.write_all(bytes)?,
            (BodyDecoder::Deflate(decoder), None) => decoder.try_finish()?,
            (BodyDecoder::Zstd(decoder), Some(bytes)) => decoder.write_all(bytes)?,
            (BodyDecoder::Zstd(decoder), None) => decoder.flush()?,
        }
        Ok(std::mem::take(match self {
            BodyDecoder::Gzip(decoder) => decoder.get_mut(),
            BodyDecoder::Deflate(decoder) => decoder.get_mut(),
            BodyDecoder::Zstd(decoder) => decoder.get_mut(),
        }))
    }
}

impl HttpResponse {
    /// The values of `Content-Encoding`, without `identity`, which changes nothing.
    fn content_codings(&self) -> Vec<String> {
        let values = self.headers.get_all("content-encoding").iter();
        let values = values.filter_map(|value| value.to_str().ok());
        let names = values.flat_map(|value| value.split(',')).map(str::trim);
        let names = names.filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("identity"));
        names.map(str::to_owned).collect()
    }

    /// Returns the error for a compressed response; `None` if the response is not compressed.
    pub fn compression_error(&self, what: &str) -> Option<HttpError> {
        let codings = self.content_codings();
        if codings.is_empty() {
            return None;
        }
        let words = format!(
            "{what} was sent with Content-Encoding: {}, although it was requested without \
             compression; a proxy or the server compresses it, so its digest cannot match",
            codings.join(", ")
        );
        Some(HttpError::new(ErrorKind::Invalid, words).at(&self.url))
    }

    /// Returns the content of `length` bytes as a stream, decoded while it arrives. `None` if
    /// landfall does not know the coding, or the response is a part of the encoded content.
    pub(super) fn decoded_stream(self, length: u64) -> Option<ByteStream> {
        let coding = single_coding(&self.content_codings())?;
        let mut decoder = BodyDecoder::new(coding).ok()?;
        if self.status != StatusCode::OK {
            return None;
        }
        let url = self.url.clone();
        let mut left = length;
        let mut decode = move |sent: Option<Bytes>| {
            decoder.decode(sent.as_deref(), &mut left).map_err(|error| {
                let words = format!("the response, which was compressed in transit: {error}");
                HttpError::new(ErrorKind::Invalid, words).at(&url)
            })
        };
        let end = futures_util::stream::once(async { Ok(None) });
        let pieces = self.stream().map(|sent| sent.map(Some)).chain(end);
        let decoded = pieces.map(move |sent| decode(sent?));
        // a stream of bytes ends after its first error
        let until_error = decoded.scan(false, |has_failed, piece| {
            let is_next = !std::mem::replace(has_failed, piece.is_err());
            std::future::ready(is_next.then_some(piece))
        });
        Some(until_error.boxed())
    }

    /// Reads the whole body into memory. A body that was compressed in transit is decoded, unless
    /// landfall does not know its coding.
    ///
    /// # Errors
    /// The errors of [`HttpResponse::stream`]; a body of more than `limit` bytes, as sent or
    /// decoded; a body that is not in the coding that its header names.
    pub async fn bytes(self, limit: usize) -> Result<Bytes, HttpError> {
        self.content(limit, |_| false).await
    }

    /// Reads the whole body with this digest into memory. Some servers announce the compression of
    /// a file as a coding, so the body as it was sent counts if it has the digest, and otherwise
    /// what it decodes to. The result has another digest if neither has this one.
    ///
    /// # Errors
    /// As of [`HttpResponse::bytes`].
    pub async fn bytes_of(self, limit: usize, digest: &Digest) -> Result<Bytes, HttpError> {
        self.content(limit, |sent| digest.matches(sent)).await
    }

    /// The body; as it was sent if `is_content` accepts that.
    async fn content(
        self,
        limit: usize,
        is_content: impl FnOnce(&[u8]) -> bool,
    ) -> Result<Bytes, HttpError> {
        let codings = self.content_codings();
        let is_unknown = |name: &String| {
            ["br", "compress", "x-compress"].contains(&name.to_ascii_lowercase().as_str())
        };
        let unsupported = self
            .compression_error("the response")
            .filter(|_| codings.len() > 1 || codings.iter().any(is_unknown));
        let Some(coding) = single_coding(&codings).filter(|_| unsupported.is_none()) else {
            // other names are not codings: some object stores return what the uploader wrote
            let sent = self.sent_bytes(limit).await?;
            return match unsupported.filter(|_| !is_content(&sent)) {
                Some(error) => Err(error),
                None => Ok(sent),
            };
        };
        let url = self.url.clone();
        // a coding adds at most this to content that cannot be compressed
        let sent = self.sent_bytes(limit + limit / 1024 + 1024).await?;
        if !coding.may_be(&sent) || is_content(&sent) {
            return Ok(sent);
        }
        match coding.decode(&sent, limit) {
            Some(decoded) => Ok(decoded.into()),
            None => {
                let words = format!(
                    "the response has Content-Encoding: {}, but does not decode to at most \
                     {limit} bytes; a proxy or the server compresses it",
                    codings.join(", ")
                );
                Err(HttpError::new(ErrorKind::Invalid, words).at(&url))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn each_coding_is_decoded_up_to_the_limit() {
        let text = b"text ".repeat(1000);
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(&text).unwrap();
        let mut raw = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        raw.write_all(&text).unwrap();
        for (name, body) in [
            ("gzip", gzip(&text)),
            (" X-GZip", gzip(&text)),
            ("deflate", zlib.finish().unwrap()),
            ("deflate", raw.finish().unwrap()),
            ("zstd", zstd::encode_all(&text[..], 1).unwrap()),
        ] {
            let coding = ContentCoding::of(name).unwrap();
            assert!(coding.may_be(&body));
            assert_eq!(coding.decode(&body, 5000).as_deref(), Some(&text[..]));
            assert_eq!(coding.decode(&body, 4999), None, "{name}");
            assert_eq!(coding.decode(&body[..body.len() / 2], 5000), None, "{name}");
        }
        assert_eq!(ContentCoding::of("br"), None);
        assert!(!ContentCoding::Gzip.may_be(b"{}"));
    }
}
