//! Validates one manifest, and expands its variables and lists into requests.

use super::lists::ImageListFormat;
use super::load::ManifestFaults;
use super::merge::{ExpandedManifest, ListSource, Located, SelectorEntry, TrustRootSource};
use super::schema::{EndpointEntry, ListFormat, ManifestDocument, MissingEntry};
use crate::lockfile::{AcceptedLoss, Endpoint};
use crate::{
    EntryContext, EntryReader, ItemKind, LockedChart, LockedFile, LockedGitRepository, LockedImage,
    LockedPackageSet, LockedProvider, ManifestResult, expand_entry, listed, locked_name,
    parse_exclusion, platforms,
};
use landfall_model::document::{
    ManifestVars, SourceSpan, SourceText, TemplateField, TrustedRootRule, VarPart,
};
use landfall_model::report::EntryKind;
use landfall_model::{PlatformRequest, is_dns_name};
use landfall_signature::SignaturePolicy;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Validates and expands `document`, which was parsed from `text`, with the lists that it names.
/// Errors are added to `faults`; an error in the variables is returned, since all other values may
/// use variables.
pub(super) fn check(
    document: &ManifestDocument,
    text: &Rc<SourceText>,
    lists: &[(ListFormat, Rc<SourceText>)],
    faults: &mut ManifestFaults,
) -> ManifestResult<ExpandedManifest> {
    let root = &text.root;
    let vars = ManifestVars::check(&document.vars, |name, at| {
        let vars = root.get("vars");
        let span = match at {
            VarPart::Key => vars.key_span(name).unwrap_or(vars.span()),
            VarPart::Value => vars.get(name).get("value").span(),
            VarPart::Item(index) => vars.get(name).get("value").item(index).span(),
            VarPart::Policy => vars.get(name).get("update").span(),
        };
        SourceSpan::new(text, span)
    })?;
    let platforms = platforms(&document.platforms, |index| {
        SourceSpan::new(text, root.get("platforms").item(index).span())
    });
    let platforms = faults.take(platforms).unwrap_or_default();
    let context = EntryContext {
        text,
        vars,
        platforms,
        referrers: document.referrers,
        min_age: document.min_age.clone(),
    };
    let reader = context.root();
    let mut items = ExpandedManifest::default();
    let selectors = &mut items.selectors;
    context.expand::<LockedImage>(&document.images, &mut items.images, selectors, faults);
    context.expand::<LockedFile>(&document.files, &mut items.files, selectors, faults);
    context.expand::<LockedChart>(&document.charts, &mut items.charts, selectors, faults);
    context.expand::<LockedPackageSet>(&document.packages, &mut items.packages, selectors, faults);
    context.expand::<LockedGitRepository>(&document.git, &mut items.git, selectors, faults);
    context.expand::<LockedProvider>(&document.providers, &mut items.providers, selectors, faults);
    // lists use `platforms` and `referrers` of the manifest that names them
    for (format, list) in lists {
        read_list(format.0, list, &context, &mut items, faults);
    }
    // `lists` lacks the lists that cannot be read, so its indexes differ from `document.lists`
    for (index, entry) in document.lists.iter().enumerate() {
        if let Some(from) = &entry.from {
            let at = reader.below("lists").item(index).at("from");
            let path = manifest_folder(&context).join(&entry.file);
            let source = list_source(from, &at, path, &context);
            items.list_sources.extend(faults.take(source));
        }
    }
    items.signatures = faults
        .take(signature_policy(document, reader))
        .unwrap_or_default();
    items.trust_root_sources = trust_root_sources(document, &context);
    for (index, entry) in document.missing.iter().enumerate() {
        let reader = reader.below("missing").item(index);
        faults.take(reader.missing(entry, &mut items));
    }
    for (index, entry) in document.endpoints.iter().enumerate() {
        let reader = reader.below("endpoints").item(index);
        faults.take(reader.endpoint(entry, &mut items));
    }
    items.name = document
        .metadata
        .as_ref()
        .map(|metadata| metadata.name.clone());
    for (index, entry) in document.exclude.iter().enumerate() {
        let reader = reader.below("exclude").item(index);
        faults.take(reader.exclude(entry, &mut items));
    }
    Ok(items)
}

