//! Audits texts: finds the images, mirrored URLs, packages and git repositories that they name, and
//! says whether the lock contains them.
//!
//! A rewrite searches for references that the lock contains; an audit must also find references
//! that the lock does not contain. Therefore an audit also collects the candidates of the walk
//! (`rules`): values where images are named. It reads lines of texts that are not documents, and
//! URLs anywhere.

mod access_log;
mod chart_images;
mod git_coverage;
mod installs;
mod kustomized;
mod machine;
mod nodes;
mod reference_sources;
mod template_defaults;
mod tree;
mod urls;
mod written_in_code;

use crate::index::has_certain_host;
use crate::occurrence::{Occurrence, ReferenceMeaning, ReferenceRole};
use crate::rules::KUSTOMIZE_NAME;
use crate::scan::{scan, scan_documents};
use crate::scan_result::TextSyntax;
use crate::text::{dockerfile_candidates, is_dockerfile, lines_at};
use crate::walk::{ImageCandidate, ImageClaim, candidates_in_lines};
use landfall_item::ChartName;
use landfall_model::document::LineIndex;
use landfall_model::{ImageRef, has_host, redact_reference};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

pub use self::access_log::{AccessLogMisses, access_log_misses};
pub use self::chart_images::{HelmCommand, chart_images};
pub use self::machine::{MachineInstall, MachineInstalls, machine_installs};
pub use self::nodes::node_platforms;
pub use self::template_defaults::{TemplateDefaults, fill_template_defaults};
pub use self::tree::{
    AuditResult, UnreadFile, audit_inputs, audit_text, audit_tree, discover, in_chart,
};
pub use crate::inventory::{Inventory, LockCoverage};

// Findings of an audit: what a text names, its position, and whether the lock contains it.

/// An image, chart, URL, package or git repository that a text names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditFinding {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The keys that lead to the value, `[n]` for list items. Empty if the text is not a document.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "serialize_path"
    )]
    pub path: Vec<String>,
    /// The package manager, if the finding is a package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manager: Option<&'static str>,
    /// The git repository, if the finding is one.
    #[serde(rename = "git", skip_serializing_if = "Option::is_none")]
    pub repository: Option<NamedRepository>,
    /// The chart to add to the manifest, if the finding is a missing chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart: Option<ChartName>,
    /// The reference or URL as written. The parts of a split reference are joined.
    pub reference: String,
    /// Whether the lock contains it.
    #[serde(flatten)]
    pub coverage: LockCoverage,
}

impl AuditFinding {
    /// A finding at a line and a column, both counted from 1, of a text that is not a document.
    pub(super) fn new(
        (line, column): (usize, usize),
        reference: String,
        coverage: LockCoverage,
    ) -> AuditFinding {
        AuditFinding {
            line,
            column,
            path: Vec::new(),
            manager: None,
            repository: None,
            chart: None,
            reference,
            coverage,
        }
    }
}

/// A git repository that a document uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamedRepository {
    /// The http or https URL.
    pub url: String,
    /// The branch, tag, commit or range of versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Whether the revision is a range of versions, even if it looks like a branch or tag.
    #[serde(skip)]
    pub is_range: bool,
}

/// An [`AuditFinding`] and its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileFinding {
    /// The path of the file; in an archive, the path of the archive and the path inside.
    pub file: String,
    /// The finding in this file.
    #[serde(flatten)]
    pub finding: AuditFinding,
}

impl FileFinding {
    /// Formats one line of a report: position, `word`, reference and reason.
    pub fn line(&self, word: &str) -> String {
        let AuditFinding {
            line,
            column,
            path,
            manager,
            reference,
            coverage,
            ..
        } = &self.finding;
        let why = match coverage {
            LockCoverage::Missing { why, .. }
            | LockCoverage::Ambiguous { why, .. }
            | LockCoverage::Undecided { why } => why,
            LockCoverage::Held { item } => item,
        };
        let path = if path.is_empty() {
            String::new()
        } else {
            format!("{}: ", dotted(path))
        };
        let manager = manager.map(|by| format!("{by} ")).unwrap_or_default();
        format!(
            "{}:{line}:{column}: {word} {path}{manager}{reference}: {why}",
            self.file
        )
    }
}

