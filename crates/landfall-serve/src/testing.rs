//! Helpers for tests: content in memory, locked items, and a server in a thread.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a failure ends the test"
)]

use crate::{ServeOptions, ServedContent, serve};
use landfall_content::MemoryBlobs;
use landfall_item::{LockedFile, LockedImage};
use landfall_model::config::Site;
use landfall_model::report::SilentProgress;
use landfall_model::{Descriptor, Digest, Failure, Limits, media_type};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Returns blobs in memory with these contents.
pub fn memory(contents: &[&[u8]]) -> MemoryBlobs {
    MemoryBlobs(
        contents
            .iter()
            .map(|bytes| (Digest::sha256(bytes), bytes.to_vec().into()))
            .collect(),
    )
}

/// A locked image with this single manifest.
pub fn image(name: &str, manifest: &[u8]) -> LockedImage {
    let digest = Digest::sha256(manifest);
    let size = manifest.len() as u64;
    let top = Descriptor::new(digest, size, media_type::OCI_MANIFEST);
    LockedImage::new(name.parse().unwrap(), top)
}

/// A locked file with this content.
pub fn file(url: &str, content: &[u8]) -> LockedFile {
    LockedFile::new(url, Digest::sha256(content), content.len() as u64)
}

/// A server that stops when this value is dropped.
pub struct TestServer {
    /// The address, as `host:port`.
    pub address: String,
    _stop: tokio::sync::oneshot::Sender<()>,
}

/// Starts a server for the content of `load`, and waits until clients can connect.
pub fn start(
    writable: Option<&Path>,
    load: impl Fn() -> ServedContent + Send + 'static,
) -> TestServer {
    start_server(None, writable, load)
}

/// Like [`start`], read-only and for the site with this text.
#[cfg(test)]
pub(crate) fn start_at_site(
    site: &'static str,
    load: impl Fn() -> ServedContent + Send + 'static,
) -> TestServer {
    start_server(Some(site), None, load)
}

/// The options of a read-only server on a free port of loopback.
pub(crate) fn test_options() -> ServeOptions<'static> {
    ServeOptions {
        listen: vec!["127.0.0.1:0".into()],
        target: None,
        site: None,
        writable: None,
        max_bytes: None,
        anonymous_push: false,
        redirect: false,
        drain: Duration::ZERO,
        log: None,
        limits: Limits::default(),
        progress: Arc::new(SilentProgress),
    }
}

fn start_server(
    site: Option<&'static str>,
    writable: Option<&Path>,
    load: impl Fn() -> ServedContent + Send + 'static,
) -> TestServer {
    let site = site.map(|text| Site::parse(Path::new("site.yaml"), text).unwrap());
    let writable = writable.map(Path::to_path_buf);
    let (started, address) = channel();
    let (stop, stopped) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        let options = ServeOptions {
            site: site.as_ref(),
            writable,
            ..test_options()
        };
        let load = || Ok::<_, Failure>(load());
        let ready = |info: &crate::ServerInfo| started.send(info.urls[0].clone()).unwrap();
        let stop = async move { drop(stopped.await) };
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
    let address = address
        .recv()
        .unwrap()
        .trim_start_matches("http://")
        .to_owned();
    TestServer {
        address,
        _stop: stop,
    }
}

/// Sends a GET with these header lines; returns status and body of the response.
pub fn get(address: &str, target: &str, headers: &str) -> (u16, Vec<u8>) {
    let (head, body) = send(address, target, headers);
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body)
}

/// Like [`get`], but returns the whole head.
pub(crate) fn send(address: &str, target: &str, headers: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    let head =
        format!("GET {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response);
    let end = response
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .unwrap();
    let body = response.split_off(end + 4);
    (String::from_utf8(response).unwrap(), body)
}
