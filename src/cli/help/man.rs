//! The manual pages: the sections that clap generates, and those that landfall adds.

use super::examples::examples_of;
use super::exit_codes;
use clap::Command;
use clap_mangen::Man;
use std::fmt::Write as _;
use std::io;

/// The files that verbs read and write, and the content of each.
const FILES: &str = "\
manifest.yaml, site.yaml
What to mirror, and the registry, proxies and limits of a site.

landfall.lock
The lock that verbs read and write unless another one is named.

bundle.tar.zst
The bundle that \"landfall pack\" writes unless another one is named.

$XDG_CACHE_HOME/landfall/store, ~/.cache/landfall/store
The store, unless --store or LANDFALL_STORE names another one.";

/// For each verb, the verbs that are used together with it.
const RELATED: [(&str, &[&str]); 12] = [
    ("init", &["lock", "discover", "import"]),
    ("lock", &["pull", "update", "diff"]),
    ("pull", &["lock", "pack", "gc"]),
    ("pack", &["pull", "sign", "verify", "push"]),
    ("verify", &["pack", "sign", "push"]),
    ("push", &["verify", "status", "mirror", "serve"]),
    ("serve", &["publish", "push", "render"]),
    ("rewrite", &["audit", "render", "push"]),
    ("render", &["rewrite", "serve", "doctor"]),
    ("update", &["lock", "refresh", "diff"]),
    ("refresh", &["update", "lock", "pull", "pack"]),
    ("publish", &["serve", "pull", "gc"]),
];

/// The manual pages of `command` and of its visible subcommands, each with its file name.
pub(crate) fn all_pages(command: &Command) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut pages = Vec::new();
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    for verb in verbs {
        pages.extend(all_pages(verb)?);
    }
    pages.push((Man::new(command.clone()).get_filename(), page(command)?));
    Ok(pages)
}

/// The manual page of `command`. Call [`Command::build`] first: it sets the display names.
pub(crate) fn page(command: &Command) -> io::Result<Vec<u8>> {
    // The footer has the name of the program, also on the page of a verb.
    let version = command.get_version().unwrap_or_default();
    let man = Man::new(command.clone()).source(format!("landfall {version}"));
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    // For example `landfall-export-images`.
    let display_name = command.get_display_name().unwrap_or("landfall");
    let mut verb = display_name.split('-').skip(1);
    page.extend(closing_sections(verb.next().unwrap_or_default()).into_bytes());
    man.render_version_section(&mut page)?;
    Ok(page)
}

/// The sections that clap does not generate: examples, exit codes, files and related pages.
fn closing_sections(verb: &str) -> String {
    let mut text = ".SH EXAMPLES\n".to_owned();
    let examples = if verb.is_empty() {
        &["init", "lock", "pull", "pack", "push"][..]
    } else {
        &[verb]
    };
    for (meaning, line) in examples.iter().flat_map(|verb| examples_of(verb)) {
        let _ = writeln!(
            text,
            "{}:\n.PP\n.nf\n.RS 4\n{}\n.RE\n.fi\n.PP",
            escaped(meaning),
            escaped(line)
        );
    }
    text += ".SH \"EXIT STATUS\"\n";
    for (code, meaning) in exit_codes() {
        let _ = writeln!(text, ".TP\n{code}\n{}", escaped(meaning));
    }
    text += ".SH FILES\n";
    for (file, meaning) in FILES.split("\n\n").filter_map(|one| one.split_once('\n')) {
        let _ = writeln!(text, ".TP\n{}\n{}", escaped(file), escaped(meaning));
    }
    text += ".SH \"SEE ALSO\"\n";
    let related = RELATED
        .iter()
        .find(|(name, _)| *name == verb)
        .map_or(&[][..], |(_, related)| related);
    if !verb.is_empty() {
        text += ".BR landfall (1),\n";
    }
    for name in related {
        let _ = writeln!(text, ".BR landfall\\-{name} (1),");
    }
    text += "and the pages of the manual that \"landfall help\" lists.\n";
    text
}

/// Escapes `text` for roff: a backslash and a hyphen are special characters, and so are a dot and
/// an apostrophe at the start of a line.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) {
        format!("\\&{text}")
    } else {
        text
    }
}
