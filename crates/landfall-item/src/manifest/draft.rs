//! Drafts a manifest: pinned images, charts, files and git repositories become entries; other
//! images and unclear items become comments.

use crate::chart::ChartName;
use crate::file::file_url;
use crate::git::{check_ref, normal_url};
use crate::text;
use landfall_model::report::{and_more, one_line};
use landfall_model::{Digest, ImageRef, PlatformRequest, redact_urls};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// An item for a draft, with the position where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftEntry {
    /// The item that the draft lists.
    pub what: DraftItem,
    /// Where the item was found, as messages write it.
    pub at: String,
}

/// The item of a [`DraftEntry`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DraftItem {
    /// A container image, by its reference.
    Image(ImageRef),
    /// A chart of a registry or of an HTTP repository.
    Chart(ChartName),
    /// The URL of a plain file.
    Url(String),
    /// A git repository.
    Git {
        /// Its http or https URL.
        url: String,
        /// A branch, tag or commit.
        revision: String,
    },
    /// A text that may be an item.
    Unclear {
        /// The text, as written.
        text: String,
        /// The reason why it is not certain that it is an item.
        why: String,
    },
}

impl DraftItem {
    /// The item with its URL in normal form. An item that a manifest cannot have is unclear: `lock`
    /// rejects a manifest as a whole if one entry is not valid.
    fn checked(&self) -> Cow<'_, DraftItem> {
        let (text, checked) = match self {
            DraftItem::Image(_) | DraftItem::Chart(_) | DraftItem::Unclear { .. } => {
                return Cow::Borrowed(self);
            }
            DraftItem::Url(url) => {
                let checked = file_url(url).map_err(|error| error.to_string());
                (url.clone(), checked.map(|url| DraftItem::Url(url.into())))
            }
            DraftItem::Git { url, revision } => {
                let checked = check_ref(revision).and_then(|()| normal_url(url));
                let revision = revision.clone();
                let item = checked.map(|url| DraftItem::Git { url, revision });
                (format!("git+{url}"), item)
            }
        };
        Cow::Owned(checked.unwrap_or_else(|why| DraftItem::Unclear {
            text: redact_urls(&text),
            why,
        }))
    }
}

/// The text of a drafted manifest, and the numbers of its items.
#[derive(Debug)]
pub struct DraftManifest {
    /// The YAML text of the manifest.
    pub text: String,
    /// The number of items that became entries.
    pub entries: usize,
    /// The number of items that became comments.
    pub comments: usize,
    /// The images that became comments, each with its position and the reason.
    pub unpinned: Vec<String>,
}

// why an image is not pinned
const FLOATING: &str = "the tag may move: write a version or a digest";
const AMBIGUOUS: &str = "the tag occurs with several digests: write the right one";
const UNTAGGED: &str = "no tag: write a version or a digest";

/// The line with `platforms:`, and a comment `why`. Without platforms, a comment that explains the
/// default.
pub fn platforms_line(platforms: &[PlatformRequest], why: &str) -> String {
    let names: Vec<String> = platforms
        .iter()
        .map(|one| text::quoted(&one.to_string()))
        .collect();
    if names.is_empty() {
        return "# platforms: [linux/amd64]  # of all images here; the default is all platforms\n"
            .into();
    }
    format!(
        "platforms: [{}]  # {}; the default is all platforms\n",
        names.join(", "),
        one_line(why)
    )
}

/// The first lines of a manifest called `name`, with `title` as the first comment.
pub(super) fn head(name: &str, title: &str) -> String {
    // quoted if YAML would read it as another type, as with `true`
    let name = serde_yaml::to_string(name).unwrap_or_else(|_| quoted_text(name));
    format!(
        "# {}\napiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: {}}}\n",
        one_line(title),
        name.trim_end()
    )
}

