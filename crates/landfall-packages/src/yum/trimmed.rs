//! Trimmed metadata of a repository: indexes that list only the carried packages, with elements
//! copied from the repository's indexes, and a `repomd.xml` for them. Equal content gives equal
//! bytes.

use super::metadata::{malformed, unreadable};
use super::primary::digest;
use super::repomd::RepomdIndex;
use super::xml::MAX_DEPTH;
use crate::path::{based_href, location, served_path};
use landfall_model::{Digest, Failure};
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, Writer, XmlVersion};
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

/// Builds a trimmed index, `primary` or another one. Several locks may carry parts of one
/// repository, so indexes can be added repeatedly.
#[derive(Debug, Default)]
pub struct TrimmedPrimary {
    /// The name of the root element.
    name: String,
    /// The attributes of the root element. They declare the namespaces that the copied packages
    /// use.
    attributes: BTreeMap<String, String>,
    /// The `package` elements by digest, so that their order does not depend on the locks.
    packages: BTreeMap<String, String>,
}

impl TrimmedPrimary {
    /// Adds the packages of an index of the repository `url` that are in `carried`, a map of
    /// digests in hex to paths. Returns the digests of the packages that it added. `what` names the
    /// index in messages. A location that dnf would look for on another server is replaced.
    ///
    /// # Errors
    /// If the index is malformed or truncated.
    pub fn add(
        &mut self,
        reader: impl BufRead,
        what: &'static str,
        url: &str,
        carried: &BTreeMap<String, &str>,
    ) -> Result<BTreeSet<String>, Failure> {
        let malformed = |error: &dyn ToString| malformed(what, error.to_string());
        let mut reader = Reader::from_reader(reader);
        let mut buffer = Vec::new();
        let mut depth = 0_usize;
        let mut found = BTreeSet::new();
        let mut package = TrimmedPackage::default();
        loop {
            buffer.clear();
            let mut event = match reader.read_event_into(&mut buffer) {
                Ok(event) => event,
                // an error of the reader is not an error of the XML
                Err(quick_xml::Error::Io(error)) => return Err(unreadable(error)),
                Err(error) => return Err(malformed(&error)),
            };
            let (opens, closes) = match &event {
                Event::Eof if depth > 0 || self.name.is_empty() => {
                    return Err(malformed(&"it is truncated"));
                }
                Event::Eof => return Ok(found),
                // an empty element such as `<location/>` opens and closes at once
                Event::Start(_) => (true, false),
                Event::Empty(_) => (true, true),
                Event::End(_) => (false, true),
                _ => (false, false),
            };
            if let Event::Start(start) | Event::Empty(start) = &event {
                let name = start.name().into_inner();
                if depth == 0 {
                    name.clone_into(&mut self.name);
                } else if depth == 1 {
                    package = TrimmedPackage::default();
                } else {
                    name.clone_into(&mut package.inside);
                }
                for attribute in start.attributes().with_checks(false) {
                    let attribute = attribute.map_err(|error| malformed(&error))?;
                    let value = attribute.normalized_value(XmlVersion::Explicit1_0);
                    let value = value.map_err(|error| malformed(&error))?.into_owned();
                    match (depth, name, attribute.key.into_inner()) {
                        // the number of packages, which is different for the trimmed index
                        (0, _, "packages") => {}
                        (0, _, key) => drop(self.attributes.insert(key.to_owned(), value)),
                        // `filelists` has the digest as an attribute, `primary` as an element
                        (1, _, "pkgid") => package.digest = Some(value.to_ascii_lowercase()),
                        (2, "checksum", "type") => package.checksum = value,
                        (2, "location", "href") => package.href = Some(value),
                        (2, "location", "xml:base") => package.base = Some(value),
                        _ => {}
                    }
                }
                if depth == 2 && name == "location" {
                    package.find(url);
                    event = package.served_location(url, event);
                }
            }
            if let (2.., Event::Text(text)) = (depth, &event)
                && package.inside == "checksum"
                && let Some(digest) = digest(&package.checksum, text.trim())
            {
                package.digest = Some(digest.hex());
            }
            depth += usize::from(opens);
            if depth > MAX_DEPTH {
                return Err(malformed(&"its elements are nested too deeply"));
            }
            // the element of a package and everything inside it is copied unchanged
            if depth > 1 {
                package
                    .text
                    .write_event(event)
                    .map_err(|error| malformed(&error))?;
            }
            if closes {
                depth = depth
                    .checked_sub(1)
                    .ok_or_else(|| malformed(&"an element ends without a start"))?;
                package.inside.clear();
            }
            if closes && depth == 1 {
                let TrimmedPackage {
                    text, digest, path, ..
                } = std::mem::take(&mut package);
                let Some(digest) = digest else { continue };
                // a repository may list one file at several paths
                let is_carried = carried
                    .get(&digest)
                    .is_some_and(|own| path.is_none_or(|path| path == *own));
                if is_carried {
                    let text =
                        String::from_utf8(text.into_inner()).map_err(|error| malformed(&error))?;
                    self.packages.insert(digest.clone(), text);
                    found.insert(digest);
                }
            }
        }
    }