/// Formats a path of keys as `helm --set` reads it.
pub fn dotted(path: &[String]) -> String {
    path.iter()
        .enumerate()
        .fold(String::new(), |out, (at, key)| {
            let item = key.starts_with('[') && key.ends_with(']');
            let dot = if at == 0 || item { "" } else { "." };
            out + dot + &key.replace('.', "\\.")
        })
}

fn serialize_path<S: serde::Serializer>(path: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&dotted(path))
}

impl ImageCandidate {
    /// Looks the candidate up in the lock.
    pub(super) fn decide(self, inventory: &Inventory<'_>, lines: &LineIndex<'_>) -> AuditFinding {
        let mut missing_chart = None;
        let coverage = match (self.why_not, self.written.parse::<ImageRef>()) {
            (Some(why), _) => LockCoverage::Undecided { why },
            (None, Err(error)) => LockCoverage::Undecided {
                why: error.to_string(),
            },
            (None, Ok(reference)) => match inventory.decide(&reference, self.in_container) {
                LockCoverage::Missing { .. } if !self.sure => LockCoverage::Undecided {
                    why: if reference.is_pinned() {
                        "not in the lock; a script names it, so perhaps it is built and not \
                         pulled"
                    } else {
                        "it has neither a host nor a tag, so perhaps it is not an image"
                    }
                    .into(),
                },
                LockCoverage::Missing { name, why, .. } if self.is_chart => {
                    // at the destination, the reference is not the upstream name
                    missing_chart = self.chart.filter(|_| name == Some(reference));
                    let why = format!("{why}; it is a chart, so add it to `charts`");
                    LockCoverage::missing(why)
                }
                // without a tag, a container pulls `latest`, and a chart is pulled in its newest
                // version
                coverage if self.in_container || self.is_chart => coverage,
                coverage => unless_ambiguous(coverage, &self.written, &reference),
            },
        };
        let (line, column) = lines.line_column(self.at);
        AuditFinding {
            path: self.path,
            chart: missing_chart,
            ..AuditFinding::new((line, column), redact_reference(&self.written), coverage)
        }
    }
}

/// Returns `coverage`, or `Ambiguous` if the lock has `reference`, but its text `written` has no
/// host, no tag and no digest.
pub(super) fn unless_ambiguous(
    coverage: LockCoverage,
    written: &str,
    reference: &ImageRef,
) -> LockCoverage {
    let item = match coverage {
        LockCoverage::Held { item } if !reference.is_pinned() && !has_host(written) => item,
        coverage => return coverage,
    };
    let why = format!(
        "the lock has {item}, but this reference names neither a host nor a tag: `landfall \
         rewrite` leaves it, and a pod would pull it from {}; write the host or the tag",
        reference.registry
    );
    LockCoverage::Ambiguous { item, why }
}

// Audits one text: reads it in its format, finds its URLs, and scans everything else.

