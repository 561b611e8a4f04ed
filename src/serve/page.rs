//! The page at `/`: what is here and by which names it is pulled. Plain HTML without scripts.

use super::app::App;
use super::catalogue::{Bundle, Item};
use super::files::link;
use super::registry::disk;
use super::reply::Problem;
use crate::model::human_size;
use crate::report::Kind;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_SECURITY_POLICY, HOST, HeaderName};
use std::fmt::Write as _;

/// Nothing may be loaded or run.
pub(super) const POLICY: (HeaderName, &str) =
    (CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'");

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em}\
     table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2em 1em .2em 0;\
     vertical-align:top;border-bottom:1px solid #ddd}code{font-size:13px;overflow-wrap:anywhere}\
     td:last-child{white-space:nowrap}";

/// The page, for a reader who has reached this server as the `Host` header says.
pub(super) fn page(app: &App, headers: &HeaderMap) -> Result<Vec<u8>, Problem> {
    let here = headers.get(HOST).and_then(|host| host.to_str().ok()).filter(|host| is_host(host));
    let here = here.unwrap_or(&app.address);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>landfall</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style>\n<h1>landfall at {}</h1>\n",
        escaped(here)
    );
    for bundle in &app.catalogue.bundles {
        write_bundle(&mut out, here, bundle);
    }
    if let Some(pushed) = &app.pushed {
        out += "<h2>Pushed here</h2>\n<table>\n<tr><th>name here<th>digest</tr>\n";
        for name in pushed.names().map_err(disk)? {
            for tag in pushed.tags(&name).map_err(disk)?.unwrap_or_default() {
                let digest = pushed.tag(&name, &tag).map_err(disk)?;
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

fn write_bundle(out: &mut String, here: &str, bundle: &Bundle) {
    let _ = writeln!(out, "<h2>{}</h2>", escaped(&bundle.name));
    if let Some(digest) = &bundle.digest {
        let _ = writeln!(out, "<p>bundle digest <code>{digest}</code></p>");
    }
    if !bundle.lacks.is_empty() {
        out.push_str("<p><strong>This bundle is partial.</strong> It lacks</p>\n<ul>\n");
        for item in &bundle.lacks {
            let _ = writeln!(out, "<li>{}</li>", escaped(item));
        }
        out.push_str("</ul>\n");
    }
    let of = |kind| bundle.items.iter().filter(move |item: &&Item| item.kind == kind);
    if of(Kind::Image).next().is_some() {
        out.push_str("<table>\n<tr><th>image<th>name here<th>digest<th>size</tr>\n");
        for item in of(Kind::Image) {
            let place = escaped(&format!("{here}/{}", item.place));
            row(out, &escaped(&item.name), &format!("<code>{place}</code>"), item);
        }
        out.push_str("</table>\n");
    }
    if of(Kind::File).next().is_some() {
        out.push_str("<table>\n<tr><th>file<th>name here<th>digest<th>size</tr>\n");
        for item in of(Kind::File) {
            let path = escaped(&link(&item.name).unwrap_or_default());
            let place = escaped(&format!("{here}/{}", item.place));
            let name = format!("<a href=\"{path}\">{}</a>", escaped(&item.name));
            row(out, &name, &format!("<code>{path}</code><br><code>{place}</code>"), item);
        }
        out.push_str("</table>\n");
    }
}

fn row(out: &mut String, name: &str, place: &str, item: &Item) {
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
    use super::*;
    use crate::model::Digest;

    #[test]
    fn names_cannot_become_markup() {
        let item = Item {
            kind: Kind::File,
            name: "https://h/a?x='\"><script>&".into(),
            place: "files/h/00:11".into(),
            digest: Digest::sha256(b"x"),
            size: 1,
            incomplete: true,
        };
        let bundle = Bundle {
            name: "<b>.tar.zst".into(),
            digest: None,
            lacks: vec!["image <x>".into()],
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
