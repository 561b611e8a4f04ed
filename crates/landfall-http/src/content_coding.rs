//! Bodies that a server or proxy compresses in transit (RFC 9110, 8.4), although landfall requests
//! them without compression.

use super::body::{ByteStream, HttpResponse, too_large};
use super::error::{ErrorKind, HttpError};
use bytes::{Buf, Bytes};
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use flate2::write;
use futures_util::StreamExt;
use landfall_model::Digest;
use reqwest::StatusCode;
use std::io::{self, Read, Write};
use url::Url;

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

/// A decoder that is fed while a body arrives.
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

    /// Decodes the beginning of `sent` and removes it, or decodes the end of the body if `sent` is
    /// empty. The result is short, however long `sent` and its content are.
    fn decode(&mut self, sent: &mut Bytes) -> io::Result<Vec<u8>> {
        if sent.is_empty() {
            match self {
                BodyDecoder::Gzip(decoder) => decoder.try_finish()?,
                BodyDecoder::Deflate(decoder) => decoder.try_finish()?,
                BodyDecoder::Zstd(decoder) => decoder.flush()?,
            }
        } else {
            // not `write_all`, after which a few kilobytes may have become many megabytes
            let count = match self {
                BodyDecoder::Gzip(decoder) => decoder.write(sent)?,
                BodyDecoder::Deflate(decoder) => decoder.write(sent)?,
                BodyDecoder::Zstd(decoder) => decoder.write(sent)?,
            };
            if count == 0 {
                return Err(io::Error::other("it has bytes after its end"));
            }
            sent.advance(count);
        }
        Ok(std::mem::take(match self {
            BodyDecoder::Gzip(decoder) => decoder.get_mut(),
            BodyDecoder::Deflate(decoder) => decoder.get_mut(),
            BodyDecoder::Zstd(decoder) => decoder.get_mut(),
        }))
    }
}

/// A body that is decoded while it arrives, up to a length.
struct DecodedBody {
    body: ByteStream,
    decoder: BodyDecoder,
    /// Received bytes that are not decoded yet.
    sent: Bytes,
    /// The number of bytes of the content that are not decoded yet.
    left: u64,
    url: Url,
}

impl DecodedBody {
    /// Returns the next bytes of the content and the rest of the body, or the error that ends the
    /// body. `None` after the end of the body.
    async fn next(mut self) -> Option<(Result<Bytes, HttpError>, Option<DecodedBody>)> {
        loop {
            let mut is_end = false;
            if self.sent.is_empty() {
                match self.body.next().await {
                    Some(Ok(sent)) if sent.is_empty() => continue,
                    Some(Ok(sent)) => self.sent = sent,
                    Some(Err(error)) => return Some((Err(error), None)),
                    None => is_end = true,
                }
            }
            match self.decode() {
                Ok(piece) if is_end => return Some((Ok(piece), None)),
                Ok(piece) if piece.is_empty() => {}
                Ok(piece) => return Some((Ok(piece), Some(self))),
                Err(error) => {
                    let words = format!("the response, which was compressed in transit: {error}");
                    let error = HttpError::new(ErrorKind::Invalid, words).at(&self.url);
                    return Some((Err(error), None));
                }
            }
        }
    }

    fn decode(&mut self) -> io::Result<Bytes> {
        let piece = self.decoder.decode(&mut self.sent)?;
        self.left = self
            .left
            .checked_sub(piece.len() as u64)
            .ok_or_else(|| io::Error::other("it decodes to more bytes than the content has"))?;
        Ok(piece.into())
    }
}

impl HttpResponse {
    /// The compressions in `Content-Encoding`. Other names change nothing: besides `identity`,
    /// servers send `none` and `utf-8`, and some object stores return what the uploader wrote, as
    /// `aws-chunked`.
    fn content_codings(&self) -> Vec<String> {
        let values = self.headers.get_all("content-encoding").iter();
        let values = values.filter_map(|value| value.to_str().ok());
        let names = values.flat_map(|value| value.split(',')).map(str::trim);
        let is_unknown = |name: &str| {
            let unknown = ["br", "compress", "x-compress"];
            unknown.iter().any(|known| name.eq_ignore_ascii_case(known))
        };
        let names = names.filter(|name| ContentCoding::of(name).is_some() || is_unknown(name));
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
        let decoder = BodyDecoder::new(coding).ok()?;
        if self.status != StatusCode::OK {
            return None;
        }
        let decoded = DecodedBody {
            decoder,
            sent: Bytes::new(),
            left: length,
            url: self.url.clone(),
            body: self.stream(),
        };
        let next = async |decoded: Option<DecodedBody>| decoded?.next().await;
        Some(futures_util::stream::unfold(Some(decoded), next).boxed())
    }

