//! Selects the page for a request and renders it.

use super::changes::render_changes;
use super::commands::ReaderAddress;
use super::list::render_list;
use super::list_query::ListQuery;
use super::nodes::render_nodes;
use super::page_frame::{PAGES, PageFrame};
use crate::catalog::ItemListing;
use crate::request_host::ServerName;
use crate::response::RequestError;
use crate::state::ServerState;
use axum::http::header::HOST;
use axum::http::request::Parts;
use landfall_model::report::EntryKind;

/// The page at the path of the request; `None` if there is none. Names and URLs on the page contain
/// the host by which the reader reached this server (the `Host` header).
pub(crate) fn page(state: &ServerState, parts: &Parts) -> Option<Result<Vec<u8>, RequestError>> {
    let page = PAGES.iter().find(|page| page.path == parts.uri.path())?;
    let host = parts
        .headers
        .get(HOST)
        .and_then(|host| host.to_str().ok())
        // the host becomes part of commands that readers paste into a shell
        .filter(|host| is_host(host));
    let address = ReaderAddress {
        host: host.unwrap_or(&state.address),
        is_tls: parts.extensions.get::<ServerName>().is_some(),
    };
    Some(render(
        state,
        PageFrame { page, address },
        parts.uri.query(),
    ))
}

fn render(
    state: &ServerState,
    frame: PageFrame<'_>,
    query: Option<&str>,
) -> Result<Vec<u8>, RequestError> {
    let listings = &state.bundles.listings;
    let rendered = match frame.page.path {
        "/changes" => render_changes(frame, listings),
        "/nodes" => {
            let guides = match &state.guides {
                Some(guides) => guides(frame.address.host, frame.address.is_tls),
                None => Vec::new(),
            };
            render_nodes(frame, &state.bundles, guides)
        }
        _ => {
            let pushed = pushed_images(state)?;
            let query = ListQuery::parse(query);
            render_list(frame, listings, &pushed, &state.blobs, &query)
        }
    };
    match rendered {
        Ok(html) => Ok(html.into_bytes()),
        Err(error) => Err(RequestError::internal(format!(
            "cannot render the page: {error}"
        ))),
    }
}

/// The tags that were pushed to this server.
fn pushed_images(state: &ServerState) -> Result<Vec<ItemListing>, RequestError> {
    let mut images = Vec::new();
    let Some(store) = &state.writable else {
        return Ok(images);
    };
    for name in store.repositories().map_err(RequestError::disk)? {
        let tags = store.tags(&name).map_err(RequestError::disk)?;
        for tag in tags.unwrap_or_default() {
            // a tag may be deleted meanwhile
            if let Some(digest) = store.tag(&name, &tag).map_err(RequestError::disk)? {
                let image = format!("{name}:{tag}");
                let kind = EntryKind::Image;
                images.push(ItemListing::new(kind, image.clone(), image, digest));
            }
        }
    }
    Ok(images)
}

fn is_host(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".:-[]_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_valid_host_is_shown() {
        assert!(is_host("[::1]:5000") && !is_host("x\"y") && !is_host(""));
    }
}
