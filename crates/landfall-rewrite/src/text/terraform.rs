//! Finds the resources of Terraform and OpenTofu that name an image or a chart.

use super::{OCI, has_placeholder};
use std::collections::BTreeMap;
use std::ops::Range;

/// A resource, a data source or a variable.
pub(crate) struct TerraformResource<'t> {
    /// The type; of a variable, its name.
    pub(crate) kind: &'t str,
    /// The bytes of its quoted arguments, without the quotes.
    pub(crate) arguments: BTreeMap<&'t str, Range<usize>>,
    /// The names of its blocks.
    pub(crate) blocks: Vec<&'t str>,
}

/// The resources, data sources and variables of a configuration.
pub(crate) fn resources(text: &str) -> Vec<TerraformResource<'_>> {
    let mut found = Vec::new();
    let mut open: Option<TerraformResource<'_>> = None;
    let mut depth = 0;
    let mut here_document = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(end) = here_document {
            here_document = Some(end).filter(|end| line != *end);
            continue;
        }
        if line.starts_with('#') || line.starts_with("//") {
            continue;
        }
        let content = if depth == 0 {
            open = kind(line).map(|kind| TerraformResource {
                kind,
                arguments: BTreeMap::new(),
                blocks: Vec::new(),
            });
            // a block on one line has one argument
            line.split_once('{').map_or("", |(_, content)| content)
        } else {
            line
        };
        if let Some(resource) = open.as_mut().filter(|_| depth <= 1) {
            if let Some((name, value)) = argument(content) {
                let start = value.as_ptr() as usize - text.as_ptr() as usize;
                resource.arguments.insert(name, start..start + value.len());
            } else if depth == 1 && content.ends_with('{') && !content.contains('=') {
                resource.blocks.extend(content.split([' ', '{']).next());
            }
        }
        here_document = line.split_once("<<").map(|(_, end)| end.trim_matches('-'));
        depth = depth_after(line, depth);
        if depth == 0 {
            found.extend(open.take());
        }
    }
    found
}

/// The first label of the block that `line` begins.
fn kind(line: &str) -> Option<&str> {
    let mut blocks = ["resource", "data", "variable"].iter();
    let labels = blocks.find_map(|block| line.strip_prefix(block))?;
    let (kind, rest) = labels.trim_start().strip_prefix('"')?.split_once('"')?;
    rest.contains('{').then_some(kind)
}

/// The name and the text of a line `NAME = "TEXT"`.
fn argument(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let (text, rest) = value.trim_start().strip_prefix('"')?.split_once('"')?;
    let rest = rest.trim_start();
    let is_whole = rest.is_empty() || rest.starts_with(['#', '}']) || rest.starts_with("//");
    is_whole.then_some((name.trim(), text))
}

/// The number of open braces after `line`, outside of quotes.
fn depth_after(line: &str, mut depth: usize) -> usize {
    let mut in_quotes = false;
    let mut is_escaped = false;
    for c in line.chars() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => in_quotes = !in_quotes,
            '{' if !in_quotes => depth += 1,
            '}' if !in_quotes => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    depth
}

/// The chart at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AddressedChart {
    /// The name, which Helm appends to the address; `None` if the address ends in it.
    pub(super) name: Option<String>,
    /// The version, unless it is computed.
    pub(super) version: Option<String>,
}

/// The charts of each `helm_release` in a registry, by the offset of their address.
pub(super) fn chart_addresses(text: &str) -> BTreeMap<usize, AddressedChart> {
    if !text.contains("\"helm_release\"") {
        return BTreeMap::new();
    }
    let mut found = BTreeMap::new();
    for resource in resources(text) {
        let argument = |name: &str| {
            let span = resource.arguments.get(name)?.clone();
            let value = &text[span.clone()];
            (!value.is_empty() && !has_placeholder(value)).then_some((span.start, value))
        };
        let Some((chart_at, chart)) = argument("chart").filter(|_| resource.kind == "helm_release")
        else {
            continue;
        };
        let version = argument("version").map(|(_, version)| version.to_owned());
        let (address_at, address, name) = match argument("repository") {
            _ if chart.starts_with(OCI) => (chart_at, chart, None),
            Some((at, repository)) => (at, repository, Some(chart.to_owned())),
            None => continue,
        };
        if address.starts_with(OCI) {
            found.insert(address_at + OCI.len(), AddressedChart { name, version });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TextSyntax;
    use crate::tests::run_as;

    #[test]
    fn arguments_of_resources_are_read() {
        let text = "resource \"a\" \"x\" {\n  # name = \"no\"\n  name = \"n\" # why\n  v = \"a\" + b\n  build {\n    \
                    name = \"inner\"\n  }\n  x = <<-EOT\n    } {\n    name = \"no\"\n  EOT\n  u = \"${a}}\"\n}\n\
                    locals {\n  name = \"no\"\n}\ndata \"b\" \"y\" { name = \"one\" }\nresource x {\n}\n\
                    variable \"c\" {\n  default = \"d\"\n}\n";
        let found = resources(text);
        let found: Vec<_> = found
            .iter()
            .map(|one| {
                let arguments = one.arguments.iter();
                let arguments = arguments.map(|(name, span)| (*name, &text[span.clone()]));
                (one.kind, arguments.collect::<Vec<_>>(), &*one.blocks)
            })
            .collect();
        assert_eq!(
            found,
            [
                ("a", vec![("name", "n"), ("u", "${a}}")], &["build"][..]),
                ("b", vec![("name", "one")], &[]),
                ("c", vec![("default", "d")], &[]),
            ]
        );
    }

    #[test]
    fn charts_in_a_registry_are_rewritten() {
        let release = |arguments: &str| {
            let arguments = arguments.replace(", ", "\n  ");
            format!("resource \"helm_release\" \"x\" {{\n  {arguments}\n}}\n")
        };
        for (before, after) in [
            (
                "repository = \"oci://quay.io/c\", chart = \"d\", version = \"1.10\"",
                "repository = \"oci://r:5/p/c\", chart = \"d\", version = \"1.10\"",
            ),
            (
                "chart = \"d\", repository = \"oci://quay.io/c\", version = var.v",
                "chart = \"d\", repository = \"oci://r:5/p/c\", version = var.v",
            ),
            (
                "chart = \"oci://quay.io/c/d\", version = \"1.10\"",
                "chart = \"oci://r:5/p/c/d\", version = \"1.10\"",
            ),
        ] {
            for text in [before, after] {
                let result = run_as(&release(text), TextSyntax::Text);
                assert_eq!(result, (release(after), vec![]), "{text}");
            }
        }
        for text in [
            "repository = \"oci://quay.io/c\", chart = \"d\", version = \"2\"",
            "chart = \"oci://quay.io/c/d\", version = \"2\"",
        ] {
            let (new, left) = run_as(&release(text), TextSyntax::Text);
            assert_eq!(new, release(text));
            assert!(
                left.len() == 1 && left[0].contains("only as 1.10"),
                "{left:?}"
            );
        }
        for text in [
            "repository = \"oci://quay.io/c\", chart = \"x\", version = \"1\"",
            "repository = \"oci://quay.io/c\", chart = var.chart",
            "repository = \"https://quay.io/c\", chart = \"d\"",
        ] {
            let result = run_as(&release(text), TextSyntax::Text);
            assert_eq!(result, (release(text), vec![]), "{text}");
        }
    }
}