/// Reads the rules of `verify:`, with the files that they name.
fn signature_policy(
    document: &ManifestDocument,
    reader: EntryReader<'_>,
) -> ManifestResult<SignaturePolicy> {
    let folder = manifest_folder(reader.context);
    SignaturePolicy::read(&document.verify, folder).map_err(|error| {
        let rule = reader.below("verify").item(error.index);
        rule.at(error.key).fault(error.why, Some(&error.help))
    })
}

/// The trust roots with a `from` in the rules of `verify:`.
fn trust_root_sources(
    document: &ManifestDocument,
    context: &EntryContext<'_>,
) -> Vec<TrustRootSource> {
    let folder = manifest_folder(context);
    let rules = document.verify.iter();
    let updated = rules.filter_map(|rule| match &rule.trusted_root {
        Some(TrustedRootRule::Updated(updated)) => Some(updated),
        _ => None,
    });
    updated
        .map(|updated| TrustRootSource {
            path: folder.join(&updated.file),
            url: updated.from.trim_end_matches('/').to_owned(),
            tuf_root: folder.join(&updated.tuf_root),
        })
        .collect()
}

/// The folder to which the paths in a manifest are relative.
fn manifest_folder<'c>(context: &'c EntryContext<'_>) -> &'c Path {
    let file = Path::new(&*context.text.file);
    file.parent().unwrap_or(Path::new(""))
}

/// Reads the `from` of the list at `path`.
fn list_source(
    from: &str,
    at: &SourceSpan,
    path: PathBuf,
    context: &EntryContext<'_>,
) -> ManifestResult<ListSource> {
    let urls = context.vars.expand(&from.to_owned(), |from| {
        vec![TemplateField::new(from, at.clone())]
    })?;
    match &urls[..] {
        [url] => {
            let named = url.contains("://").then(|| locked_name(url, at));
            match named.transpose()? {
                Some((EntryKind::File, url)) => Ok(ListSource {
                    path,
                    url,
                    min_age: context.min_age.clone(),
                }),
                // a chart or a git repository has a URL, too
                _ => Err(at.fault(
                    "this is not a URL of a file",
                    Some("begin it with https://"),
                )),
            }
        }
        _ => Err(at.fault(
            "this is more than one URL",
            Some("write an entry for each list"),
        )),
    }
}

/// Expands a list that is given instead of a manifest.
pub(super) fn plain_list(
    format: &ImageListFormat,
    list: &Rc<SourceText>,
    platforms: Vec<PlatformRequest>,
    faults: &mut ManifestFaults,
) -> ExpandedManifest {
    let mut items = ExpandedManifest::default();
    let context = EntryContext {
        text: list,
        vars: ManifestVars::default(),
        platforms,
        referrers: true,
        min_age: None,
    };
    read_list(format, list, &context, &mut items, faults);
    items
}

/// Reads the images of a list.
fn read_list(
    format: &ImageListFormat,
    list: &Rc<SourceText>,
    context: &EntryContext<'_>,
    items: &mut ExpandedManifest,
    faults: &mut ManifestFaults,
) {
    for (reference, span) in faults.take(format.read(list)).unwrap_or_default() {
        let value = faults.take(listed(&reference, &span, context));
        items.images.extend(value.map(|value| Located {
            value,
            span,
            from_list: true,
        }));
    }
}

/// `text` on one line: it may be written on several lines in YAML.
fn paragraph(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An IPv6 address without the brackets that URLs need; any other text unchanged.
fn without_brackets(host: &str) -> &str {
    let inner = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    inner
        .filter(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok())
        .unwrap_or(host)
}

impl EntryContext<'_> {
    /// Expands the entries of one kind and adds them to `requests`, and their rules to `selectors`.
    fn expand<K: ItemKind>(
        &self,
        entries: &[K::Entry],
        requests: &mut Vec<Located<K::Request>>,
        selectors: &mut Vec<SelectorEntry>,
        faults: &mut ManifestFaults,
    ) {
        let section = self.root().below(K::SECTION);
        for (index, entry) in entries.iter().enumerate() {
            let expanded = expand_entry(entry, section.item(index));
            let Some(expanded) = faults.take(expanded) else {
                continue;
            };
            for (request, span) in expanded.requests {
                requests.push(Located::new(request, span));
            }
            selectors.extend(expanded.selector.map(|selector| SelectorEntry {
                section: K::SECTION,
                index,
                kind: K::KIND,
                selector,
            }));
        }
    }
}

