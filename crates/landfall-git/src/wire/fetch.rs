//! The command `fetch`: the request for a pack.

use super::packet::{push_delimiter, push_flush, push_text};
use crate::object::ObjectId;

/// The request for a pack with all objects that are reachable from `wants` but not from `haves`. If
/// `depth` is given, only the last `depth` commits of each history are requested.
pub fn fetch_request(wants: &[ObjectId], haves: &[ObjectId], depth: Option<u32>) -> Vec<u8> {
    let mut request = Vec::new();
    push_text(&mut request, "command=fetch");
    push_text(&mut request, "agent=landfall");
    push_text(&mut request, "object-format=sha1");
    push_delimiter(&mut request);
    // without `thin-pack`, so that all bases of deltas are in the pack
    push_text(&mut request, "no-progress");
    push_text(&mut request, "ofs-delta");
    for id in wants {
        push_text(&mut request, &format!("want {id}"));
    }
    for id in haves {
        push_text(&mut request, &format!("have {id}"));
    }
    if let Some(depth) = depth {
        push_text(&mut request, &format!("deepen {depth}"));
    }
    // no negotiation: the server sends the pack at once
    push_text(&mut request, "done");
    push_flush(&mut request);
    request
}
