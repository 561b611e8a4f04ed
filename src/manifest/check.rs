//! One manifest, checked value by value: what its entries and lists ask for, each with its place.

use super::items::{Item, Items};
use super::schema::{Document, EndpointEntry, FileEntry, FullImage, ImageEntry, ListFormat, Missing};
use super::source_text::{SourceSpan, SourceText};
use super::value::{checksum_of, digest_of, exclude_of, mode_of, pinned, platforms, reference_of, url_of};
use super::vars::{At, Field, OWN_URL, Vars};
use super::{Endpoint, WantedFile, WantedImage};
use crate::document::{Diagnostic, Node};
use crate::lockfile::Accepted;
use crate::model::Platform;
use crate::report::Kind;
use std::rc::Rc;

type Checked<T> = Result<T, Box<Diagnostic>>;

/// Checks `document`, read from `text`, with the lists that it names.
pub(super) fn check(
    document: &Document,
    text: &Rc<SourceText>,
    lists: &[(ListFormat, Rc<SourceText>)],
) -> Checked<Items> {
    let here = |node: &Node| SourceSpan::new(text, node.span());
    let root = &text.root;
    let vars = Vars::check(&document.vars, |name, at| {
        let vars = root.get("vars");
        let span = match at {
            At::Key => vars.key_span(name).unwrap_or(vars.span()),
            At::Value => vars.get(name).span(),
            At::Item(index) => vars.get(name).item(index).span(),
        };
        SourceSpan::new(text, span)
    })?;
    let checker = Checker { text, vars };
    let defaults = platforms(&document.platforms, |index| here(root.get("platforms").item(index)))?;
    let mut items = Items::default();
    for (index, entry) in document.images.iter().enumerate() {
        let defaults = (&defaults[..], document.referrers);
        checker.image(entry, root.get("images").item(index), defaults, &mut items)?;
    }
    for (format, list) in lists {
        for (reference, span) in format.0.read(list)? {
            let (name, pin) = reference_of(&reference, &span)?;
            let platforms = defaults.clone();
            let (referrers, at) = (document.referrers, span.location());
            let value = WantedImage { name, pin, platforms, update: None, referrers, at };
            items.images.push(Item { value, span, listed: true });
        }
    }
    for (index, entry) in document.files.iter().enumerate() {
        checker.file(entry, root.get("files").item(index), &mut items)?;
    }
    for (index, entry) in document.missing.iter().enumerate() {
        checker.missing(entry, root.get("missing").item(index), &mut items)?;
    }
    for (index, entry) in document.endpoints.iter().enumerate() {
        checker.endpoint(entry, root.get("endpoints").item(index), &mut items)?;
    }
    for (index, entry) in document.exclude.iter().enumerate() {
        let span = here(root.get("exclude").item(index));
        for binding in checker.vars.bindings(&[Field::new(entry, span.clone())])? {
            let value = exclude_of(&binding.fill(entry), &span)?;
            items.exclude.push(Item { value, span: span.clone(), listed: false });
        }
    }
    Ok(items)
}

/// The entries of one file.
struct Checker<'a> {
    text: &'a Rc<SourceText>,
    vars: Vars,
}