/// Drafts a manifest called `name` with the items `found`, sorted. `title` is the first comment,
/// and `platforms` the line from [`platforms_line`]. An image that is not pinned becomes a comment
/// with the reason, and so does an unclear item.
pub fn draft(name: &str, title: &str, platforms: &str, found: &[DraftEntry]) -> DraftManifest {
    let mut images: BTreeMap<String, DraftLine> = BTreeMap::new();
    let mut charts: BTreeMap<String, DraftLine> = BTreeMap::new();
    let mut urls: BTreeMap<String, DraftLine> = BTreeMap::new();
    let mut repositories: BTreeMap<String, DraftLine> = BTreeMap::new();
    let mut unclear: BTreeMap<String, DraftLine> = BTreeMap::new();
    // one `DraftLine` for each item, however often the item occurs
    for entry in found {
        let line = match &*entry.what.checked() {
            DraftItem::Image(image) => {
                let name = ImageRef {
                    digest: None,
                    ..image.clone()
                };
                let line = images.entry(name.to_string()).or_default();
                line.digests.extend(image.digest.clone());
                line.bare |= image.digest.is_none();
                line
            }
            DraftItem::Chart(chart) => charts.entry(chart_entry(chart)).or_default(),
            DraftItem::Url(url) => urls.entry(url.clone()).or_default(),
            DraftItem::Git { url, revision } => {
                let line = repositories.entry(url.clone()).or_default();
                line.revisions.insert(revision.clone());
                line
            }
            DraftItem::Unclear { text, why } => {
                let line = unclear.entry(text.clone()).or_default();
                line.why = Some(why.clone());
                line
            }
        };
        line.positions.insert(entry.at.clone());
    }
    // several tags can have one digest, by which the image is listed
    let mut pinned: BTreeMap<String, DraftLine> = BTreeMap::new();
    let mut open = Vec::new();
    let mut unpinned = Vec::new();
    for (name, line) in &images {
        for (reference, why) in line.references(name) {
            match why {
                None => {
                    let places = line.positions.iter().cloned();
                    pinned
                        .entry(reference)
                        .or_default()
                        .positions
                        .extend(places);
                }
                Some(why) => {
                    open.push(format!("  # - {reference}{}", line.comment(Some(why))));
                    unpinned.push(format!("{reference} ({})", line.positions_and(Some(why))));
                }
            }
        }
    }
    // a text that may be an image, and that is one elsewhere
    unclear.retain(|text, line| {
        let image = text.parse::<ImageRef>().ok();
        let entry = image.and_then(|image| pinned.get_mut(&image.to_string()));
        let is_entry = entry.is_some();
        if let Some(entry) = entry {
            entry.positions.append(&mut line.positions);
        }
        !is_entry
    });
    let comments = unpinned.len() + unclear.len();
    open.extend(unclear.iter().map(|(text, line)| {
        format!(
            "  # - {}{}",
            one_line(text),
            line.comment(line.why.as_deref())
        )
    }));
    let mut text = head(name, title) + platforms;
    // `images: []` before comments would make the manifest invalid when one of them is uncommented
    text += if pinned.is_empty() && open.is_empty() {
        "\nimages: []\n"
    } else {
        "\nimages:\n"
    };
    for (reference, line) in &pinned {
        let _ = writeln!(text, "  - {}{}", quoted(reference), line.comment(None));
    }
    for line in &open {
        text.extend([line, "\n"]);
    }
    if !charts.is_empty() {
        text += "\ncharts:\n  # with `images: discover` in an entry, the images of the chart are \
                 locked, too\n";
    }
    for (entry, line) in &charts {
        let _ = writeln!(text, "  - {entry}{}", line.comment(None));
    }
    if !urls.is_empty() {
        text += "\nfiles:\n  # add a `checksum:` to each: the URL of its checksum file, or \
                 sha256:<hex>; otherwise only the lock pins it\n";
    }
    for (url, line) in &urls {
        // quotes and backslashes would end or change the YAML string, and no URL needs them
        let _ = writeln!(
            text,
            "  - url: \"{}\"{}",
            url.replace(['"', '\\'], ""),
            line.comment(None)
        );
    }
    if !repositories.is_empty() {
        text += "\ngit:\n";
    }
    for (url, line) in &repositories {
        let refs: Vec<String> = line.revisions.iter().map(|one| quoted_text(one)).collect();
        let _ = writeln!(
            text,
            "  - {{url: {}, refs: [{}]}}{}",
            quoted_text(url),
            refs.join(", "),
            line.comment(None)
        );
    }
    DraftManifest {
        text,
        entries: pinned.len() + charts.len() + urls.len() + repositories.len(),
        comments,
        unpinned,
    }
}

/// The entry of a chart as a manifest writes it.
fn chart_entry(chart: &ChartName) -> String {
    let Some(repository) = &chart.repository else {
        return format!("{{ref: {}}}", quoted_text(chart.as_str()));
    };
    format!(
        "{{repo: {}, name: {}, version: {}}}",
        quoted_text(repository),
        quoted_text(&chart.chart),
        quoted_text(&chart.version)
    )
}

/// The occurrences of one item.
#[derive(Debug, Default)]
struct DraftLine {
    /// The digests with which an image occurred.
    digests: BTreeSet<Digest>,
    /// Whether the image also occurred without a digest.
    bare: bool,
    positions: BTreeSet<String>,
    /// The branches, tags and commits of a git repository.
    revisions: BTreeSet<String>,
    /// Why an unclear item is unclear.
    why: Option<String>,
}

