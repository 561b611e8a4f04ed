//! One item of the list: what it is in a line, and below it all that is known and the commands that
//! get it.

use super::attached;
use super::commands::{Here, commands};
use crate::bundles::ItemListing;
use landfall_content::BlobRead;
use landfall_model::human_size;
use landfall_model::report::escape_html;
use landfall_model::report::{EntryCount, EntryKind, count_of};
use std::fmt::Write as _;

/// The longest entry, in bytes. A name that is longer is told, and nothing else of its item.
const LONGEST: usize = 12_000;
/// How many characters of a name that is too long are shown.
const SHOWN: usize = 300;

/// The entry of `item`, which stands in the bundle of this name.
pub(super) fn row(
    item: &ItemListing,
    bundle: &str,
    here: Here<'_>,
    blobs: &dyn BlobRead,
) -> String {
    let out = full(item, bundle, here, blobs);
    if out.len() <= LONGEST {
        return out;
    }
    let name: String = item.name.chars().take(SHOWN).collect();
    format!(
        "<li><p><code>{}</code>… is too long to be shown; <code>{}</code></p></li>\n",
        escape_html(&name),
        item.digest
    )
}

fn full(item: &ItemListing, bundle: &str, here: Here<'_>, blobs: &dyn BlobRead) -> String {
    let attached = attached::words(&item.attached, blobs);
    let attached = attached
        .iter()
        .map(|(word, number)| count_of(*number, word));
    let attached = attached.collect::<Vec<_>>().join(", ");
    let platforms = item
        .platforms
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    let kind = match item.kind {
        EntryKind::Package => EntryCount::new(EntryKind::Package, [item.counted()]).to_string(),
        kind => kind.to_string(),
    };
    let about = [kind.as_str(), &platforms, &attached];
    let about: Vec<String> = about
        .iter()
        .filter(|text| !text.is_empty())
        .map(|text| escape_html(text))
        .collect();
    let lacking = if item.incomplete {
        " <b class=\"warn\">incomplete</b>"
    } else {
        ""
    };
    let size = item.size.map(human_size).unwrap_or_default();
    let mut out = format!(
        "<li><details><summary><code>{}</code> <span class=\"size\">{size}</span> <span class=\"about\">{}{lacking}\
         </span></summary>\n<div class=\"more\"><dl>\n",
        escape_html(&item.name),
        about.join(" · ")
    );
    let mut fact = |term: &str, value: String| {
        if !value.is_empty() {
            let _ = writeln!(out, "<dt>{term}</dt><dd>{value}</dd>");
        }
    };
    let code = |text: &str| format!("<code>{}</code>", escape_html(text));
    let host = item.registry.as_deref().unwrap_or(here.host);
    fact(
        "Name here",
        code(&format!("{host}/{}", item.repository_tag)),
    );
    fact("Digest", code(&item.digest.to_string()));
    fact(
        "Size",
        item.size
            .map(|size| format!("{size} bytes"))
            .unwrap_or_default(),
    );
    fact("Platforms", escape_html(&platforms));
    fact("Attached", escape_html(&attached));
    if let Some(link) = &item.link {
        fact(
            "File",
            format!("<a href=\"{0}\">{0}</a>", escape_html(link)),
        );
    }
    let links = item
        .beside
        .iter()
        .map(|link| format!("<a href=\"{0}\">{0}</a>", escape_html(link)));
    fact("Beside it", links.collect::<Vec<_>>().join("<br>"));
    fact(
        "URLs",
        item.urls
            .iter()
            .map(|url| code(url))
            .collect::<Vec<_>>()
            .join("<br>"),
    );
    fact(
        "Asked for by",
        escape_html(item.consumer_destinations.as_deref().unwrap_or_default()),
    );
    fact("In", escape_html(bundle));
    for (tool, command) in commands(item, here) {
        fact(
            tool,
            format!(
                "<div class=\"cmd\"><code>{}</code></div>",
                escape_html(&command)
            ),
        );
    }
    out += "</dl></div></details></li>\n";
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_table;
    use landfall_content::BlobChain;
    use landfall_model::Digest;
    use landfall_model::report::EntryKind;

    fn shown(name: &str) -> String {
        let mut item = ItemListing::new(
            EntryKind::File,
            name.into(),
            "files/h/00:11".into(),
            Digest::sha256(b"x"),
        );
        item.link = file_table::link(name);
        item.urls = vec![name.into()];
        item.incomplete = true;
        row(
            &item,
            "<b>",
            Here {
                host: "127.0.0.1:5000",
                is_tls: false,
            },
            &BlobChain(vec![]),
        )
    }

    #[test]
    fn names_cannot_become_markup() {
        let out = shown("https://h/a?x='\"><script>&");
        assert!(
            !out.contains("<script>") && !out.contains("<b>") && out.contains("incomplete"),
            "{out}"
        );
    }

    #[test]
    fn a_name_of_any_length_leaves_the_page_short() {
        let out = shown(&format!("https://h/{}", "<".repeat(1 << 20)));
        assert!(
            out.len() < LONGEST && out.contains("too long"),
            "{} bytes",
            out.len()
        );
    }
}
