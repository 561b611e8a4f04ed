//! The page for people: what the server holds and the commands that get it (`/`), what is new
//! (`/changes`), and how to point a node here (`/nodes`). Each is whole without a script and refers
//! to nothing outside of itself; the one script copies commands and searches while somebody types.

mod asked;
mod attached;
mod changes;
mod commands;
mod frame;
mod list;
mod nodes;
mod row;

pub(super) use attached::Attached;
pub(super) use frame::POLICY;

use self::asked::Asked;
use self::commands::Here;
use self::frame::{Frame, PAGES};
use super::origin::ServerName;
use super::response::ApiError;
use super::state::State;
use axum::http::header::HOST;
use axum::http::request::Parts;

/// The page at the path of the request; `None` where there is none. Names in it begin with the host
/// by which the reader reached this server (the `Host` header).
pub(super) fn page(state: &State, parts: &Parts) -> Option<Result<Vec<u8>, ApiError>> {
    let current = PAGES
        .iter()
        .position(|page| page.path == parts.uri.path())?;
    let host = parts
        .headers
        .get(HOST)
        .and_then(|host| host.to_str().ok())
        .filter(|host| is_host(host));
    let is_tls = parts.extensions.get::<ServerName>().is_some();
    let here = Here {
        host: host.unwrap_or(&state.address),
        is_tls,
    };
    let body = match PAGES[current].path {
        "/changes" => Ok(changes::body(&state.bundles)),
        "/nodes" => Ok(nodes::body(state, here)),
        _ => list::body(state, here, &Asked::read(parts.uri.query())),
    };
    Some(body.map(|body| {
        Frame {
            current,
            host: here.host,
            body: &body,
        }
        .write()
    }))
}

fn is_host(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b".:-[]_".contains(&byte))
        && !text.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_a_host_is_shown_as_one() {
        assert!(is_host("[::1]:5000") && !is_host("x\"y") && !is_host(""));
    }
}