impl EntryReader<'_> {
    fn missing(self, entry: &MissingEntry, items: &mut ExpandedManifest) -> ManifestResult<()> {
        let at = self.at("ref");
        let until_at = self.at("until");
        self.not_blank(
            "reason",
            &entry.reason,
            "write why the loss is accepted; reports show it",
        )?;
        let entries = self.context.vars.expand(entry, |entry| {
            vec![
                TemplateField::new(&mut entry.r#ref, at.clone()),
                TemplateField::new(&mut entry.reason, self.at("reason")),
                TemplateField::new(&mut entry.until, until_at.clone()),
            ]
        })?;
        for MissingEntry {
            r#ref,
            reason,
            until,
        } in entries
        {
            let (kind, name) = locked_name(&r#ref, &at)?;
            let reason = paragraph(&reason);
            // only the plain form `YYYY-MM-DD`, since dates are compared as texts
            let date: Option<jiff::civil::Date> = until.parse().ok();
            if date.is_none_or(|date| date.to_string() != until) {
                let help =
                    Some("write the last day on which the loss is accepted, as in 2027-01-31");
                return Err(until_at.fault(format!("`{until}` is not a date"), help));
            }
            let value = AcceptedLoss {
                kind,
                name,
                reason,
                until,
            };
            items.missing.push(Located::new(value, at.clone()));
        }
        Ok(())
    }

    fn exclude(self, entry: &str, items: &mut ExpandedManifest) -> ManifestResult<()> {
        let span = self.here();
        let entries = self.context.vars.expand(&entry.to_owned(), |entry| {
            vec![TemplateField::new(entry, span.clone())]
        })?;
        for entry in &entries {
            let value = parse_exclusion(entry, &span)?;
            items.exclude.push(Located::new(value, span.clone()));
        }
        Ok(())
    }

    fn endpoint(self, entry: &EndpointEntry, items: &mut ExpandedManifest) -> ManifestResult<()> {
        let at = self.at("host");
        self.not_blank(
            "why",
            &entry.why,
            "write what the endpoint is needed for: the people who open the firewall need to know",
        )?;
        if entry.port == 0 {
            let help = Some("write a port from 1 to 65535");
            return Err(self.at("port").fault("0 is not a valid port", help));
        }
        let from = self.below("from").roles(&entry.from)?;
        let entries = self.context.vars.expand(entry, |entry| {
            vec![
                TemplateField::new(&mut entry.host, at.clone()),
                TemplateField::new(&mut entry.why, self.at("why")),
            ]
        })?;
        for entry in entries {
            let written = entry.host.to_ascii_lowercase();
            let host = without_brackets(&written).to_owned();
            let is_name = is_dns_name(host.strip_prefix("*.").unwrap_or(&host));
            if !is_name && host.parse::<std::net::IpAddr>().is_err() {
                let help = Some("write only the host, as in ec2.eu-central-1.amazonaws.com");
                return Err(at.fault(
                    format!("`{written}` is neither a host name nor an address"),
                    help,
                ));
            }
            let value = Endpoint {
                host,
                port: entry.port,
                why: paragraph(&entry.why),
                from: from.clone(),
            };
            items.endpoints.push(Located::new(value, at.clone()));
        }
        Ok(())
    }

    /// Validates and sorts the roles that need an endpoint.
    fn roles(self, written: &[String]) -> ManifestResult<Vec<String>> {
        for (index, role) in written.iter().enumerate() {
            let is_good = !role.is_empty()
                && role
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            if !is_good {
                let help = "write lower-case letters, digits and dashes, as in user-cluster-node";
                let at = self.item(index).here();
                return Err(at.fault(format!("`{role}` is not a role"), Some(help)));
            }
        }
        let roles: BTreeSet<&String> = written.iter().collect();
        Ok(roles.into_iter().cloned().collect())
    }

    fn not_blank(self, key: &str, text: &str, help: &str) -> ManifestResult<()> {
        if text.trim().is_empty() {
            Err(self.at(key).fault("this is empty", Some(help)))
        } else {
            Ok(())
        }
    }
}