impl DraftLine {
    /// The references to write for the image `name`, each with a reason if it becomes a comment.
    fn references(&self, name: &str) -> Vec<(String, Option<&'static str>)> {
        let Ok(image) = name.parse::<ImageRef>() else {
            return Vec::new();
        };
        let unpinned = match &image.tag {
            None => Some(UNTAGGED),
            Some(tag) if is_floating(tag) => Some(FLOATING),
            Some(_) => None,
        };
        let digests = self.digests.iter();
        match (unpinned, digests.len()) {
            (None, 0) => vec![(name.to_owned(), None)],
            (None, 1) => digests
                .map(|digest| (format!("{name}@{digest}"), None))
                .collect(),
            // A missing or floating tag does not pin an image, and one tag cannot have several
            // digests. In these cases, each digest is listed without the tag.
            (unpinned, _) => {
                let mut references: Vec<(String, Option<&'static str>)> = digests
                    .map(|digest| (image.at_digest(digest).to_string(), None))
                    .collect();
                if self.bare {
                    let why = unpinned.unwrap_or(AMBIGUOUS);
                    references.push((name.to_owned(), Some(why)));
                }
                references
            }
        }
    }

    fn comment(&self, why: Option<&str>) -> String {
        format!("  # {}", one_line(&self.positions_and(why)))
    }

    /// The first position, the number of further positions, and `why`.
    fn positions_and(&self, why: Option<&str>) -> String {
        let first = self
            .positions
            .first()
            .map(String::as_str)
            .unwrap_or_default();
        let more = and_more(self.positions.len().saturating_sub(1));
        let why = why.map(|why| format!("; {why}")).unwrap_or_default();
        format!("{first}{more}{why}")
    }
}

/// Whether a tag is not a version: it contains no digit.
fn is_floating(tag: &str) -> bool {
    !tag.bytes().any(|byte| byte.is_ascii_digit())
}

/// `text` in double quotes, without the quotes and backslashes that would need an escape.
fn quoted_text(text: &str) -> String {
    format!("\"{}\"", text.replace(['"', '\\'], ""))
}

/// `reference` as a YAML scalar.
fn quoted(reference: &str) -> String {
    // an IPv6 host starts with `[`, which would start a YAML list
    if reference.starts_with('[') {
        format!("\"{reference}\"")
    } else {
        reference.to_owned()
    }
}

// Templates for a first manifest.

/// Examples of further sections, as comments for the end of a manifest.
pub const MORE: &str = r#"
# Further keys of a manifest. `landfall help manifest` explains every key; `landfall schema`
# prints a JSON schema for editors.
# files:
#   - {url: "https://dl.k8s.io/release/v1.33.4/bin/linux/amd64/kubelet", checksum: "${url}.sha256", mode: "0755"}
# exclude: [quay.io/example/unused]
# missing:
#   - {ref: "quay.io/example/gone:v1", reason: removed upstream, until: 2027-01-31}
# endpoints:
#   - {host: ec2.eu-central-1.amazonaws.com, port: 443, why: "cannot be mirrored, and must stay reachable"}
"#;

/// A manifest with one example image. `platforms` is the line from
/// [`platforms_line`](super::platforms_line).
pub fn example_manifest(name: &str, title: &str, platforms: &str) -> String {
    let images = "\n# Each image with its version; a tag that moves, such as latest, is pinned \
                  when it is locked.\n\
                  images:\n  - registry.k8s.io/pause:3.10.1  # an example\n";
    head(name, title) + platforms + images + MORE
}

/// A manifest that uses a list in this `format`. `file` is the path of the list, relative to the
/// manifest.
pub fn from_list(name: &str, title: &str, platforms: &str, format: &str, file: &str) -> String {
    let list = serde_json::Value::from(file);
    let lists = format!(
        "\n# The list stays the source of truth: nothing is copied from it.\n\
         lists:\n  - {{format: {format}, file: {list}}}\n"
    );
    head(name, title) + platforms + &lists + MORE
}

#[cfg(test)]
mod tests {
    use super::super::{load, platforms_line};
    use super::*;

    fn image(text: &str, at: &str) -> DraftEntry {
        DraftEntry {
            what: DraftItem::Image(text.parse().unwrap()),
            at: at.into(),
        }
    }

    fn chart(name: &str, at: &str) -> DraftEntry {
        DraftEntry {
            what: DraftItem::Chart(name.to_owned().try_into().unwrap()),
            at: at.into(),
        }
    }

