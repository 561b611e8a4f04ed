//! `landfall serve` under load and with stalled clients, which do not affect others.

use crate::support::http::{get, is_closed, metric, put_blob, request};
use crate::support::images::{noise, sha256};
use crate::support::peers::Server;
use crate::support::{Place, landfall_serve, wait_for};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Sends a GET request on a new connection. Returns the connection without reading the response.
fn asks(server: &Server, target: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_mins(1)))
        .unwrap();
    write!(stream, "GET {target} HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    stream
}

/// Reads a response with a body of a known size, and keeps the connection open.
fn read_answer(stream: &mut TcpStream, size: usize) -> Vec<u8> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(
        head.starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&head)
    );
    let mut body = vec![0; size];
    stream.read_exact(&mut body).unwrap();
    body
}

/// Raises the limit of open files of this process, which runs all clients.
fn open_many_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// The resident memory of the server in KiB.
fn memory(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Starts a server with an incompressible blob of `size` bytes. Also returns the blob's path on the
/// server, and its content.
fn with_blob(place: &Place, size: usize, args: &[&str]) -> (Server, String, Vec<u8>) {
    let server = landfall_serve(place, &[&["--writable", "written"], args].concat());
    let blob = noise(1, size);
    put_blob(&server.address, "a", &sha256(&blob), &blob);
    let target = format!("/v2/a/blobs/{}", sha256(&blob));
    (server, target, blob)
}

#[test]
fn a_thousand_idle_connections_stay_open() {
    let place = Place::new();
    let (server, target, blob) = with_blob(&place, 1000, &[]);
    open_many_files();
    let mut idle: Vec<TcpStream> = (0..1000).map(|_| asks(&server, &target)).collect();
    idle.iter_mut()
        .for_each(|stream| assert!(read_answer(stream, 1000) == blob));
    assert!(get(&server.address, &target).body == blob);
    // all of them are still open
    for stream in &mut idle {
        write!(stream, "GET {target} HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        assert!(read_answer(stream, 1000) == blob);
    }
    assert_eq!(
        metric(
            &server.address,
            "landfall_connections_closed_total{why=\"room\"}"
        ),
        0
    );
}

#[test]
fn the_longest_idle_connection_is_closed_for_a_new_one() {
    let place = Place::new();
    let (server, target, blob) = with_blob(&place, 1000, &["--max-connections", "20"]);
    let mut idle: Vec<TcpStream> = Vec::new();
    for _ in 0..20 {
        idle.push(asks(&server, &target));
        assert!(read_answer(idle.last_mut().unwrap(), 1000) == blob);
    }
    for round in 0..50 {
        assert!(get(&server.address, &target).body == blob, "{round}");
    }
    assert!(
        metric(
            &server.address,
            "landfall_connections_closed_total{why=\"room\"}"
        ) >= 1
    );
    assert!(is_closed(&idle[0]), "the oldest connection is closed");
    let last = &mut idle[19];
    write!(last, "GET {target} HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    assert!(
        read_answer(last, 1000) == blob,
        "the newest connection stays open"
    );
}

#[test]
fn clients_that_never_read_do_not_block_the_server() {
    let place = Place::new();
    let (server, target, blob) = with_blob(&place, 24 << 20, &["--max-requests", "256"]);
    open_many_files();
    let before = memory(&server);
    let stalled: Vec<TcpStream> = (0..256).map(|_| asks(&server, &target)).collect();
    // the stalled clients hold all request slots; a request that waits gets the slot of one of them
    for _ in 0..3 {
        assert!(get(&server.address, &target).body == blob);
    }
    let more = memory(&server).saturating_sub(before);
    assert!(
        more < 150 << 10,
        "{more} KiB for {} clients that never read",
        stalled.len()
    );
    assert_eq!(get(&server.address, "/healthz").text(), "ok\n");
}

#[test]
fn a_response_that_is_not_read_is_aborted() {
    let place = Place::new();
    let (server, target, _) = with_blob(&place, 24 << 20, &["--stall", "1s"]);
    let stalled: Vec<TcpStream> = (0..10).map(|_| asks(&server, &target)).collect();
    wait_for("the end of ten stalled connections", || {
        let name = "landfall_connections_closed_total{why=\"stalled\"}";
        metric(&server.address, name) >= 10
    });
    assert!(stalled.iter().all(is_closed));
    // the connections are counted before their requests end
    wait_for("the end of their requests", || {
        metric(&server.address, "landfall_requests_in_flight") == 0
    });
}

#[test]
fn idle_connections_and_partial_requests_time_out() {
    let place = Place::new();
    let (server, target, _) = with_blob(&place, 1000, &["--keep-alive", "1s"]);
    let mut idle = asks(&server, &target);
    read_answer(&mut idle, 1000);
    let mut half = TcpStream::connect(&server.address).unwrap();
    half.write_all(b"GET / HTTP/1.1\r\nHost").unwrap();
    let silent = TcpStream::connect(&server.address).unwrap();
    assert!(is_closed(&idle) && is_closed(&half) && is_closed(&silent));
}

#[test]
fn requests_above_the_limit_wait_and_are_served() {
    let place = Place::new();
    let (server, target, blob) = with_blob(&place, 24 << 20, &["--max-requests", "4"]);
    // clients that never read hold all slots
    let in_flight = || metric(&server.address, "landfall_requests_in_flight");
    let stalled: Vec<TcpStream> = (0..12).map(|_| asks(&server, &target)).collect();
    wait_for("four requests in progress", || in_flight() == 4);
    std::thread::scope(|scope| {
        let threads = (0..40).map(|_| scope.spawn(|| get(&server.address, &target)));
        let threads = threads.collect::<Vec<_>>();
        let most = (0..50).map(|_| in_flight()).max();
        assert_eq!(most, Some(4), "the largest number of requests in progress");
        for answer in threads {
            assert!(answer.join().unwrap().body == blob);
        }
    });
    drop(stalled);
}

#[test]
fn stalled_uploads_lose_their_slot() {
    let place = Place::new();
    let (server, target, blob) = with_blob(&place, 1000, &["--max-requests", "4"]);
    let still: Vec<TcpStream> = (0..4)
        .map(|_| {
            let begun = request("POST", &server.address, "/v2/a/blobs/uploads/", &[], b"");
            let location = begun.header("location").unwrap();
            let mut stream = TcpStream::connect(&server.address).unwrap();
            write!(
                stream,
                "PATCH {location} HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n"
            )
            .unwrap();
            stream
        })
        .collect();
    wait_for("four uploads that hold all slots", || {
        metric(&server.address, "landfall_requests_in_flight") == 4
    });
    assert!(get(&server.address, &target).body == blob);
    drop(still);
}

/// A short version of the load that `scripts/load` generates for a minute.
#[test]
fn idle_clients_and_readers_and_stalled_clients_cause_no_error() {
    let place = Place::new();
    let (server, target, blob) = with_blob(&place, 6 << 20, &[]);
    open_many_files();
    let idle: Vec<TcpStream> = (0..300)
        .map(|_| TcpStream::connect(&server.address).unwrap())
        .collect();
    let stalled: Vec<TcpStream> = (0..50).map(|_| asks(&server, &target)).collect();
    std::thread::scope(|scope| {
        for _ in 0..40 {
            scope
                .spawn(|| (0..2).for_each(|_| assert!(get(&server.address, &target).body == blob)));
        }
    });
    assert_eq!(
        metric(
            &server.address,
            "landfall_connections_closed_total{why=\"room\"}"
        ),
        0
    );
    drop((idle, stalled));
}