/// Finds the images, charts, URLs and git repositories that `text` names, in the order of the text.
/// `name`, the name of the file, decides how the text is read.
pub fn audit(name: &Path, text: &str, inventory: &Inventory<'_>) -> Vec<AuditFinding> {
    let lines = LineIndex::new(text);
    let syntax = TextSyntax::of(name);
    let mut git = if git_coverage::is_terraform(name) {
        git_coverage::in_terraform(text)
    } else if written_in_code::has_commands(name) {
        git_coverage::in_commands(text)
    } else {
        Vec::new()
    };
    let is_thorough = inventory.is_thorough;
    let words = || {
        if is_thorough {
            scan(text, syntax, inventory.index()).found
        } else {
            Vec::new()
        }
    };
    let (candidates, scanned) = if is_dockerfile(name) {
        let candidates = dockerfile_candidates(text);
        let mut scanned = words();
        // an unknown image is reported where it is used, not also at the default of its argument
        let used: BTreeSet<&str> = candidates.iter().map(|image| &*image.written).collect();
        scanned.retain(|one| {
            one.meaning != ReferenceMeaning::Unknown || !used.contains(&*one.written)
        });
        (candidates, scanned)
    } else if let Some(list) = nodes::candidates(text).or_else(|| candidates(text)) {
        (list, words())
    } else if syntax == TextSyntax::Text {
        let mut candidates = candidates_in_lines(text);
        if is_page(name) {
            candidates.extend(page_candidates(text));
        }
        (candidates, words())
    } else {
        let (scan, documents) = scan_documents(name, text, inventory, is_thorough);
        let candidates = match documents {
            Some(documents) if documents.has_structure || !documents.candidates.is_empty() => {
                git.extend(documents.git_uses);
                documents.candidates
            }
            _ => candidates_in_lines(text),
        };
        (candidates, scan.found)
    };
    let mut found: Vec<AuditFinding> = candidates
        .into_iter()
        .chain(written_in_code::candidates(name, text, inventory))
        .map(|candidate| candidate.decide(inventory, &lines))
        .collect();
    settle_ambiguous(&mut found, &scanned);
    let git: Vec<AuditFinding> = git
        .into_iter()
        .map(|one| one.decide(inventory, &lines))
        .collect();
    // the URL of a source may begin after its scheme `git::`
    let in_sources: BTreeSet<(usize, usize)> = git
        .iter()
        .flat_map(|one| {
            let url = one.reference.find("http").unwrap_or_default();
            [(one.line, one.column), (one.line, one.column + url)]
        })
        .collect();
    let urls = urls::findings(text, &lines, inventory).into_iter();
    found.extend(urls.filter(|one| !in_sources.contains(&(one.line, one.column))));
    found.extend(git);
    let positions: BTreeSet<_> = found.iter().map(|one| (one.line, one.column)).collect();
    let written: BTreeSet<_> = found
        .iter()
        .map(|one| (one.line, one.reference.clone()))
        .collect();
    let digests: BTreeSet<String> = found.iter().filter_map(by_digest).collect();
    // a finding has more information than an occurrence, so it replaces an occurrence at the same
    // position, with the same text on the same line, or without the tag: a list of the images on a
    // node has tags and digests separately
    let rest = scanned.into_iter().filter(|one| {
        !positions.contains(&(one.line, one.column))
            && !written.contains(&(one.line, one.written.clone()))
            && !digests.contains(&one.written)
    });
    found.extend(rest.filter_map(|one| of_occurrence(one, inventory)));
    found.sort_by_key(|finding| (finding.line, finding.column));
    found
}

/// `NAME@DIGEST` of a finding that has a tag as well.
fn by_digest(finding: &AuditFinding) -> Option<String> {
    let image: ImageRef = finding.reference.parse().ok()?;
    image.tag.as_ref()?;
    Some(format!("{}@{}", image.name(), image.digest.as_ref()?))
}

/// Under a key that is named after an image, a name without a host and a tag means `latest`: if the
/// lock has it, a rewrite changes the name, so it is held and not ambiguous.
fn settle_ambiguous(found: &mut [AuditFinding], scanned: &[Occurrence]) {
    let changed: BTreeMap<(usize, usize), &String> = scanned
        .iter()
        .filter_map(|one| match &one.meaning {
            ReferenceMeaning::Known { item, .. } => Some(((one.line, one.column), item)),
            _ => None,
        })
        .collect();
    for one in found.iter_mut().filter(|one| one.coverage.is_ambiguous()) {
        if let Some(item) = changed.get(&(one.line, one.column)) {
            let item = (*item).clone();
            one.coverage = LockCoverage::Held { item };
        }
    }
}