    #[test]
    fn an_unclear_image_that_is_an_entry_is_listed_once() {
        let unclear = DraftEntry {
            what: DraftItem::Unclear {
                text: "redis:7.2".into(),
                why: "a script names it".into(),
            },
            at: "b:2".into(),
        };
        let drafted = draft("n", "t", "", &[image("redis:7.2", "a:1"), unclear]);
        assert_eq!((drafted.entries, drafted.comments), (1, 0), "{drafted:?}");
        let line = "  - docker.io/library/redis:7.2  # a:1 and 1 more\n";
        assert!(drafted.text.contains(line), "{drafted:?}");
    }

    #[test]
    fn pinned_items_become_entries_and_other_items_become_comments() {
        let a = Digest::sha256(b"a");
        let b = Digest::sha256(b"b");
        let DraftManifest {
            text,
            entries,
            comments,
            unpinned,
        } = draft(
            "missing",
            "what\nlacks",
            "",
            &[
                image("quay.io/x/y:v1", "a.yaml:1"),
                image("quay.io/x/y:v1", "b.yaml:2"),
                image(&format!("quay.io/x/z:v1@{a}"), "pods"),
                image("quay.io/x/z:v1", "c.yaml:3"),
                image(&format!("quay.io/x/two:v1@{a}"), "pods"),
                image(&format!("quay.io/x/two:v1@{b}"), "pods"),
                image("quay.io/x/two:v1", "pods"),
                image("nginx", "d.yaml:4"),
                image("redis:latest", "d.yaml:5"),
                image(&format!("redis:latest@{b}"), "pods"),
                image("[::1]:5000/a:1", "e"),
                DraftEntry {
                    what: DraftItem::Url("https://dl.k8s.io/x".into()),
                    at: "f.sh:1".into(),
                },
                chart("oci://[::1]:5000/c/d:1.2.3+x", "i:1"),
                chart("helm+https://h.test/c/d:1.10", "i:2"),
                chart("helm+https://h.test/c/d:1.10", "i:3"),
                DraftEntry {
                    what: DraftItem::Git {
                        url: "https://h/a.git".into(),
                        revision: "v1".into(),
                    },
                    at: "h:2".into(),
                },
                DraftEntry {
                    what: DraftItem::Unclear {
                        text: "{{ x }}".into(),
                        why: "a template".into(),
                    },
                    at: "g:1".into(),
                },
            ],
        );
        assert_eq!(
            text,
            format!(
                "# what\\nlacks\napiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: missing}}\n\nimages:\n  \
             - \"[::1]:5000/a:1\"  # e\n  \
             - docker.io/library/redis@{b}  # d.yaml:5 and 1 more\n  \
             - quay.io/x/two@{first}  # pods\n  - quay.io/x/two@{second}  # pods\n  \
             - quay.io/x/y:v1  # a.yaml:1 and 1 more\n  - quay.io/x/z:v1@{a}  # c.yaml:3 and 1 more\n  \
             # - docker.io/library/nginx  # d.yaml:4; {UNTAGGED}\n  \
             # - docker.io/library/redis:latest  # d.yaml:5 and 1 more; {FLOATING}\n  \
             # - quay.io/x/two:v1  # pods; {AMBIGUOUS}\n  \
             # - {{{{ x }}}}  # g:1; a template\n\ncharts:\n  # with `images: discover` in an entry, the images of the chart are locked, too\n  - {{ref: \"oci://[::1]:5000/c/d:1.2.3+x\"}}  # i:1\n  - {{repo: \"https://h.test/c\", name: \"d\", version: \"1.10\"}}  # i:2 and 1 more\n\nfiles:\n  # add a `checksum:` to each: the URL of its checksum file, or sha256:<hex>; otherwise only the lock pins it\n  - url: \"https://dl.k8s.io/x\"  # f.sh:1\n\ngit:\n  - {{url: \"https://h/a.git\", refs: [\"v1\"]}}  # h:2\n",
                first = a.clone().min(b.clone()),
                second = a.clone().max(b.clone()),
            )
        );
        assert_eq!((entries, comments), (10, 4));
        let nginx = format!("docker.io/library/nginx (d.yaml:4; {UNTAGGED})");
        assert_eq!(
            unpinned,
            [
                nginx,
                format!("docker.io/library/redis:latest (d.yaml:5 and 1 more; {FLOATING})"),
                format!("quay.io/x/two:v1 (pods; {AMBIGUOUS})")
            ]
        );
        assert!(draft("m", "t", "", &[]).text.ends_with("images: []\n"));
        let untagged = draft("m", "t", "", &[image("quay.io/x/y", "a.yaml:1")]).text;
        let line = format!("images:\n  # - quay.io/x/y  # a.yaml:1; {UNTAGGED}\n");
        assert!(untagged.ends_with(&line), "{untagged}");
    }

