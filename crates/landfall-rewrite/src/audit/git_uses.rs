//! Finds the git repositories that configurations of Terraform and OpenTofu use.

use crate::git_source::{GitSource, GitUse};
use std::path::Path;

/// Whether the file is a configuration of Terraform or OpenTofu.
pub(super) fn is_terraform(name: &Path) -> bool {
    name.extension()
        .is_some_and(|ending| ending == "tf" || ending == "tofu")
}

/// The sources of modules in a configuration of Terraform.
pub(super) fn in_terraform(text: &str) -> Vec<GitUse> {
    let mut uses = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if let Some(value) = quoted_source(line)
            && let Some(source) = GitSource::parse(value)
        {
            let at = start + (value.as_ptr() as usize - line.as_ptr() as usize);
            uses.push(GitUse::of_source(at, Vec::new(), value, &source));
        }
        start += line.len();
    }
    uses
}

/// The value of a line `source = "…"` or `module "…" { source = "…" }`.
fn quoted_source(line: &str) -> Option<&str> {
    let mut argument = line.trim_start();
    if argument.starts_with("module") {
        argument = argument.split_once('{')?.1.trim_start();
    }
    let value = argument.strip_prefix("source")?.trim_start();
    let value = value.strip_prefix('=')?.trim_start().strip_prefix('"')?;
    Some(value.split_once('"')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_modules_are_found_in_terraform_and_opentofu() {
        let text = "module \"a\" {\n  source = \"git::https://h.example/a?ref=v1\"\n}\n\
                    module \"b\" { source = \"git::https://h.example/b?ref=v2\" }\n\
                    # source = \"git::https://h.example/c\"\nmodule \"d\" {}\n";
        let found = in_terraform(text);
        let urls: Vec<&str> = found.iter().map(|one| one.url.as_str()).collect();
        assert_eq!(urls, ["https://h.example/a", "https://h.example/b"]);
        assert!(found.iter().all(|one| text[one.at..].starts_with("git::")));
        for (name, is_read) in [("main.tf", true), ("main.tofu", true), ("main.hcl", false)] {
            assert_eq!(is_terraform(Path::new(name)), is_read, "{name}");
        }
    }
}