/// The finding for an occurrence outside the positions that are searched for images: a locked item,
/// a reference in encoded content, a literal, or a full name in a text.
fn of_occurrence(occurrence: Occurrence, inventory: &Inventory<'_>) -> Option<AuditFinding> {
    let Occurrence {
        line,
        column,
        inside,
        written,
        role,
        meaning,
        ..
    } = occurrence;
    let reference = written.parse::<ImageRef>().ok();
    let decided = || Some(inventory.decide(reference.as_ref()?, role == ReferenceRole::Container));
    let coverage = match meaning {
        // URLs were searched in the whole text already
        _ if role == ReferenceRole::Url && inside.is_none() => return None,
        ReferenceMeaning::Known { item, .. } | ReferenceMeaning::Settled(Some(item)) => {
            LockCoverage::Held { item }
        }
        ReferenceMeaning::Settled(None) => decided()?,
        ReferenceMeaning::Left(why) => match (decided(), &reference) {
            (Some(coverage), Some(reference)) if role != ReferenceRole::Container => {
                match unless_ambiguous(coverage, &written, reference) {
                    // a host or a tag in the name would hide the images of the bases
                    LockCoverage::Ambiguous { item, .. } if why.starts_with(KUSTOMIZE_NAME) => {
                        let why = format!(
                            "the lock has {item}, but a pod would pull it from {}: \
                             {KUSTOMIZE_NAME}; add `newName`, or audit the output of `kustomize \
                             build`",
                            reference.registry
                        );
                        LockCoverage::Ambiguous { item, why }
                    }
                    coverage => coverage,
                }
            }
            (coverage, _) => coverage.unwrap_or(LockCoverage::Undecided { why }),
        },
        ReferenceMeaning::Unknown if inside.is_some() && role.is_image() => decided()?,
        ReferenceMeaning::Unknown if role == ReferenceRole::Literal => decided()?,
        // a reference that is a whole value was already a candidate; without a host, it is the
        // argument of a pull
        ReferenceMeaning::Unknown
            if role == ReferenceRole::Text
                && (inventory.is_full_name(&written) || !has_host(&written)) =>
        {
            match decided()? {
                LockCoverage::Missing { why, .. } => LockCoverage::Undecided {
                    why: format!(
                        "{why}; it is a word in a text, so perhaps it is not pulled as an image"
                    ),
                },
                coverage => coverage,
            }
        }
        ReferenceMeaning::Unknown | ReferenceMeaning::Undecided(_) => return None,
    };
    let reference = inside.map_or(written.clone(), |inside| format!("{written} ({inside})"));
    Some(AuditFinding::new((line, column), reference, coverage))
}

/// The references of a plain list: one per line, `#` begins a comment. `None` if `text` is not such
/// a list: every line must be a reference with a path or tag, and at least one of them must have a
/// tag, a digest or a host, because paths of files look like short names of images.
pub(super) fn candidates(text: &str) -> Option<Vec<ImageCandidate>> {
    let text_start = text.len() - text.trim_start_matches('\u{feff}').len();
    let (found, has_sure) = references(text, text_start)?;
    has_sure.then_some(found)
}

/// The references in the code blocks of a page in Markdown that are such lists. One list with a
/// tag, a digest or a host is enough for all of them.
pub(super) fn page_candidates(text: &str) -> Vec<ImageCandidate> {
    let lists = code_blocks(text)
        .into_iter()
        .filter_map(|block| references(&text[..block.end], block.start));
    let lists: Vec<_> = lists.collect();
    let has_sure = lists.iter().any(|(_, has_sure)| *has_sure);
    let found = lists.into_iter().flat_map(|(found, _)| found);
    found.filter(|_| has_sure).collect()
}

/// The references of `text` from the byte `text_start` on, and whether one of them has a tag, a
/// digest or a host. `None` if a line is not a reference.
fn references(text: &str, text_start: usize) -> Option<(Vec<ImageCandidate>, bool)> {
    let mut found = Vec::new();
    let mut has_sure = false;
    for (at, line) in lines_at(&text[text_start..]) {
        let start = text_start + at + line.len() - line.trim_start().len();
        let written = line.split('#').next().unwrap_or_default().trim();
        if written.is_empty() {
            continue;
        }
        let reference = written.parse::<ImageRef>().ok()?;
        let is_sure = reference.is_pinned() || has_certain_host(written);
        if !is_sure && !written.contains('/') {
            return None;
        }
        has_sure |= is_sure;
        let claim = ImageClaim::of_container(written);
        found.extend(ImageCandidate::all(start, claim));
    }
    Some((found, has_sure))
}

// The code blocks of pages in Markdown.

/// Whether the file `name` is a page in Markdown.
pub(super) fn is_page(name: &Path) -> bool {
    let ending = name.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("md" | "markdown"))
}

