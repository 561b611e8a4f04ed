//! Simulates a slow network: a proxy that delays all bytes and limits the rate of each connection.
//! A new connection costs a round trip first, as in TCP; slow start and losses are not simulated.

use anyhow::{Context, Result};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, sleep_until};

/// The size of a read, in bytes. The proxy shares its processors with the programs that are
/// measured, and smaller reads cost more processor time.
const CHUNK: usize = 64 << 10;
/// The number of chunks in flight in one direction: a window of 1 MiB.
const WINDOW: usize = 16;

/// Forwards connections from `listen` to `target`, with `delay` each way and `rate` bytes a second
/// for each connection and direction.
pub(crate) async fn proxy(listen: &str, target: &str, delay: Duration, rate: f64) -> Result<()> {
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| listen.to_owned())?;
    loop {
        let (near, _) = listener.accept().await?;
        let target = target.to_owned();
        tokio::spawn(async move {
            // the handshake of TCP takes a round trip before the first byte
            sleep(2 * delay).await;
            let Ok(far) = TcpStream::connect(&target).await else {
                return;
            };
            // Nagle's algorithm would add delays of its own to small requests
            let _ = near.set_nodelay(true);
            let _ = far.set_nodelay(true);
            let (near_in, near_out) = near.into_split();
            let (far_in, far_out) = far.into_split();
            tokio::join!(
                forward(near_in, far_out, delay, rate),
                forward(far_in, near_out, delay, rate)
            );
        });
    }
}

/// Forwards one direction of a connection until its end.
async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration, rate: f64) {
    let (sender, mut receiver) = tokio::sync::mpsc::channel::<(Instant, Vec<u8>)>(WINDOW);
    let reading = async move {
        // the time at which the simulated link has sent all bytes so far
        let mut free = Instant::now();
        let mut piece = vec![0; CHUNK];
        while let Ok(count @ 1..) = from.read(&mut piece).await {
            // timers fire a millisecond or two late, so up to 5 ms of delay are compensated to keep
            // the rate; compensating more would turn idle time into a burst
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
        // ends only this direction, because the opposite direction may still have data
        let _ = to.shutdown().await;
    };
    tokio::join!(reading, writing);
}
