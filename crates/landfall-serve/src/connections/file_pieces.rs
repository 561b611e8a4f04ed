//! Pieces of bodies that the system sends from files, without a copy of their bytes. hyper is given
//! blank bytes in the place of a piece; where the stream of the connection is to write these, it
//! sends the file. hyper hands on the bytes of a body as they are and in order, as long as the
//! stream takes several slices at once.

use axum::body::Bytes;
use landfall_content::FileRun;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::TcpStream;

/// What stands for pieces. Where it lies in memory says what it is; nobody reads it.
static BLANK: [u8; FilePieces::LONGEST] = [0; FilePieces::LONGEST];

/// The pieces of a connection that are to be sent.
#[derive(Clone, Default)]
pub(in super::super) struct FilePieces(Arc<Mutex<VecDeque<FileRun>>>);

impl FilePieces {
    /// The longest piece, in bytes.
    pub(in super::super) const LONGEST: usize = 1 << 20;

    /// The bytes to give to hyper for `runs`, which have at most [`FilePieces::LONGEST`] together.
    /// They are sent in the order of these calls.
    pub(in super::super) fn stand_in(&self, runs: Vec<FileRun>) -> Bytes {
        let length = runs.iter().map(|run| run.length).sum::<u64>() as usize;
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(runs);
        Bytes::from_static(&BLANK[..length])
    }

    /// Whether `bytes` stand for pieces.
    pub(super) fn is_meant(bytes: &[u8]) -> bool {
        !bytes.is_empty() && BLANK.as_ptr_range().contains(&bytes.as_ptr())
    }

    /// Sends at most `most` bytes of the pieces, as many as `stream` takes now.
    ///
    /// # Errors
    /// Of kind `WouldBlock` where it takes none; when it fails, or a file ends early.
    pub(super) fn send(&self, stream: &TcpStream, most: usize) -> io::Result<usize> {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sent = 0;
        while sent < most {
            let run = runs
                .front_mut()
                .ok_or_else(|| io::Error::other("no file stands for these bytes"))?;
            let count = run.length.min((most - sent) as u64);
            match rustix::fs::sendfile(stream, &run.file, Some(&mut run.at), count as usize) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(now) => {
                    sent += now;
                    run.length -= now as u64;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if sent > 0 => break,
                Err(error) => return Err(error.into()),
            }
            if run.length == 0 {
                runs.pop_front();
            }
        }
        Ok(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn runs_are_sent_in_order_and_a_file_that_ends_early_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, b"abcdefghij").unwrap();
        let file = Arc::new(File::open(&path).unwrap());
        let run = |at, length| FileRun {
            file: file.clone(),
            at,
            length,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (stream, peer) = tokio::join!(
            TcpStream::connect(listener.local_addr().unwrap()),
            listener.accept()
        );
        let (stream, (mut peer, _)) = (stream.unwrap(), peer.unwrap());
        let pieces = FilePieces::default();
        let bytes = pieces.stand_in(vec![run(2, 3), run(7, 2)]);
        assert!(
            bytes.len() == 5 && FilePieces::is_meant(&bytes) && FilePieces::is_meant(&bytes[4..])
        );
        assert!(!FilePieces::is_meant(b"abc") && !FilePieces::is_meant(&bytes[5..]));
        stream.writable().await.unwrap();
        assert_eq!(pieces.send(&stream, 4).unwrap(), 4);
        assert_eq!(pieces.send(&stream, 1).unwrap(), 1);
        let mut got = [0; 5];
        peer.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"cdehi");
        assert!(pieces.send(&stream, 1).is_err(), "nothing stands for more");
        pieces.stand_in(vec![run(8, 5)]);
        assert_eq!(pieces.send(&stream, 2).unwrap(), 2);
        let ended = pieces.send(&stream, 3).unwrap_err().kind();
        assert_eq!(ended, io::ErrorKind::UnexpectedEof);
    }
}
