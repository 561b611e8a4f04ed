//! A proxy that intercepts TLS: it accepts CONNECT for any host, presents a certificate of its own,
//! and forwards the decrypted requests to one server on loopback.

use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A proxy that runs until the process ends.
pub struct Interceptor {
    pub address: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Interceptor {
    /// Accepts CONNECT, presents this certificate, and forwards to `behind`.
    pub fn new(certificate: (&Path, &Path), behind: &str) -> Interceptor {
        let chain = CertificateDer::pem_file_iter(certificate.0)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let key = PrivateKeyDer::from_pem_file(certificate.1).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        Interceptor::start(Answer::Open(TlsAcceptor::from(Arc::new(config))), behind)
    }

    /// Answers every CONNECT and every request with this text and closes the connection.
    pub fn saying(answer: &str) -> Interceptor {
        Interceptor::start(Answer::Say(answer.into()), "")
    }

    fn start(answer: Answer, behind: &str) -> Interceptor {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = heads.clone();
        let behind = behind.to_owned();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                listener.set_nonblocking(true).unwrap();
                let listener = TcpListener::from_std(listener).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, answer.clone(), behind.clone(), seen.clone()));
                }
            });
        });
        Interceptor { address, heads }
    }

    /// The heads of all requests to the proxy so far, without the requests inside TLS.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

#[derive(Clone)]
enum Answer {
    Open(TlsAcceptor),
    Say(String),
}

async fn serve(stream: TcpStream, answer: Answer, behind: String, seen: Arc<Mutex<Vec<String>>>) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
            return;
        }
    }
    seen.lock().unwrap().push(head);
    match answer {
        Answer::Say(text) => {
            let _ = stream.write_all(text.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
        Answer::Open(acceptor) => {
            let _ = stream
                .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                .await;
            let Ok(mut plain) = acceptor.accept(stream).await else {
                return;
            };
            let Ok(mut server) = TcpStream::connect(&behind).await else {
                return;
            };
            let _ = tokio::io::copy_bidirectional(&mut plain, &mut server).await;
        }
    }
}