/// The bytes of the lines between each pair of fences (```` ``` ````).
pub(super) fn code_blocks(text: &str) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let mut open = None;
    for (start, line) in lines_at(text) {
        if !line.trim_start().starts_with("```") {
            continue;
        }
        match open.take() {
            Some(from) => blocks.push(from..start),
            None => open = Some(start + line.len()),
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_item::lockfile::Lock;

    #[test]
    fn images_are_found_by_the_names_around_them() {
        let lock = Lock::parse("l", "version: 1\n").unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        let missing = |name: &str, text: &str| -> Vec<String> {
            let found = audit(Path::new(name), text, &inventory).into_iter();
            let missing = found.filter(|one| one.coverage.is_missing());
            missing.map(|one| one.reference).collect()
        };
        for text in [
            "system_images: {etcd: 'x/y:1'}",
            "images: ['x/y:1']",
            "image: ['x/y:1']",
            "spec: {images: [{name: 'x/y:1', platform: linux/amd64}, {name: other}]}",
            "imageK8S: x/y:1",
            "{image_name: 'x/y:1', imagePullPolicy: IfNotPresent, imagePath: /x/y}",
            "literals: [RELATED_IMAGE_X=x/y:1, A=z:1]",
            "environment: [A_IMAGE=x/y:1]",
            "env: [{name: A_CONTAINER_IMAGE_AND_VERSION, value: 'x/y:1'}]",
            "images: {a: {image: x/y, version: 1}}",
            "env: [{name: A_IMAGE_NAME, value: 'x/y:1'}]",
            "params: [{name: git-image, default: 'x/y:1'}]",
            "- {op: replace, path: /spec/containers/0/image, value: 'x/y:1'}",
            "values: |\n  image: {repository: x/y, tag: 1}\n",
            "image: >-\n  x/y:1\n",
            // documents of one line
            "valuesContent: |\n  image: 'x/y:1'\n",
            "a: >-\n  image: x/y:1\n",
            "a: \"- image: x/y:1\\n\"",
            // not JSON, because a bracket is missing
            "examples: |\n  [{\n  \"image\":\"x/y:1\",\n  }\n",
        ] {
            assert_eq!(missing("f.yaml", text), ["x/y:1"], "{text}");
        }
        assert_eq!(missing("f.yaml", "a: 'Unlike the image: x/y:1'"), [""; 0]);
        for (name, text) in [
            ("f.hcl", "config {\n  image = \"x/y:1\"\n}\n"),
            ("f.container", "[Container]\nImage=x/y:1\n"),
            ("f.tf", "container { image = \"x/y:1\" }\n"),
            (
                "f.sh",
                "kubectl run x --overrides='{\"image\":\"x/y:1\"}'\n",
            ),
        ] {
            assert_eq!(missing(name, text), ["x/y:1"], "{text}");
        }
        // the registry of the name is added elsewhere
        let name = "image: {name: agent, tag: 7, repository: ~}\nuseOtherImage: true\n";
        let found = audit(Path::new("f.yaml"), name, &inventory);
        assert!(
            found.len() == 1 && !found[0].coverage.is_missing(),
            "{found:?}"
        );
        // images by a scheme, and of Dockerfiles in values
        for text in [
            "url: docker://x/y:1",
            "contexts: ['base=docker-image://x/y:1']",
            "dockerfile_inline: |\n  FROM x/y:1\n  RUN true\n",
            "dockerfile_inline: |\n  ARG A=x/y:1\n  FROM $A\n",
        ] {
            assert_eq!(missing("f.yaml", text), ["x/y:1"], "{text}");
        }
        for text in [
            "web: {repository: x/y, tag: 1}\n",
            "{{ if .x }}\nimage: x/y:1\n{{ end }}\n",
        ] {
            assert_eq!(missing("values.yaml.gotmpl", text), ["x/y:1"], "{text}");
        }
        assert_eq!(
            missing("f.hcl", "x = \"docker-image://x/y:1\"\n"),
            ["x/y:1"]
        );
        for name in ["Dockerfile", "Kubefile"] {
            assert_eq!(missing(name, "ARG A=x/y:1\nFROM $A\n"), ["x/y:1"]);
        }
        for (command, is_sure) in [
            ("docker pull x/y:1", false),
            ("docker run --rm -v \"$PWD:/x\" x/y:1 sh", false),
            ("kubectl run a --image=x/y:1", true),
            ("kubectl run a --image x/y:1", true),
        ] {
            let run = format!("a: b\nrun: |\n  cd c\n  {command}\n");
            for (name, text) in [("f.sh", format!("{command}\n")), ("f.yaml", run)] {
                let found = audit(Path::new(name), &text, &inventory);
                let found: Vec<_> = found
                    .iter()
                    .map(|one| (&*one.reference, one.coverage.is_missing()))
                    .collect();
                assert_eq!(found, [("x/y:1", is_sure)], "{text}");
            }
        }
        assert_eq!(
            missing("f.sh", "V=1\nA_IMAGE=quay.io/x/y:$V\n"),
            ["quay.io/x/y:1"]
        );
        assert_eq!(
            missing("Makefile", "V := 1\nA_IMAGE ?= quay.io/x/y:$(V)\n"),
            ["quay.io/x/y:1"]
        );
        let other = "docker pull x/y\ndocker run x/y\ndocker exec x/y:1\n";
        assert_eq!(audit(Path::new("f.sh"), other, &inventory), []);
        for build in ["tags: 'quay.io/x/y:1'", "tags: ['quay.io/x/y:1']"] {
            let text = format!("build: {{context: ., {build}}}\n");
            assert!(missing("f.yaml", &text).is_empty(), "{text}");
        }
        // a repository of GitHub
        let checkout = "with: {repository: Org/x, ref: main}\n";
        assert_eq!(audit(Path::new("f.yaml"), checkout, &inventory), []);
        let id = "0".repeat(64);
        for id in [&*id, &format!("sha256:{id}"), "17.3.2", "20.10.7-ce"] {
            let found = audit(
                Path::new("f.yaml"),
                &format!("x: docker://{id}"),
                &inventory,
            );
            assert_eq!(found, [], "{id}");
        }
        let package = |name: &str| {
            format!("apiVersion: pkg.crossplane.io/v1\nkind: Provider\nspec: {{package: '{name}'}}")
        };
        assert_eq!(
            missing("f.yaml", &package("quay.io/x/y:1")),
            ["quay.io/x/y:1"]
        );
        let found = audit(Path::new("f.yaml"), &package("x/y:1"), &inventory);
        assert!(
            found.len() == 1 && !found[0].coverage.is_missing(),
            "{found:?}"
        );
        for (build, is_missing) in [("", true), (", build: .", false), (", build: {}", false)] {
            let text = format!("services: {{a: {{image: 'x/y:1'{build}}}}}\n");
            let found = audit(Path::new("compose.yaml"), &text, &inventory);
            assert!(
                found.len() == 1 && found[0].coverage.is_missing() == is_missing,
                "{text}: {found:?}"
            );
        }
        let plan = "apiVersion: upgrade.cattle.io/v1\nkind: Plan\n\
                    spec: {upgrade: {image: x/y}, version: v1+k3s1}";
        assert_eq!(missing("f.yaml", plan), ["x/y:v1-k3s1"]);
        let repository = "env: [{name: A_IMAGE_REPOSITORY, value: quay.io/x/y}]";
        assert_eq!(missing("f.yaml", repository), ["quay.io/x/y"]);
    }

    #[test]
    fn git_repositories_in_the_lists_of_a_kustomization_are_found() {
        let lock = Lock::parse("l", "version: 1\n").unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        for list in [
            "resources",
            "components",
            "generators",
            "transformers",
            "validators",
        ] {
            let text = format!("{list}: ['https://h.test/a.git//x?ref=v1', ./x]\n");
            let found = audit(Path::new("kustomization.yaml"), &text, &inventory);
            let urls: Vec<&str> = found
                .iter()
                .filter_map(|one| Some(&*one.repository.as_ref()?.url))
                .collect();
            assert_eq!(urls, ["https://h.test/a.git"], "{list}");
        }
    }

    /// An audit says the same about a name without a host and a tag as a rewrite does.
    #[test]
    fn a_name_that_a_rewrite_reads_as_latest_is_held() {
        let image = |tag: &str| {
            let digest = landfall_model::Digest::sha256(tag.as_bytes());
            format!(
                "- {{name: 'docker.io/library/x:{tag}', digest: {digest}, mediaType: m, size: 1}}\n"
            )
        };
        let lock = format!("version: 1\nimages:\n{}{}", image("1"), image("latest"));
        let lock = Lock::parse("l", &lock).unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        for (text, is_held) in [
            ("containerDisk: {image: x}", true),
            ("image: 'x'", true),
            ("image: {repository: x}", false),
        ] {
            let found = audit(Path::new("f.yaml"), text, &inventory);
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            let coverage = &found[0].coverage;
            let held = LockCoverage::Held {
                item: "docker.io/library/x:latest".into(),
            };
            assert_eq!(
                (*coverage == held, coverage.is_ambiguous()),
                (is_held, !is_held),
                "{text}"
            );
        }
    }
}