    #[test]
    fn a_draft_is_a_valid_manifest_whatever_was_found() {
        let digest = Digest::sha256(b"a");
        let file = |url: &str| DraftEntry {
            what: DraftItem::Url(url.into()),
            at: "f.sh:1".into(),
        };
        let git = |url: &str, revision: &str| DraftEntry {
            what: DraftItem::Git {
                url: url.into(),
                revision: revision.into(),
            },
            at: "g.yaml:2".into(),
        };
        let found = [
            // one digest with several tags, of which none is pinned by itself
            image(&format!("quay.io/x/y:latest@{digest}"), "a.yaml:1"),
            image(&format!("quay.io/x/y:nonroot@{digest}"), "b.yaml:2"),
            image(&format!("quay.io/x/y@{digest}"), "c.yaml:3"),
            // other forms of one URL
            file("https://h.test/a.tgz"),
            file("HTTPS://H.test:443/x/../a.tgz"),
            file("https://h.test/page.html#part"),
            file("https://u:secret@h.test:99999/a.tgz"),
            git("https://h.test/a.git", "v1"),
            git("https://H.test:443/a.git", "main"),
            git("https://h.test/b.git#part", "v1"),
            git("https://h.test/c.git", "[ab]"),
            chart("oci://[::1]:5000/c/d:1.2.3+x", "h.yaml:3"),
            chart("helm+https://h.test/c/d:1.10.0", "h.yaml:4"),
        ];
        let drafted = draft("m", "t", "", &found);
        let text = &drafted.text;
        assert_eq!((drafted.entries, drafted.comments), (5, 4), "{text}");
        let all = [
            &*format!("  - quay.io/x/y@{digest}  # a.yaml:1 and 2 more\n"),
            "  # - https://h.test/page.html#part  # f.sh:1; the URL of a file must not contain",
            "  # - https://***@h.test:99999/a.tgz  # f.sh:1; this is not a URL: invalid port",
            "  # - git+https://h.test/b.git#part  # g.yaml:2; this is not the URL of a repository\n",
            "  # - git+https://h.test/c.git  # g.yaml:2; `[ab]` is not the name of a branch or tag",
            "  - url: \"https://h.test/a.tgz\"  # f.sh:1\n",
            "  - {url: \"https://h.test/a.git\", refs: [\"main\", \"v1\"]}  # g.yaml:2\n",
        ];
        for line in all {
            assert!(text.contains(line), "{line} is not in:\n{text}");
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.yaml");
        std::fs::write(&path, text).unwrap();
        let requests = load(&[path]).unwrap().requests;
        let lengths = (
            requests.images.len(),
            requests.files.len(),
            requests.git.len(),
            requests.charts.len(),
        );
        assert_eq!(lengths, (1, 1, 1, 2));
    }

    #[test]
    fn a_name_that_yaml_reads_as_another_type_is_quoted() {
        for (name, written) in [("true", "'true'"), ("null", "'null'"), ("rke2.x", "rke2.x")] {
            let text = draft(name, "t", "", &[]).text;
            assert!(
                text.contains(&format!("metadata: {{name: {written}}}")),
                "{text}"
            );
        }
    }

    #[test]
    fn the_example_and_its_commented_sections_are_valid() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.yaml");
        let text = example_manifest("first", "A title", &platforms_line(&[], ""));
        std::fs::write(&path, &text).unwrap();
        assert_eq!(
            load(std::slice::from_ref(&path))
                .unwrap()
                .requests
                .images
                .len(),
            1
        );
        let all = text
            .replace("\n# platforms", "\nplatforms")
            .replace(MORE, "");
        let more: Vec<&str> = MORE
            .lines()
            .filter_map(|line| line.strip_prefix("# "))
            .skip_while(|line| !line.ends_with(':'))
            .collect();
        let more = more
            .join("\n")
            .replace("quay.io/example/unused", "registry.k8s.io/other");
        let more = more.replace("quay.io/example/gone:v1", "registry.k8s.io/pause:3.10.1");
        let images = "  - registry.k8s.io/other:1\n";
        std::fs::write(&path, format!("{all}{images}{more}\n")).unwrap();
        let wanted = load(&[path]).unwrap();
        assert_eq!(
            (
                wanted.requests.images.len(),
                wanted.requests.files.len(),
                wanted.missing.len()
            ),
            (1, 1, 1)
        );
        assert_eq!(wanted.requests.images[0].platforms.len(), 1);
    }
}