    /// Returns the trimmed index as XML.
    pub fn text(&self) -> String {
        let mut text = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{}", self.name);
        for (key, value) in &self.attributes {
            text += &format!(" {key}=\"{}\"", quick_xml::escape::escape(value.as_str()));
        }
        text += &format!(" packages=\"{}\">\n", self.packages.len());
        self.packages
            .values()
            .for_each(|package| text += &format!("{package}\n"));
        text + &format!("</{}>\n", self.name)
    }
}

/// The element of a package that is being read.
struct TrimmedPackage {
    text: Writer<Vec<u8>>,
    digest: Option<String>,
    /// The attributes of its `location`.
    href: Option<String>,
    base: Option<String>,
    /// Its location as in locks. Indexes other than `primary` have none.
    path: Option<String>,
    /// The name of the child element that is being read.
    inside: String,
    /// The algorithm of the package's checksum.
    checksum: String,
}

impl TrimmedPackage {
    /// Determines the path from the attributes of `location`.
    fn find(&mut self, url: &str) {
        let href = self.href.as_deref().unwrap_or_default();
        // a location that cannot be mirrored is not that of a carried package
        self.path =
            Some(location(url, &based_href(self.base.as_deref(), href)).unwrap_or_default());
    }

    /// Returns `event`, a `location` element, or one with only the path that the server has, if
    /// `event` names a URL.
    fn served_location<'e>(&self, url: &str, event: Event<'e>) -> Event<'e> {
        let href = self.href.as_deref().unwrap_or_default();
        let Some(path) = self
            .path
            .as_deref()
            .filter(|_| self.base.is_some() || href.contains("://"))
        else {
            return event;
        };
        let mut element = BytesStart::new("location");
        element.push_attribute(("href", &*served_path(url, path)));
        match event {
            Event::Empty(_) => Event::Empty(element),
            _ => Event::Start(element),
        }
    }
}

impl Default for TrimmedPackage {
    fn default() -> TrimmedPackage {
        let text = Writer::new(Vec::new());
        TrimmedPackage {
            text,
            digest: None,
            href: None,
            base: None,
            path: None,
            inside: String::new(),
            checksum: String::new(),
        }
    }
}

/// Returns a `repomd.xml` with the time `seconds`, and the texts of `indexes` by their paths.
/// The `repomd.xml` lists `indexes` (by kind) and `kept`, unchanged indexes.
pub fn trimmed_repomd<'k>(
    indexes: &BTreeMap<&str, TrimmedPrimary>,
    kept: impl IntoIterator<Item = &'k RepomdIndex>,
    seconds: i64,
) -> (String, BTreeMap<String, String>) {
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <repomd xmlns=\"http://linux.duke.edu/metadata/repo\">\n\
         <revision>{seconds}</revision>\n"
    );
    let mut files = BTreeMap::new();
    for (kind, index) in indexes {
        let index = index.text();
        let digest = Digest::sha256(index.as_bytes());
        let size = Some(index.len() as u64);
        // the digest in the name keeps caches from returning an earlier index
        let path = format!("repodata/{}-{kind}.xml", digest.hex());
        let open_digest = Some(digest.clone());
        let open_size = size;
        let own = RepomdIndex {
            kind: (*kind).into(),
            path: path.clone(),
            digest,
            size,
            open_digest,
            open_size,
        };
        text += &data_element(&own, seconds);
        files.insert(path, index);
    }
    text.extend(kept.into_iter().map(|index| data_element(index, seconds)));
    (text + "</repomd>\n", files)
}

/// Returns the `data` element of an index.
fn data_element(index: &RepomdIndex, seconds: i64) -> String {
    let mut text = format!("<data type=\"{}\">\n", index.kind);
    text += &digest_element("checksum", &index.digest);
    let open = index.open_digest.as_ref();
    text.extend(open.map(|digest| digest_element("open-checksum", digest)));
    let path = quick_xml::escape::escape(index.path.as_str());
    text += &format!("<location href=\"{path}\"/>\n");
    text += &format!("<timestamp>{seconds}</timestamp>\n");
    text.extend(index.size.map(|size| format!("<size>{size}</size>\n")));
    text.extend(
        index
            .open_size
            .map(|size| format!("<open-size>{size}</open-size>\n")),
    );
    text + "</data>\n"
}

