//! One item of the list: a summary, which opens to details and the commands that fetch the item.

use super::attachment_counts::attachment_counts;
use super::commands::{FetchCommand, ReaderAddress, fetch_commands};
use crate::catalog::ItemListing;
use askama::Template;
use landfall_content::BlobRead;
use landfall_model::human_size;
use landfall_model::report::{EntryCount, EntryKind, count_of};

/// The maximum length of a row in bytes. A longer row shows only the digest and the beginning of
/// the name, so that hostile names cannot fill the page.
const MAX_ROW: usize = 12_000;
/// The number of characters of a long name that are shown.
const MAX_NAME: usize = 300;

#[derive(Template)]
#[template(path = "item_row.html")]
struct ItemRow<'a> {
    item: &'a ItemListing,
    source: &'a str,
    /// `host/repository:tag` of the image, or of the artifact that contains the file.
    image_name: String,
    about: String,
    size: String,
    platforms: String,
    attached: String,
    commands: Vec<FetchCommand>,
}

#[derive(Template)]
#[template(
    ext = "html",
    source = "<li><p><code>{{ name }}</code>… is too long to be shown; \
              <code>{{ digest }}</code></p></li>"
)]
struct LongItemRow {
    name: String,
    digest: String,
}

/// Renders the row of `item`, which is in the bundle `source`.
pub(super) fn render_row(
    item: &ItemListing,
    source: &str,
    address: ReaderAddress<'_>,
    blobs: &dyn BlobRead,
) -> askama::Result<String> {
    let counts = attachment_counts(&item.attached, blobs);
    let attached: Vec<String> = counts
        .iter()
        .map(|(word, count)| count_of(*count, word))
        .collect();
    let attached = attached.join(", ");
    let platforms: Vec<&str> = item.platforms.iter().map(String::as_str).collect();
    let platforms = platforms.join(", ");
    let kind = match item.kind {
        // for a set of packages, the number of its packages is shown
        EntryKind::Package => {
            EntryCount::new(EntryKind::Package, [item.kind_and_packages()]).to_string()
        }
        kind => kind.to_string(),
    };
    let about: Vec<&str> = [&*kind, &*platforms, &*attached]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect();
    let host = item.registry.as_deref().unwrap_or(address.host);
    let row = ItemRow {
        item,
        source,
        image_name: format!("{host}/{}", item.repository_tag),
        about: about.join(" · "),
        size: item.size.map(human_size).unwrap_or_default(),
        platforms,
        attached,
        commands: fetch_commands(item, address),
    };
    let row = row.render()?;
    // measured after rendering, because escaping may make a text several times longer
    if row.len() <= MAX_ROW {
        return Ok(row);
    }
    let long = LongItemRow {
        name: item.name.chars().take(MAX_NAME).collect(),
        digest: item.digest.to_string(),
    };
    long.render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::file_link;
    use landfall_content::BlobChain;
    use landfall_model::Digest;

    fn rendered(name: &str) -> String {
        let mut item = ItemListing::new(
            EntryKind::File,
            name.into(),
            "files/h/00:11".into(),
            Digest::sha256(b"x"),
        );
        item.link = file_link(name);
        item.urls = vec![name.into()];
        item.incomplete = true;
        render_row(
            &item,
            "<b>",
            ReaderAddress {
                host: "127.0.0.1:5000",
                is_tls: false,
            },
            &BlobChain(vec![]),
        )
        .unwrap()
    }

    #[test]
    fn names_cannot_become_markup() {
        let out = rendered("https://h/a?x='\"><script>&");
        assert!(
            !out.contains("<script>") && !out.contains("<b>") && out.contains("incomplete"),
            "{out}"
        );
    }

    #[test]
    fn a_long_name_does_not_lengthen_the_page() {
        let out = rendered(&format!("https://h/{}", "<".repeat(1 << 20)));
        assert!(
            out.len() < MAX_ROW && out.contains("too long"),
            "{} bytes",
            out.len()
        );
    }
}
