//! One connection: reads requests, and writes responses as the fault requires.

use socket2::SockRef;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A request, as received.
pub(super) struct Request {
    pub(super) method: String,
    /// Path and query as received.
    pub(super) target: String,
    pub(super) path: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) headers: Vec<(String, String)>,
    /// Length of the body, which has not been read.
    pub(super) length: usize,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(own, _)| own == name)
            .map(|(_, value)| value.as_str())
    }

    pub(super) fn query(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(own, _)| own == name)
            .map(|(_, value)| value.as_str())
    }

    /// The start of `bytes=START-`.
    pub(super) fn range(&self) -> Option<usize> {
        self.header("range")?
            .strip_prefix("bytes=")?
            .split('-')
            .next()?
            .parse()
            .ok()
    }
}

/// A response, and how its body is sent.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// The value of `Content-Length`, by default the length of the body; `None` omits the header.
    pub(super) length: Option<usize>,
    pub(super) hold: Duration,
    /// The number of bytes after which the connection is closed.
    pub(super) cut: Option<usize>,
    /// The number of bytes after which nothing more is sent.
    pub(super) stall: Option<usize>,
    pub(super) drip: Option<(usize, Duration)>,
    pub(super) hang_up: bool,
}

impl Answer {
    pub(super) fn new(status: u16, body: impl Into<Vec<u8>>) -> Answer {
        let body = body.into();
        Answer {
            status,
            headers: Vec::new(),
            length: Some(body.len()),
            body,
            hold: Duration::ZERO,
            cut: None,
            stall: None,
            drip: None,
            hang_up: false,
        }
    }

    pub(super) fn header(mut self, name: &str, value: impl Into<String>) -> Answer {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// An error of the distribution API.
    pub(super) fn error(status: u16, code: &str) -> Answer {
        let body =
            format!(r#"{{"errors":[{{"code":"{code}","message":"as the test requested"}}]}}"#);
        Answer::new(status, body).header("Content-Type", "application/json")
    }
}

/// A connection of a client.
pub(super) struct Wire {
    reader: BufReader<TcpStream>,
    stream: TcpStream,
    /// Bytes of bodies in both directions.
    moved: Arc<AtomicUsize>,
}

impl Wire {
    pub(super) fn new(stream: TcpStream, moved: Arc<AtomicUsize>) -> Wire {
        let _ = stream.set_nodelay(true);
        // few bytes are in transit when a client is killed, even if it had no time to read them
        SockRef::from(&stream)
            .set_send_buffer_size(64 << 10)
            .unwrap();
        Wire {
            reader: BufReader::new(stream.try_clone().unwrap()),
            stream,
            moved,
        }
    }

    /// Reads the head of the next request; `None` if the connection ends or the request is not
    /// HTTP/1.1.
    pub(super) fn request(&mut self) -> Option<Request> {
        const HANDSHAKE: u8 = 0x16;
        let mut first = Vec::new();
        if self.reader.fill_buf().ok()?.first() == Some(&HANDSHAKE) {
            let _ = self
                .stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
            return None;
        }
        self.reader
            .by_ref()
            .take(8192)
            .read_until(b'\n', &mut first)
            .ok()?;
        let first = String::from_utf8(first).ok()?;
        let mut words = first.split_whitespace();
        let method = words.next()?.to_owned();
        let target = words.next()?.to_owned();
        if words.next() != Some("HTTP/1.1") {
            let _ = self
                .stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
            return None;
        }
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length
            .and_then(|(_, value)| value.parse().ok())
            .unwrap_or(0);
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let query = url::form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        let path = path.to_owned();
        Some(Request {
            method,
            target,
            path,
            query,
            headers,
            length,
        })
    }

    /// Reads this many bytes of the request body, in pieces with a pause after each. Reads fewer if
    /// the client disconnects first.
    pub(super) fn body(&mut self, length: usize, pace: Option<(usize, Duration)>) -> Vec<u8> {
        let (piece, pause) = pace.unwrap_or((usize::MAX, Duration::ZERO));
        let mut body = Vec::new();
        while body.len() < length {
            let next = piece.min(length - body.len()) as u64;
            match self.reader.by_ref().take(next).read_to_end(&mut body) {
                Ok(count) if count > 0 => {
                    self.moved.fetch_add(count, Ordering::Relaxed);
                    std::thread::sleep(pause);
                }
                _ => break,
            }
        }
        body
    }

    /// Sends the response. Returns how many bytes of the body were sent, and whether the connection
    /// stays open.
    pub(super) fn answer(&mut self, answer: &Answer, head_only: bool) -> (usize, bool) {
        std::thread::sleep(answer.hold);
        if answer.hang_up {
            let _ = self.stream.shutdown(Shutdown::Both);
            return (0, false);
        }
        let mut head = format!("HTTP/1.1 {} Test\r\n", answer.status);
        for (name, value) in &answer.headers {
            head += &format!("{name}: {value}\r\n");
        }
        match answer.length {
            Some(length) => head += &format!("Content-Length: {length}\r\n"),
            None => head += "Connection: close\r\n",
        }
        if self
            .stream
            .write_all(format!("{head}\r\n").as_bytes())
            .is_err()
        {
            return (0, false);
        }
        if head_only {
            return (0, answer.length.is_some());
        }
        let end = answer
            .cut
            .or(answer.stall)
            .unwrap_or(usize::MAX)
            .min(answer.body.len());
        let (piece, pause) = answer.drip.unwrap_or((64 << 10, Duration::ZERO));
        let mut sent = 0;
        for piece in answer.body[..end].chunks(piece.max(1)) {
            if self.stream.write_all(piece).is_err() {
                return (sent, false);
            }
            sent += piece.len();
            self.moved.fetch_add(piece.len(), Ordering::Relaxed);
            std::thread::sleep(pause);
        }
        if answer.stall.is_some() {
            // until the client closes the connection
            let _ = self.stream.set_read_timeout(Some(Duration::from_mins(1)));
            let _ = self.reader.fill_buf();
        }
        let whole = answer.cut.is_none() && answer.stall.is_none();
        let is_kept_open = whole && answer.length == Some(answer.body.len());
        if !is_kept_open {
            let _ = self.stream.shutdown(Shutdown::Both);
        }
        (sent, is_kept_open)
    }

    pub(super) fn hang_up(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
