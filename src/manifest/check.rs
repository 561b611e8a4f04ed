//! Checks one manifest, value by value, and expands its variables and lists into items.

use super::items::{Items, Located};
use super::schema::{Document, EndpointEntry, ListFormat, Missing};
use super::wanted::Endpoint;
use crate::document::{At, Field, Node, SourceSpan, SourceText, Vars};
use crate::item::{Checked, EntryReader, ItemKind, exclusion, kinds, listed, locked_name, platforms};
use crate::lockfile::Accepted;
use std::rc::Rc;

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
    let platforms = platforms(&document.platforms, |index| here(root.get("platforms").item(index)))?;
    let reader = EntryReader { text, vars, platforms, referrers: document.referrers };
    let mut items = Items::default();
    read_entries(document, &reader, &mut items)?;
    for (format, list) in lists {
        for (reference, span) in format.0.read(list)? {
            let value = listed(&reference, &span, &reader)?;
            items.images.push(Located { value, span, listed: true });
        }
    }
    let checker = Checker(reader);
    for (index, entry) in document.missing.iter().enumerate() {
        checker.missing(entry, root.get("missing").item(index), &mut items)?;
    }
    for (index, entry) in document.endpoints.iter().enumerate() {
        checker.endpoint(entry, root.get("endpoints").item(index), &mut items)?;
    }
    items.names.extend(document.metadata.iter().map(|metadata| metadata.name.clone()));
    for (index, entry) in document.exclude.iter().enumerate() {
        let span = here(root.get("exclude").item(index));
        for binding in checker.0.vars.bindings(&[Field::new(entry, span.clone())])? {
            let value = exclusion(&binding.fill(entry), &span)?;
            items.exclude.push(Located { value, span: span.clone(), listed: false });
        }
    }
    Ok(items)
}

macro_rules! entries {
    ($($(#[doc = $doc:tt])* $(#[cfg($only:meta)])* $section:ident: $kind:ty,)*) => {
        /// Reads the entries of each kind.
        fn read_entries(document: &Document, reader: &EntryReader<'_>, items: &mut Items) -> Checked<()> {
            $(
                $(#[cfg($only)])*
                for (index, entry) in document.$section.iter().enumerate() {
                    let node = reader.text.root.get(stringify!($section)).item(index);
                    let wishes = <$kind as ItemKind>::read(entry, node, reader)?;
                    let item = |(value, span)| Located { value, span, listed: false };
                    items.$section.extend(wishes.into_iter().map(item));
                }
            )*
            Ok(())
        }
    };
}
kinds!(entries);

/// The entries of one file that are no items.
struct Checker<'a>(EntryReader<'a>);

impl Checker<'_> {
    fn missing(&self, entry: &Missing, node: &Node, items: &mut Items) -> Checked<()> {
        let (at, until_at) = (self.0.here(node.get("ref")), self.0.here(node.get("until")));
        let fields = [
            Field::new(&entry.r#ref, at.clone()),
            Field::new(&entry.reason, self.0.here(node.get("reason"))),
        ];
        let until: Option<jiff::civil::Date> = entry.until.parse().ok();
        if until.is_none_or(|date| date.to_string() != entry.until) {
            let help = Some("write the last day on which the loss is accepted, as in 2027-01-31".into());
            return Err(until_at.fault(format!("`{}` is no date", entry.until), help));
        }
        self.not_blank(&entry.reason, node.get("reason"), "the reason is for whoever reads the report")?;
        for binding in self.0.vars.bindings(&fields)? {
            let reference = binding.fill(&entry.r#ref);
            let (kind, name) = locked_name(&reference, &at)?;
            let reason = binding.fill(&entry.reason);
            let value = Accepted { kind, name, reason, until: entry.until.clone() };
            items.missing.push(Located { value, span: at.clone(), listed: false });
        }
        Ok(())
    }

    fn endpoint(&self, entry: &EndpointEntry, node: &Node, items: &mut Items) -> Checked<()> {
        let at = self.0.here(node.get("host"));
        self.not_blank(&entry.why, node.get("why"), "the reason is for whoever opens the firewall")?;
        if entry.port == 0 {
            let help = Some("write a port from 1 to 65535".into());
            return Err(self.0.here(node.get("port")).fault("0 is no port", help));
        }
        let fields =
            [Field::new(&entry.host, at.clone()), Field::new(&entry.why, self.0.here(node.get("why")))];
        for binding in self.0.vars.bindings(&fields)? {
            let host = binding.fill(&entry.host).to_ascii_lowercase();
            let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
            let name = host.strip_prefix("*.").unwrap_or(&host);
            let is_name = !name.is_empty() && name.chars().all(good);
            if !is_name && host.parse::<std::net::IpAddr>().is_err() {
                let help = Some("write the host alone, as in ec2.eu-central-1.amazonaws.com".into());
                return Err(at.fault(format!("`{host}` is no host name and no address"), help));
            }
            let value = Endpoint { host, port: entry.port, why: binding.fill(&entry.why) };
            items.endpoints.push(Located { value, span: at.clone(), listed: false });
        }
        Ok(())
    }

    fn not_blank(&self, text: &str, node: &Node, help: &str) -> Checked<()> {
        match text.trim().is_empty() {
            true => Err(self.0.here(node).fault("this is empty", Some(help.into()))),
            false => Ok(()),
        }
    }
}
