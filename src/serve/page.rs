//! The page at `/`: what the server holds, and the names to pull it by. Plain HTML without scripts.

use super::bundles::{BundleListing, ItemListing};
use super::response::ApiError;
use super::state::State;
use crate::item::KINDS;
use crate::model::human_size;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_SECURITY_POLICY, HOST, HeaderName};
use std::fmt::Write as _;

/// A browser may neither load nor run anything.
pub(super) const POLICY: (HeaderName, &str) =
    (CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'");

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em}\
     table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2em 1em .2em 0;\
     vertical-align:top;border-bottom:1px solid #ddd}code{font-size:13px;overflow-wrap:anywhere}\
     td:last-child{white-space:nowrap}";

/// The page. Names begin with the host by which the reader reached this server (the `Host` header).
pub(super) fn page(state: &State, headers: &HeaderMap) -> Result<Vec<u8>, ApiError> {
    let here = headers.get(HOST).and_then(|host| host.to_str().ok()).filter(|host| is_host(host));
    let here = here.unwrap_or(&state.address);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>landfall</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style>\n<h1>landfall at {}</h1>\n",
        escaped(here)
    );
    for bundle in &state.bundles.listings {
        write_bundle(&mut out, here, bundle);
    }
    if let Some(store) = &state.writable {
        out += "<h2>Pushed here</h2>\n<table>\n<tr><th>name here<th>digest</tr>\n";
        for name in store.repositories().map_err(ApiError::disk)? {
            for tag in store.tags(&name).map_err(ApiError::disk)?.unwrap_or_default() {
                let digest = store.tag(&name, &tag).map_err(ApiError::disk)?;
                let digest = digest.map(|digest| digest.to_string()).unwrap_or_default();
                let name = escaped(&format!("{here}/{name}:{tag}"));
                let _ = writeln!(out, "<tr><td><code>{name}</code><td><code>{digest}</code></tr>");
            }
        }
        out += "</table>\n";
    }
    out += "</html>\n";
    Ok(out.into_bytes())
}

fn write_bundle(out: &mut String, here: &str, bundle: &BundleListing) {
    let _ = writeln!(out, "<h2>{}</h2>", escaped(&bundle.name));
    if let Some(digest) = &bundle.digest {
        let _ = writeln!(out, "<p>bundle digest <code>{digest}</code></p>");
    }
    if !bundle.missing.is_empty() {
        out.push_str("<p><strong>This bundle is partial.</strong> It lacks</p>\n<ul>\n");
        for item in &bundle.missing {
            let _ = writeln!(out, "<li>{}</li>", escaped(item));
        }
        out.push_str("</ul>\n");
    }
    for &kind in KINDS {
        let mut items = bundle.items.iter().filter(|item| item.kind == kind).peekable();
        if items.peek().is_some() {
            let _ = writeln!(out, "<table>\n<tr><th>{kind}<th>name here<th>digest<th>size</tr>");
            items.for_each(|item| row(out, here, item));
            out.push_str("</table>\n");
        }
    }
}

fn row(out: &mut String, here: &str, item: &ItemListing) {
    let mut name = escaped(&item.name);
    let mut place = format!("<code>{}</code>", escaped(&format!("{here}/{}", item.repository_tag)));
    if let Some(link) = item.link.as_deref().map(escaped) {
        name = format!("<a href=\"{link}\">{name}</a>");
        place = format!("<code>{link}</code><br>{place}");
    }
    let lacking = if item.incomplete { " <strong>incomplete</strong>" } else { "" };
    let (digest, size) = (&item.digest, human_size(item.size));
    let _ = writeln!(out, "<tr><td>{name}{lacking}<td>{place}<td><code>{digest}</code><td>{size}</tr>");
}

fn is_host(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:-[]_".contains(&byte)) && !text.is_empty()
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::file_table;
    use super::*;
    use crate::model::Digest;
    use crate::report::Kind;

    #[test]
    fn names_cannot_become_markup() {
        let item = ItemListing {
            kind: Kind::File,
            name: "https://h/a?x='\"><script>&".into(),
            repository_tag: "files/h/00:11".into(),
            link: file_table::link("https://h/a?x='\"><script>&"),
            digest: Digest::sha256(b"x"),
            size: 1,
            incomplete: true,
        };
        let bundle = BundleListing {
            name: "<b>.tar.zst".into(),
            digest: None,
            missing: vec!["image <x>".into()],
            items: vec![item],
        };
        let mut out = String::new();
        write_bundle(&mut out, "127.0.0.1:5000", &bundle);
        assert!(!out.contains("<script>") && !out.contains("<b>"), "{out}");
        assert!(
            out.contains("&lt;b&gt;.tar.zst")
                && out.contains("is partial")
                && out.contains("<li>image &lt;x&gt;</li>")
                && out.contains("incomplete")
        );
        assert!(is_host("[::1]:5000") && !is_host("x\"y") && !is_host(""));
    }
}
