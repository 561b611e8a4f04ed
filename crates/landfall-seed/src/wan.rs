//! A long line: a proxy that lets bytes through late, and not faster than so much a connection. A
//! new connection costs a round trip first, as in TCP; slow start and losses are left out.

use anyhow::{Context, Result};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, sleep_until};

/// What is read at once, in bytes. The line runs on the processors of what is measured, and small
/// pieces cost them more.
const PIECE: usize = 64 << 10;
/// Pieces on the line in one direction: a window of 1 MiB.
const WINDOW: usize = 16;

/// Answers at `listen` for `target`, `delay` late each way, with `rate` bytes a second for each
/// connection and direction.
pub(crate) async fn wan(listen: &str, target: &str, delay: Duration, rate: f64) -> Result<()> {
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| listen.to_owned())?;
    loop {
        let (near, _) = listener.accept().await?;
        let target = target.to_owned();
        tokio::spawn(async move {
            sleep(2 * delay).await;
            let Ok(far) = TcpStream::connect(&target).await else {
                return;
            };
            let _ = (near.set_nodelay(true), far.set_nodelay(true));
            let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
            tokio::join!(
                line(near_in, far_out, delay, rate),
                line(far_in, near_out, delay, rate)
            );
        });
    }
}

async fn line(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration, rate: f64) {
    let (sender, mut receiver) = tokio::sync::mpsc::channel::<(Instant, Vec<u8>)>(WINDOW);
    let reading = async move {
        // when the line has taken what was put on it
        let mut free = Instant::now();
        let mut piece = vec![0; PIECE];
        while let Ok(count @ 1..) = from.read(&mut piece).await {
            // timers are late by a millisecond or two: that is made good, an idle line is not
            free = free.max(Instant::now() - Duration::from_millis(5));
            free += Duration::from_secs_f64(count as f64 / rate);
            if sender
                .send((free + delay, piece[..count].to_vec()))
                .await
                .is_err()
            {
                break;
            }
            sleep_until(free).await;
        }
    };
    let writing = async move {
        while let Some((due, piece)) = receiver.recv().await {
            sleep_until(due).await;
            if to.write_all(&piece).await.is_err() {
                break;
            }
        }
        let _ = to.shutdown().await;
    };
    tokio::join!(reading, writing);
}
