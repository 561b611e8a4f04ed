//! The common parts of all pages: the layout in `base.html`, the style, the script, and the content
//! security policy.

use super::commands::ReaderAddress;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use std::sync::LazyLock;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The maximum size of a page's entries in bytes, so that the whole page stays below 100 kB.
pub(super) const MAX_CONTENT: usize = 80_000;

/// A page and its entry in the navigation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PageLink {
    pub(super) path: &'static str,
    pub(super) title: &'static str,
}

/// All pages, in the order of the navigation.
pub(super) const PAGES: [PageLink; 3] = [
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
pub(super) struct PageFrame<'a> {
    pub(super) page: &'static PageLink,
    pub(super) address: ReaderAddress<'a>,
}

#[allow(clippy::unused_self, reason = "templates call methods of the frame")]
impl PageFrame<'_> {
    pub(super) fn title(&self) -> &'static str {
        self.page.title
    }

    pub(super) fn pages(&self) -> &'static [PageLink] {
        &PAGES
    }

    pub(super) fn style(&self) -> &'static str {
        STYLE
    }

    pub(super) fn script(&self) -> &'static str {
        SCRIPT
    }

    pub(super) fn version(&self) -> &'static str {
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