    /// Returns the body of a message as a stream, whatever its length. A body that was compressed
    /// in transit is decoded while it arrives.
    ///
    /// # Errors
    /// If landfall does not know the compression of `what`.
    pub fn message_stream(self, what: &str) -> Result<ByteStream, HttpError> {
        match self.compression_error(what) {
            Some(error) => self.decoded_stream(u64::MAX).ok_or(error),
            None => Ok(self.stream()),
        }
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
        let Some(coding) = single_coding(&codings) else {
            let unsupported = self.compression_error("the response");
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
            return if sent.len() <= limit {
                Ok(sent)
            } else {
                Err(too_large(&url, limit))
            };
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
    use crate::{HttpRequest, RequestPurpose, Transport, TransportConfig};
    use reqwest::Method;
    use std::net::TcpListener;

    /// The response of a server with this `Content-Encoding`.
    async fn response(coding: &str, body: Vec<u8>) -> HttpResponse {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.extend(byte);
            }
            // the client may not read all of it
            let _ = stream.write_all(&[head.as_bytes(), &body].concat());
        });
        let transport = Transport::new(TransportConfig::default());
        let request = HttpRequest::new(Method::GET, url.parse().unwrap(), RequestPurpose::File);
        transport.send(&request).await.unwrap()
    }

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

    /// Before, files that object stores return with `aws-chunked` were refused as compressed.
    #[tokio::test(flavor = "multi_thread")]
    async fn names_that_are_no_compressions_change_nothing() {
        for name in ["identity", "None", "UTF-8", "binary", "aws-chunked", ""] {
            let plain = response(name, b"text".to_vec()).await;
            assert!(plain.compression_error("the file").is_none(), "{name}");
            assert_eq!(plain.bytes(100).await.unwrap(), "text", "{name}");
        }
        let coded = response("aws-chunked, gzip", gzip(b"text")).await;
        assert!(coded.compression_error("the file").is_some());
        assert_eq!(coded.bytes(100).await.unwrap(), "text");
        for name in ["Br", "gzip, br"] {
            let coded = response(name, b"text".to_vec()).await;
            let error = coded.bytes(100).await.unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_limit_includes_a_body_that_is_not_in_the_announced_coding() {
        let read =
            async |length: usize| response("gzip", vec![b'x'; length]).await.bytes(100).await;
        assert_eq!(read(100).await.unwrap().len(), 100);
        let error = read(101).await.unwrap_err().to_string();
        assert!(
            error.contains("larger than the limit of 100 bytes"),
            "{error}"
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_stream_is_decoded_in_small_pieces() {
        const SIZE: usize = 64 << 20;
        let zeros = vec![0; SIZE];
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(&zeros).unwrap();
        for (name, body) in [
            ("gzip", gzip(&zeros)),
            ("deflate", zlib.finish().unwrap()),
            ("zstd", zstd::encode_all(&zeros[..], 1).unwrap()),
        ] {
            let mut stream = response(name, body)
                .await
                .decoded_stream(SIZE as u64)
                .unwrap();
            let mut size = 0;
            while let Some(piece) = stream.next().await {
                let piece = piece.unwrap();
                // a piece of the network is much smaller than what it decodes to
                assert!(piece.len() <= 1 << 20, "{name}: {}", piece.len());
                size += piece.len();
            }
            assert_eq!(size, SIZE, "{name}");
        }
        let zlib = [&b"\x78\x01\x01\0\0\xff\xff\0\0\0\x01"[..], b"more"].concat();
        for (name, body) in [
            ("deflate", zlib),
            ("gzip", gzip(b"four!")),
            ("zstd", vec![0; 9]),
        ] {
            let stream = response(name, body).await.decoded_stream(4).unwrap();
            let pieces: Vec<_> = stream.collect().await;
            assert!(pieces.last().unwrap().is_err(), "{name}");
            assert!(pieces.iter().rev().skip(1).all(Result::is_ok), "{name}");
        }
    }
}
