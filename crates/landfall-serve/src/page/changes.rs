//! The page at `/changes`: what each bundle has that the one before it had not.

use crate::BundleChange;
use crate::bundles::{BundleListing, Bundles};
use landfall_model::report::count_of;
use landfall_model::report::escape_html;
use std::fmt::Write as _;

/// How long the page may be, in bytes.
const ROOM: usize = 80_000;
/// How many characters of a name are shown.
const SHOWN: usize = 500;

/// The body of the page.
pub(super) fn body(bundles: &Bundles) -> String {
    let known: Vec<&BundleListing> = bundles
        .listings
        .iter()
        .rev()
        .filter(|bundle| bundle.changes.is_some())
        .collect();
    if known.is_empty() {
        return "<p>Nothing older is known here. Serve the bundle before this one too, or give a delta its base with \
                <code>--base</code>, and this page shows what is new.</p>\n"
            .into();
    }
    let mut out = String::new();
    for bundle in known {
        let Some(changes) = &bundle.changes else {
            continue;
        };
        let (new, old) = (escape_html(&bundle.name), escape_html(&changes.since));
        let _ = writeln!(
            out,
            "<h2>{new}</h2>\n<p class=\"dim\">{} since {old}</p>",
            count_of(changes.changes.len(), "change")
        );
        if changes.changes.is_empty() {
            continue;
        }
        out += "<table>\n<tr><th scope=\"col\">Change</th><th scope=\"col\">What</th><th scope=\"col\">Digest</th></tr>\n";
        for (at, change) in changes.changes.iter().enumerate() {
            if out.len() > ROOM {
                out += "</table>\n";
                let left = changes.changes.len() - at;
                let _ = writeln!(
                    out,
                    "<p>and {left} more, which <code>landfall diff OLD NEW</code> lists</p>"
                );
                return out;
            }
            out += &row(change);
        }
        out += "</table>\n";
    }
    out
}

fn row(change: &BundleChange) -> String {
    let name: String = change.name.chars().take(SHOWN).collect();
    let digests: Vec<String> = change
        .digests
        .iter()
        .flatten()
        .map(|digest| digest.short(12))
        .collect();
    format!(
        "<tr><td>{}</td><td>{} <code>{}</code></td><td><code>{}</code></td></tr>\n",
        change.change,
        change.kind,
        escape_html(&name),
        digests.join(" → ")
    )
}