impl Checker<'_> {
    fn here(&self, node: &Node) -> SourceSpan {
        SourceSpan::new(self.text, node.span())
    }

    fn image(
        &self,
        entry: &ImageEntry,
        node: &Node,
        defaults: (&[Platform], bool),
        items: &mut Items,
    ) -> Checked<()> {
        let short;
        let (full, at) = match entry {
            ImageEntry::Full(full) => (full, self.here(node.get("ref"))),
            ImageEntry::Short(text) => {
                let r#ref = text.clone();
                short = FullImage { r#ref, digest: None, platforms: None, update: None, referrers: None };
                (&short, self.here(node))
            }
        };
        let digest_at = self.here(node.get("digest"));
        let update_at = self.here(node.get("update"));
        let platform_at = |index: usize| self.here(node.get("platforms").item(index));
        let mut fields = vec![Field::new(&full.r#ref, at.clone())];
        fields.extend(full.digest.as_ref().map(|text| Field::new(text, digest_at.clone())));
        fields.extend(full.update.as_ref().map(|text| Field::new(text, update_at)));
        let texts = full.platforms.iter().flatten().enumerate();
        fields.extend(texts.map(|(index, text)| Field::new(text, platform_at(index))));
        for binding in self.vars.bindings(&fields)? {
            let digest =
                full.digest.as_ref().map(|text| digest_of(&binding.fill(text), &digest_at)).transpose()?;
            let (name, pin) = pinned(&binding.fill(&full.r#ref), digest, &at, &digest_at)?;
            let platforms = match &full.platforms {
                None => defaults.0.to_vec(),
                Some(texts) => {
                    let texts: Vec<String> = texts.iter().map(|text| binding.fill(text)).collect();
                    platforms(&texts, platform_at)?
                }
            };
            let update = full.update.as_ref().map(|text| binding.fill(text));
            let referrers = full.referrers.unwrap_or(defaults.1);
            let value = WantedImage { name, pin, platforms, update, referrers, at: at.location() };
            items.images.push(Item { value, span: at.clone(), listed: false });
        }
        Ok(())
    }

    fn file(&self, entry: &FileEntry, node: &Node, items: &mut Items) -> Checked<()> {
        let at = self.here(node.get("url"));
        let checksum_at = self.here(node.get("checksum"));
        let mode_at = self.here(node.get("mode"));
        let also_at = |index: usize| self.here(node.get("also").item(index));
        let mut fields = vec![Field::new(&entry.url, at.clone())];
        fields.extend(
            entry
                .checksum
                .as_ref()
                .map(|text| Field { takes_url: true, ..Field::new(text, checksum_at.clone()) }),
        );
        fields.extend(entry.mode.as_ref().map(|text| Field::new(text, mode_at.clone())));
        fields.extend(entry.also.iter().enumerate().map(|(index, text)| Field::new(text, also_at(index))));
        for binding in self.vars.bindings(&fields)? {
            let url = url_of(&binding.fill(&entry.url), &at)?;
            let checksum = |text| checksum_of(&binding.with(OWN_URL, &url).fill(text), &checksum_at);
            let checksum = entry.checksum.as_deref().map(checksum).transpose()?;
            let mut also = Vec::new();
            for (index, text) in entry.also.iter().enumerate() {
                let other = url_of(&binding.fill(text), &also_at(index))?;
                if other == url || also.contains(&other) {
                    let help = Some("take it out".into());
                    return Err(also_at(index).fault(format!("the file answers to {other} already"), help));
                }
                also.push(other);
            }
            also.sort();
            let mode = entry.mode.as_ref().map(|text| mode_of(&binding.fill(text), &mode_at)).transpose()?;
            let value = WantedFile { url, checksum, also, mode, at: at.location() };
            items.files.push(Item { value, span: at.clone(), listed: false });
        }
        Ok(())
    }

    fn missing(&self, entry: &Missing, node: &Node, items: &mut Items) -> Checked<()> {
        let (at, until_at) = (self.here(node.get("ref")), self.here(node.get("until")));
        let fields =
            [Field::new(&entry.r#ref, at.clone()), Field::new(&entry.reason, self.here(node.get("reason")))];
        let until: Option<jiff::civil::Date> = entry.until.parse().ok();
        if until.is_none_or(|date| date.to_string() != entry.until) {
            let help = Some("write the last day on which the loss is accepted, as in 2027-01-31".into());
            return Err(until_at.fault(format!("`{}` is no date", entry.until), help));
        }
        self.not_blank(&entry.reason, node.get("reason"), "the reason is for whoever reads the report")?;
        for binding in self.vars.bindings(&fields)? {
            let reference = binding.fill(&entry.r#ref);
            let (kind, name) = if reference.contains("://") {
                (Kind::File, url_of(&reference, &at)?)
            } else {
                (Kind::Image, reference_of(&reference, &at)?.0.to_string())
            };
            let reason = binding.fill(&entry.reason);
            let value = Accepted { kind, name, reason, until: entry.until.clone() };
            items.missing.push(Item { value, span: at.clone(), listed: false });
        }
        Ok(())
    }

    fn endpoint(&self, entry: &EndpointEntry, node: &Node, items: &mut Items) -> Checked<()> {
        let at = self.here(node.get("host"));
        self.not_blank(&entry.why, node.get("why"), "the reason is for whoever opens the firewall")?;
        if entry.port == 0 {
            let help = Some("write a port from 1 to 65535".into());
            return Err(self.here(node.get("port")).fault("0 is no port", help));
        }
        let fields =
            [Field::new(&entry.host, at.clone()), Field::new(&entry.why, self.here(node.get("why")))];
        for binding in self.vars.bindings(&fields)? {
            let host = binding.fill(&entry.host).to_ascii_lowercase();
            let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
            let name = host.strip_prefix("*.").unwrap_or(&host);
            let is_name = !name.is_empty() && name.chars().all(good);
            if !is_name && host.parse::<std::net::IpAddr>().is_err() {
                let help = Some("write the host alone, as in ec2.eu-central-1.amazonaws.com".into());
                return Err(at.fault(format!("`{host}` is no host name and no address"), help));
            }
            let value = Endpoint { host, port: entry.port, why: binding.fill(&entry.why) };
            items.endpoints.push(Item { value, span: at.clone(), listed: false });
        }
        Ok(())
    }

    fn not_blank(&self, text: &str, node: &Node, help: &str) -> Checked<()> {
        match text.trim().is_empty() {
            true => Err(self.here(node).fault("this is empty", Some(help.into()))),
            false => Ok(()),
        }
    }
}
