//! What the unit tests of this folder share: content in memory, and locked items made on the spot.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test ends where something fails"
)]

use super::{ServeError, ServeOptions, ServedContent, serve};
use landfall_content::MemoryBlobs;
use landfall_item::{LockedFile, LockedImage};
use landfall_model::report::SilentProgress;
use landfall_model::{Descriptor, Digest, Limits, media_type};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Content in memory.
pub fn memory(contents: &[&[u8]]) -> MemoryBlobs {
    MemoryBlobs(
        contents
            .iter()
            .map(|bytes| (Digest::sha256(bytes), bytes.to_vec().into()))
            .collect(),
    )
}

/// A locked image of one manifest, `manifest`.
pub fn image(name: &str, manifest: &[u8]) -> LockedImage {
    let (digest, size) = (Digest::sha256(manifest), manifest.len() as u64);
    let top = Descriptor {
        digest,
        size,
        media_type: media_type::OCI_MANIFEST.into(),
    };
    LockedImage::new(name.parse().unwrap(), top)
}

/// A locked file.
pub fn file(url: &str, content: &[u8]) -> LockedFile {
    LockedFile::new(url, Digest::sha256(content), content.len() as u64)
}

/// A server for the test, which ends when this is dropped.
pub struct TestServer {
    /// `host:port`
    pub address: String,
    _stop: tokio::sync::oneshot::Sender<()>,
}

/// Serves what `load` gives.
pub fn start(
    writable: Option<&Path>,
    load: impl Fn() -> ServedContent + Send + 'static,
) -> TestServer {
    let writable = writable.map(Path::to_path_buf);
    let (told, ready) = channel();
    let (stop, stopped) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        let options = ServeOptions {
            listen: vec!["127.0.0.1:0".into()],
            target: None,
            site: None,
            writable,
            max_bytes: None,
            anonymous_push: false,
            redirect: false,
            drain: Duration::ZERO,
            log: None,
            limits: Limits::default(),
            progress: Arc::new(SilentProgress),
        };
        let load = || Ok::<_, ServeError>(load());
        let ready = |serving: &super::ServerInfo| told.send(serving.urls[0].clone()).unwrap();
        let stop = async { drop(stopped.await) };
        runtime
            .block_on(serve(
                options,
                load,
                ready,
                async || std::future::pending().await,
                stop,
            ))
            .unwrap();
    });
    let address = ready
        .recv()
        .unwrap()
        .trim_start_matches("http://")
        .to_owned();
    TestServer {
        address,
        _stop: stop,
    }
}

/// Status and body of the answer to a GET with these header lines.
pub fn get(address: &str, target: &str, headers: &str) -> (u16, Vec<u8>) {
    let (head, body) = answer(address, target, headers);
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body)
}

/// Head and body of the same.
pub(super) fn answer(address: &str, target: &str, headers: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    let head =
        format!("GET {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let end = answer
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .unwrap();
    let body = answer.split_off(end + 4);
    (String::from_utf8(answer).unwrap(), body)
}