fn digest_element(name: &str, digest: &Digest) -> String {
    format!(
        "<{name} type=\"{}\">{}</{name}>\n",
        digest.algorithm().as_str(),
        digest.hex()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yum::primary::read_primary;
    use crate::yum::{Pool, Repomd};

    const URL: &str = "https://h.test/a/r";

    fn package(name: &str, sum: &str) -> String {
        format!(
            "<package type=\"rpm\">\n  <name>{name}</name><arch>noarch</arch><version epoch=\"0\" ver=\"1\" rel=\"1\"/>\
             <checksum type=\"sha256\" pkgid=\"YES\">{sum}</checksum><summary>a &lt;b&gt; &amp; <![CDATA[<c>]]></summary>\
             <size package=\"7\"/><location href=\"Packages/{name}.rpm\"/><format><rpm:provides><rpm:entry name=\"{name}\"/>\
             </rpm:provides></format>\n</package>"
        )
    }

    #[test]
    fn indexes_list_the_carried_packages_and_are_reproducible() {
        let [a, b, c] = ["a", "b", "c"].map(|digit| digit.repeat(64));
        let primary = format!(
            "<?xml version=\"1.0\"?>\n<metadata xmlns=\"http://linux.duke.edu/metadata/common\" \
             xmlns:rpm=\"http://linux.duke.edu/metadata/rpm\" packages=\"3\">\n{}\n{}{}</metadata>",
            package("b", &b),
            package("a", &a),
            package("c", &c)
        );
        let list = |id: &str| {
            format!(
                "<package pkgid=\"{id}\" name=\"n\"><version ver=\"1\"/><file>/x</file></package>"
            )
        };
        let lists = format!(
            "<filelists xmlns=\"x\" packages=\"2\">{}{}</filelists>",
            list(&a),
            list(&c)
        );
        let carried = BTreeMap::from([
            (a.clone(), "Packages/a.rpm"),
            (b.clone(), "Packages/b.rpm"),
            (c, "other.rpm"),
        ]);
        let modules = RepomdIndex {
            kind: "modules".into(),
            path: "repodata/modules.yaml.gz".into(),
            digest: Digest::sha256(b"packed"),
            size: Some(6),
            open_digest: None,
            open_size: None,
        };
        let make = || {
            let [mut index, mut files] = [TrimmedPrimary::default(), TrimmedPrimary::default()];
            let found = index
                .add(primary.as_bytes(), "index", URL, &carried)
                .unwrap();
            assert_eq!(
                found,
                BTreeSet::from([a.clone(), b.clone()]),
                "c has another path"
            );
            let none = BTreeMap::from([(a.clone(), "Packages/a.rpm")]);
            files.add(lists.as_bytes(), "index", URL, &none).unwrap();
            trimmed_repomd(
                &BTreeMap::from([("primary", index), ("filelists", files)]),
                Some(&modules),
                1_700_000_000,
            )
        };
        let (repomd, files) = make();
        let read = Repomd::parse(repomd.as_bytes()).unwrap();
        assert_eq!(read.index(URL, "modules").unwrap(), Some(modules.clone()));
        let primary_of = |read: &Repomd| read.index(URL, "primary").unwrap().unwrap();
        assert_eq!(read.date.unwrap().as_second(), 1_700_000_000);
        let primary = &files[&primary_of(&read).path];
        assert!(primary_of(&read).digest.matches(primary.as_bytes()));
        assert!(
            primary.contains(&format!(
                "packages=\"2\">\n{}\n{}\n</metadata>",
                package("a", &a),
                package("b", &b)
            )),
            "{primary}"
        );
        let mut pool = Pool::default();
        read_primary(primary.as_bytes(), 0, &["noarch"], &mut pool).unwrap();
        assert_eq!(pool.ids().count(), 2);
        let lists = &files[&read.index(URL, "filelists").unwrap().unwrap().path];
        assert!(
            lists.ends_with(&format!("packages=\"1\">\n{}\n</filelists>\n", list(&a))),
            "{lists}"
        );
        assert_eq!(make(), (repomd, files));
        for cut in [
            "<metadata",
            "<metadata><package><name>a</name>",
            "</a>",
            "plain",
        ] {
            assert!(
                TrimmedPrimary::default()
                    .add(cut.as_bytes(), "index", URL, &carried)
                    .is_err(),
                "{cut}"
            );
        }
    }
}
