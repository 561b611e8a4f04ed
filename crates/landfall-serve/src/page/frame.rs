//! What all pages share: head, navigation, style and script, and the policy that a browser
//! enforces.

use axum::http::header::{CONTENT_SECURITY_POLICY, HeaderName};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use landfall_model::report::escape_html;
use sha2::{Digest as _, Sha256};
use std::sync::LazyLock;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// A page.
pub(super) struct Page {
    pub(super) path: &'static str,
    title: &'static str,
}

/// All pages, in the order of the navigation.
pub(super) const PAGES: [Page; 3] = [
    Page {
        path: "/",
        title: "What is here",
    },
    Page {
        path: "/changes",
        title: "What is new",
    },
    Page {
        path: "/nodes",
        title: "Point a node here",
    },
];

/// A browser runs this one script and style, loads nothing, and asks this server only.
pub(in super::super) static POLICY: LazyLock<(HeaderName, String)> = LazyLock::new(|| {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'self'; img-src data:; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        hash(STYLE),
        hash(SCRIPT)
    );
    (CONTENT_SECURITY_POLICY, policy)
});

/// A page around its body.
pub(super) struct Frame<'a> {
    /// Its number in [`PAGES`].
    pub(super) current: usize,
    pub(super) host: &'a str,
    pub(super) body: &'a str,
}

impl Frame<'_> {
    /// The whole document.
    pub(super) fn write(&self) -> Vec<u8> {
        let host = escape_html(self.host);
        let link = |(at, page): (usize, &Page)| {
            let current = if at == self.current {
                " aria-current=\"page\""
            } else {
                ""
            };
            format!(
                "<li><a href=\"{}\"{current}>{}</a></li>",
                page.path, page.title
            )
        };
        let links: String = PAGES.iter().enumerate().map(link).collect();
        let title = PAGES[self.current].title;
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <title>{title} – landfall at {host}</title>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=icon href=data:,>\n\
             <style>{STYLE}</style>\n</head>\n<body>\n\
             <header>\n<p>landfall <span>at {host}</span></p>\n<nav aria-label=\"Pages\"><ul>{links}</ul></nav>\n</header>\n\
             <main>\n<h1>{title}</h1>\n{}</main>\n\
             <footer>Served by landfall {}. What leaves this server has its digest.</footer>\n\
             <div id=\"said\" class=\"sr\" role=\"status\"></div>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
            self.body,
            env!("CARGO_PKG_VERSION"),
        )
        .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn style_and_script_cannot_end_their_elements_and_refer_to_nothing_else() {
        for text in [STYLE, SCRIPT] {
            assert!(!text.contains("</") && !text.contains("http:") && !text.contains("https:"));
            assert!(
                !text.contains("url(") && !text.contains("@import") && !text.contains("innerHTML")
            );
        }
        assert!(!POLICY.1.contains("unsafe"));
    }
}
