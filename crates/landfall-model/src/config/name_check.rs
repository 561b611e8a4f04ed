//! Checks `names` of a site: DNS names, in which only `*.` at the start stands for more than
//! itself.

use super::platforms::RequiredNames;
use crate::document::{Diagnostic, YamlNode};
use crate::is_dns_name;
use std::net::IpAddr;
use std::ops::Range;

/// Checks `names` of the site in `text`.
///
/// # Errors
/// The first text that is no name, with its place and what to write instead.
pub(super) fn check(
    names: &[RequiredNames],
    file: &str,
    text: &str,
) -> Result<(), Box<Diagnostic>> {
    let root = YamlNode::parse(text).unwrap_or_default();
    for (index, entry) in names.iter().enumerate() {
        let node = root.get("names").item(index);
        let place = |key: &str, at: usize| match entry {
            RequiredNames::One(_) => node.span(),
            RequiredNames::Entry(_) => node.get(key).item(at).span(),
        };
        let of_key = |key: &'static str, names: &[String]| -> Option<(String, Range<usize>)> {
            let bad = names.iter().position(|name| !is_name(name))?;
            Some((names[bad].clone(), place(key, bad)))
        };
        let Some((name, span)) =
            of_key("dns", entry.dns()).or_else(|| of_key("certificate", entry.certificate()))
        else {
            continue;
        };
        let message = format!("`{name}` is no DNS name");
        let help = match instead(&name) {
            Some(instead) => format!("write `{instead}`"),
            None => {
                "write a name alone, as in kubermatic.example.com or *.seed.example.com".to_owned()
            }
        };
        let (file, text) = (file.to_owned(), text.to_owned());
        return Err(Box::new(Diagnostic {
            file,
            text,
            span,
            message,
            help: Some(help),
        }));
    }
    Ok(())
}

/// Whether it is a DNS name, `*.` before one, or an address.
fn is_name(name: &str) -> bool {
    is_dns_name(name.strip_prefix("*.").unwrap_or(name)) || name.parse::<IpAddr>().is_ok()
}

/// The name in a URL, in a `host:port`, or behind a needless escape.
fn instead(written: &str) -> Option<String> {
    let host = written.split_once("://").map_or(written, |(_, rest)| rest);
    let host = host.split('/').next().unwrap_or_default();
    let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    let host = host
        .rsplit_once(':')
        .filter(|_| !is_address)
        .map_or(host, |(host, _)| host);
    let host = host
        .trim_start_matches('\\')
        .trim_end_matches('.')
        .trim_matches(['[', ']']);
    is_name(host).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use crate::config::Site;
    use std::path::Path;

    fn read(names: &str) -> Result<Site, String> {
        let text = format!("apiVersion: landfall/v1\nkind: Site\nnames: {names}\n");
        Site::parse(Path::new("site.yaml"), &text).map_err(|error| error.to_string())
    }

    #[test]
    fn only_names_are_names() {
        let good = "[a.test, '*.b.test', 10.0.0.1, {dns: [_acme.c.test], certificate: ['*.c.test', fd00::1]}]";
        assert!(read(good).is_ok());
        for (written, instead) in [
            ("host.test:443", "host.test"),
            ("https://host.test/x", "host.test"),
            ("\\*.seed.test", "*.seed.test"),
            ("host.test.", "host.test"),
            ("[fd00::1]", "fd00::1"),
        ] {
            for names in [
                format!("['{written}']"),
                format!("[a.test, {{dns: [a.test], certificate: ['{written}']}}]"),
            ] {
                let told = read(&names).unwrap_err();
                assert!(
                    told.starts_with("site.yaml:3:")
                        && told.contains(&format!("write `{instead}`")),
                    "{told}"
                );
            }
        }
        for written in ["a b", "a..b", "*", "a.*.b", "''"] {
            let told = read(&format!("[{{dns: ['{}']}}]", written.trim_matches('\''))).unwrap_err();
            assert!(
                told.contains("is no DNS name") && told.contains("write a name alone"),
                "{told}"
            );
        }
    }
}
