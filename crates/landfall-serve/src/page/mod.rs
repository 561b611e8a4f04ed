//! The web page: the content of the server and the commands that fetch it (`/`), the changes of
//! each bundle (`/changes`), the configuration of nodes (`/nodes`), and what clients asked for in
//! vain (`/misses`).
//!
//! Each page contains its style and script, loads no other file, and also works without the script.
//! The script copies commands and searches while the reader types. The templates (`*.html`) escape
//! every value.

mod commands;
mod list;
mod misses;
mod nodes;

use self::commands::ReaderAddress;
use self::list::{ListQuery, render_list};
use self::misses::render_misses;
use self::nodes::{render_changes, render_nodes};
use crate::catalog::ItemListing;
use crate::response::RequestError;
use crate::route::{header_text, is_over_tls};
use crate::state::ServerState;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::HOST;
use http::request::Parts;
use landfall_model::has_host_characters;
use landfall_model::report::EntryKind;
use sha2::{Digest as _, Sha256};
use std::sync::LazyLock;

pub(crate) use self::misses::misses_document;

/// The page at the path of the request; `None` if there is none. Names and URLs on the page contain
/// the host by which the reader reached this server (the `Host` header).
pub(crate) fn page(state: &ServerState, parts: &Parts) -> Option<Result<Vec<u8>, RequestError>> {
    let page = PAGES.iter().find(|page| page.path == parts.uri.path())?;
    let host = header_text(&parts.headers, HOST)
        // the host becomes part of commands that readers paste into a shell
        .filter(|host| has_host_characters(host));
    let address = ReaderAddress {
        host: host.unwrap_or(&state.address),
        is_tls: is_over_tls(parts),
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
        "/misses" => render_misses(frame, state),
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

const STYLE: &str = include_str!("style.css");

const SCRIPT: &str = include_str!("script.js");

/// The maximum size of a page's entries in bytes, so that the whole page stays below 100 kB.
const MAX_CONTENT: usize = 80_000;

/// A page and its entry in the navigation.
#[derive(Debug, PartialEq, Eq)]
struct PageLink {
    path: &'static str,
    title: &'static str,
}

/// All pages, in the order of the navigation.
const PAGES: [PageLink; 4] = [
    PageLink {
        path: "/",
        title: "Contents",
    },
    PageLink {
        path: "/changes",
        title: "Changes",
    },
    PageLink {
        path: "/nodes",
        title: "Configure a node",
    },
    PageLink {
        path: "/misses",
        title: "Missing",
    },
];

/// The content security policy of the pages: a browser runs only this script and style, loads
/// nothing else, and sends requests to this server only.
pub(crate) static POLICY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'self'; \
         img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        // hashes instead of 'unsafe-inline', which would also allow scripts in hostile names
        csp_hash(STYLE),
        csp_hash(SCRIPT)
    )
});

fn csp_hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

/// The values that every page passes to `base.html`.
#[derive(Clone, Copy)]
struct PageFrame<'a> {
    page: &'static PageLink,
    address: ReaderAddress<'a>,
}

#[allow(clippy::unused_self, reason = "templates call methods of the frame")]
impl PageFrame<'_> {
    fn title(&self) -> &'static str {
        self.page.title
    }

    fn pages(&self) -> &'static [PageLink] {
        &PAGES
    }

    fn style(&self) -> &'static str {
        STYLE
    }

    fn script(&self) -> &'static str {
        SCRIPT
    }

    fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn style_and_script_cannot_end_their_elements_and_load_nothing() {
        for text in [STYLE, SCRIPT] {
            assert!(!text.contains("</") && !text.contains("http:") && !text.contains("https:"));
            assert!(
                !text.contains("url(") && !text.contains("@import") && !text.contains("innerHTML")
            );
        }
        assert!(!POLICY.contains("unsafe"));
    }
}
