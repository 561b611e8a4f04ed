//! The page at `/nodes`: what makes nodes ask this server, for images by their registry's names and
//! for files by their URLs.

use super::commands::Here;
use crate::state::State;
use landfall_model::report::escape_html;
use std::fmt::Write as _;

/// How long the page may be, in bytes.
const ROOM: usize = 80_000;

/// The body of the page.
pub(super) fn body(state: &State, here: Here<'_>) -> String {
    let mut out = String::new();
    let hosts = state.bundles.files.hosts();
    if !hosts.is_empty() {
        files(&mut out, &hosts.into_iter().collect::<Vec<_>>(), here);
    }
    if !state.bundles.charts.is_empty() {
        let url = escape_html(&here.url("/charts"));
        let _ = writeln!(
            out,
            "<h2>Charts</h2>\n<p>They are in an HTTP repository, and in this registry by their names.</p>\n\
             <div class=\"cmd\"><code>helm repo add landfall {url}</code></div>"
        );
    }
    let guides = state
        .guides
        .as_ref()
        .map(|guides| guides(here.host, here.is_tls))
        .unwrap_or_default();
    if !guides.is_empty() {
        out += "<h2>Images</h2>\n<p>What <code>landfall render</code> writes for this site. Each path is that of the file \
                on a node.</p>\n";
    }
    for guide in guides {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "<details><summary><b>{}</b> <span class=\"about\">{}</span></summary><div class=\"more\">",
            escape_html(&guide.title),
            escape_html(&guide.about)
        );
        for (path, content) in &guide.files {
            let _ = writeln!(
                text,
                "<p class=\"path\"><code>{}</code></p>\n<pre tabindex=\"0\">{}</pre>",
                escape_html(path),
                code(content)
            );
        }
        for note in &guide.notes {
            let _ = writeln!(text, "<p>{}</p>", escape_html(note));
        }
        text += "</div></details>\n";
        if out.len() + text.len() > ROOM {
            let _ = writeln!(
                out,
                "<p>{} is too long for this page: <code>landfall render {}</code> writes it.</p>",
                escape_html(&guide.title),
                escape_html(&guide.title)
            );
        } else {
            out += &text;
        }
    }
    if out.is_empty() {
        out += "<p>Nothing is here yet that a node could ask for.</p>\n";
    }
    out
}

/// Text of several lines.
fn code(text: &str) -> String {
    text.lines().map(|line| escape_html(line) + "\n").collect()
}

fn files(out: &mut String, hosts: &[&str], here: Here<'_>) {
    let files = escape_html(&here.url("/files/HOST/PATH"));
    let names: Vec<&str> = hosts
        .iter()
        .map(|host| host.split(':').next().unwrap_or(host))
        .collect();
    let _ = writeln!(
        out,
        "<h2>Files</h2>\n<p>Every file is at <code>{files}</code>. Under its own URL it is found \
         where the name of its host leads to this server: by an entry in a name server or in <code>/etc/hosts</code>, with \
         ports 80 and 443 (<code>--listen http://0.0.0.0:80 --listen https://0.0.0.0:443</code>) and a certificate for \
         these names that nodes trust (<code>--tls-cert</code>).</p>\n<pre tabindex=\"0\">"
    );
    let mut names = names;
    names.dedup();
    for chunk in names.chunks(8).take(100) {
        let _ = writeln!(
            out,
            "ADDRESS {}",
            chunk
                .iter()
                .map(|name| escape_html(name))
                .collect::<Vec<_>>()
                .join(" ")
        );
    }
    *out += "</pre>\n";
}
