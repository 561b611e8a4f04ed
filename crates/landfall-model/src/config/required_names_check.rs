//! Checks `names` of a site: DNS names, possibly with `*.` at the start, or IP addresses.

use super::platforms::RequiredNames;
use crate::document::{Diagnostic, YamlNode};
use crate::is_dns_name;
use std::net::IpAddr;

/// Reports the first name that is neither a DNS name nor an address, with its position in the site
/// `text` and what to write instead.
pub(super) fn check_required_names(
    names: &[RequiredNames],
    file: &str,
    text: &str,
) -> Result<(), Box<Diagnostic>> {
    let root = YamlNode::parse(text).unwrap_or_default();
    for (index, entry) in names.iter().enumerate() {
        let node = root.get("names").item(index);
        for (key, names) in [("dns", entry.dns()), ("certificate", entry.certificate())] {
            let Some(bad) = names.iter().position(|name| !is_name(name)) else {
                continue;
            };
            let help = match contained_name(&names[bad]) {
                Some(name) => format!("write `{name}`"),
                None => "write a name alone, as in kubermatic.example.com or *.seed.example.com"
                    .to_owned(),
            };
            let span = match entry {
                RequiredNames::One(_) => node.span(),
                RequiredNames::Entry(_) => node.get(key).item(bad).span(),
            };
            return Err(Box::new(Diagnostic {
                file: file.to_owned(),
                text: text.to_owned(),
                span,
                message: format!("`{}` is not a DNS name", names[bad]),
                help: Some(help),
            }));
        }
    }
    Ok(())
}

/// Whether the text is a DNS name, possibly with `*.` before it, or an address.
fn is_name(name: &str) -> bool {
    is_dns_name(name.strip_prefix("*.").unwrap_or(name)) || name.parse::<IpAddr>().is_ok()
}

/// Returns the name in `written`: a URL, a `host:port`, or a name with a needless escape or a final
/// dot.
fn contained_name(written: &str) -> Option<String> {
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
    fn names_that_are_not_dns_names_are_refused() {
        let good = "[a.test, '*.b.test', 10.0.0.1, {dns: [_acme.c.test], certificate: \
                    ['*.c.test', fd00::1]}]";
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
                let message = read(&names).unwrap_err();
                assert!(
                    message.starts_with("site.yaml:3:")
                        && message.contains(&format!("write `{instead}`")),
                    "{message}"
                );
            }
        }
        for written in ["a b", "a..b", "*", "a.*.b", "''"] {
            let message =
                read(&format!("[{{dns: ['{}']}}]", written.trim_matches('\''))).unwrap_err();
            assert!(
                message.contains("is not a DNS name") && message.contains("write a name alone"),
                "{message}"
            );
        }
    }
}
