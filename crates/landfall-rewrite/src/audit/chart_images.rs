//! Finds the images of a chart: in its annotations and in its effective values, templates and
//! CRDs. If the chart was rendered, the output of `helm template` is read instead of the values,
//! templates and CRDs.

use super::reference_sources::{ReferenceSources, is_of_image};
use super::template_defaults::fill_template_defaults;
use super::tree::{audit_text, in_chart};
use super::{AuditFinding, FileFinding, audit};
use crate::chart::{ChartTemplate, HelmChart};
use crate::inventory::{Inventory, LockCoverage};
use crate::text::reference_at;
use crate::walk::HAS_PLACEHOLDER;
use landfall_model::{Failure, ImageRef, Limits, has_host, redact_reference};
use serde_yaml::Mapping;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::env::consts::EXE_EXTENSION;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// Folders of a chart that are not installed: tests and documentation for its developers.
const NOT_INSTALLED: [&str; 5] = ["/ci/", "/tests/", "/examples/", "/docs/", "/hack/"];

/// Finds the images of `chart` with the values `user`. If `rendered`, the output of `helm
/// template`, is given, it is read instead of the values and templates.
///
/// # Errors
/// If the values cannot be written as YAML.
pub fn chart_images(
    chart: HelmChart,
    user: &Mapping,
    rendered: Option<&str>,
    inventory: &Inventory<'_>,
) -> Result<Vec<FileFinding>, serde_yaml::Error> {
    let mut values = chart.effective(user);
    let mut found: Vec<FileFinding> = Vec::new();
    let name = chart.name.clone();
    for (file, image) in chart.listed_images(&values) {
        found.extend(
            audit_text(&file, &format!("image: {image}\n"), inventory)
                .into_iter()
                .map(|placed| {
                    let finding = AuditFinding {
                        line: 1,
                        column: 1,
                        path: Vec::new(),
                        ..placed.finding
                    };
                    FileFinding { finding, ..placed }
                }),
        );
    }
    if let Some(rendered) = rendered {
        found.extend(audit_text(
            &format!("{name} (rendered)"),
            rendered,
            inventory,
        ));
        return Ok(without_urls(found));
    }
    fill_template_defaults(&chart, &mut values, inventory);
    let text = serde_yaml::to_string(&values)?;
    let mut named: Vec<Vec<String>> = Vec::new();
    for finding in audit(Path::new("values.yaml"), &text, inventory) {
        named.push(finding.path.clone());
        // a disabled subchart is not installed
        if chart.disabled_by(&finding.path, &values).is_none() {
            found.push(in_chart(&chart, &values, finding));
        }
    }
    let templates = chart.templates(&values);
    let helpers = chart.helpers().into_iter().map(|(_, text)| &**text);
    let sources = ReferenceSources::new(&values, named, &templates, helpers);
    for template in &templates {
        let ChartTemplate { file, text, .. } = template;
        // a folder below `templates` is installed, even if it has one of these names
        if NOT_INSTALLED
            .iter()
            .any(|folder| file.contains(folder) && !file.contains("/templates/"))
        {
            continue;
        }
        if text.contains("kind: CustomResourceDefinition") {
            found.extend(of_schema(file, text, inventory));
        }
        let of_text = of_flags(file, text, inventory)
            .into_iter()
            .chain(audit_text(file, text, inventory));
        found.extend(of_text.filter(|placed| !sources.are_known(&placed.finding, template)));
    }
    Ok(without_urls(found))
}

/// The maximum length of the name of a flag. Without it, a long line of `=` would take quadratic
/// time.
const MAX_FLAG: usize = 256;

/// Searches a template, which need not be YAML, for flags and environment variables that are named
/// after an image, such as `--sidecar-image=quay.io/x/y:v1`, and returns their values. Only full
/// names and values with placeholders are reported.
fn of_flags(file: &str, text: &str, inventory: &Inventory<'_>) -> Vec<FileFinding> {
    let ends = |c: char| c.is_whitespace() || "\"'`,[]{}()".contains(c);
    let mut found = Vec::new();
    let mut variable = false;
    for (at, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim_start().starts_with('#'))
    {
        // the offsets at which the values begin
        let mut values: Vec<usize> = Vec::new();
        for (equals, _) in line.match_indices('=') {
            let near = line.ceil_char_boundary(equals.saturating_sub(MAX_FLAG));
            let before = &line[near..equals];
            let flag = match before.rsplit_once(ends) {
                Some((_, flag)) => flag,
                None if near == 0 => before,
                None => continue,
            };
            if flag.starts_with('-') && is_of_image(&[flag]) {
                values.push(equals + 1);
            }
        }
        // the value of an environment variable is expected on the line after its name
        let (key, value) = line
            .trim_start()
            .trim_start_matches("- ")
            .split_once(':')
            .unwrap_or_default();
        if key == "value" && variable {
            let value = value.trim_start().trim_start_matches(['"', '\'']);
            values.push(line.len() - value.len());
        }
        variable = key == "name" && value.trim_end_matches(['"', '\'']).ends_with("IMAGE");
        for start in values {
            let value = &line[start..];
            let made = reference_at(value, Limits::default().reference_bytes);
            let word = value.split(ends).next().unwrap_or_default();
            let source = TextValue {
                file,
                at,
                line,
                start,
            };
            if made.contains("{{") {
                let why = HAS_PLACEHOLDER.into();
                found.push(source.finding(made, LockCoverage::Undecided { why }));
            } else {
                found.extend(source.full_name(word, inventory));
            }
        }
    }
    found
}

/// A value in a line of a file.
struct TextValue<'t> {
    file: &'t str,
    /// The index of the line, counted from 0.
    at: usize,
    line: &'t str,
    /// The offset in the line at which the value begins.
    start: usize,
}

impl TextValue<'_> {
    /// The finding for `value`, which begins at this position.
    fn finding(&self, value: &str, coverage: LockCoverage) -> FileFinding {
        let finding = AuditFinding::new(
            (self.at + 1, self.line[..self.start].chars().count() + 1),
            redact_reference(value),
            coverage,
        );
        FileFinding {
            file: self.file.to_owned(),
            finding,
        }
    }

    /// The finding for `value`, which begins at this position, if it is the full name of an image.
    fn full_name(&self, value: &str, inventory: &Inventory<'_>) -> Option<FileFinding> {
        let image = value.parse::<ImageRef>().ok()?;
        if !image.is_pinned() || !has_host(value) {
            return None;
        }
        Some(self.finding(value, inventory.decide(&image, false)))
    }
}

/// Finds the defaults in a schema that are full names of images. An object that the schema
/// describes uses the default unless it sets another image.
fn of_schema(file: &str, text: &str, inventory: &Inventory<'_>) -> Vec<FileFinding> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let Some(value) = line.trim_start().strip_prefix("default:") else {
            continue;
        };
        let value = value.trim_start().trim_start_matches(['"', '\'']);
        let source = TextValue {
            file,
            at,
            line,
            start: line.len() - value.len(),
        };
        let value = value.trim_end().trim_end_matches(['"', '\'']);
        found.extend(source.full_name(value, inventory));
    }
    found
}

/// Removes the findings that are URLs.
fn without_urls(found: Vec<FileFinding>) -> Vec<FileFinding> {
    found
        .into_iter()
        .filter(|placed| !placed.finding.reference.contains("://"))
        .collect()
}

// Finds the dependencies that a chart does not contain, so that their images are not known.

/// The paths that the missing dependencies of `chart` and its subcharts would have in it. Omitted
/// are those that its default values disable, and those that are in one of the folders `audited`.
pub(super) fn missing_dependencies(
    chart: &HelmChart,
    audited: &AuditedFolders<'_>,
) -> Vec<PathBuf> {
    let values = chart.effective(&Mapping::new());
    let missing = chart.missing_dependencies(&values).into_iter();
    let mut paths: Vec<PathBuf> = missing
        .filter(|dependency| {
            let folder = dependency.folder();
            folder.is_none_or(|folder| !audited.contains(&folder))
        })
        .map(|dependency| PathBuf::from(&dependency.path))
        .collect();
    // several aliases of a chart have its path
    paths.dedup();
    paths
}

/// The folders of the charts that are audited.
pub(super) struct AuditedFolders<'f> {
    folders: &'f [PathBuf],
    /// Their canonical paths, after the first use.
    canonical: OnceCell<BTreeSet<PathBuf>>,
}

impl<'f> AuditedFolders<'f> {
    pub(super) fn new(folders: &'f [PathBuf]) -> AuditedFolders<'f> {
        AuditedFolders {
            folders,
            canonical: OnceCell::new(),
        }
    }

    /// Whether `folder` exists and is one of them.
    fn contains(&self, folder: &Path) -> bool {
        let Ok(folder) = folder.canonicalize() else {
            return false;
        };
        let canonical = self.canonical.get_or_init(|| {
            let existing = self
                .folders
                .iter()
                .filter_map(|one| one.canonicalize().ok());
            existing.collect()
        });
        canonical.contains(&folder)
    }
}

// Renders charts with the helm of this machine.

/// The maximum size of helm's error message, in bytes.
const MESSAGE_BYTES: u64 = 64 << 10;

/// How often it is checked whether helm has ended, after it has closed its output.
const EXIT_INTERVAL: Duration = Duration::from_millis(5);

/// A helm program and its arguments.
#[derive(Debug, Clone)]
pub struct HelmCommand {
    /// The path of the program.
    pub program: PathBuf,
    values: Vec<PathBuf>,
    /// The version of Kubernetes to render for; helm has a default.
    kubernetes: Option<String>,
}

impl HelmCommand {
    /// Finds the first `helm` in the folders of `path`, the value of PATH. The command renders with
    /// the values files `values`.
    pub fn find(path: Option<&OsStr>, values: &[PathBuf]) -> Option<HelmCommand> {
        let folders = std::env::split_paths(path?);
        let program = folders
            .map(|folder| folder.join("helm").with_extension(EXE_EXTENSION))
            .find(|program| program.is_file())?;
        Some(HelmCommand {
            program,
            values: values.to_vec(),
            kubernetes: None,
        })
    }

    /// Renders for this version of Kubernetes.
    #[must_use]
    pub fn for_kubernetes(self, version: Option<&str>) -> HelmCommand {
        HelmCommand {
            kubernetes: version.map(str::to_owned),
            ..self
        }
    }

    /// Returns the version of helm, without a `v`.
    ///
    /// # Errors
    /// If helm cannot be run, fails, exceeds a limit, or writes text that is not UTF-8.
    pub fn version(&self) -> Result<String, Failure> {
        let mut command = Command::new(&self.program);
        command.args(["version", "--template", "{{.Version}}"]);
        let text = output(&mut command, &Limits::DEFAULT)?;
        Ok(text.trim().trim_start_matches('v').to_owned())
    }

    /// Returns the output of `helm template` for a chart.
    ///
    /// # Errors
    /// If helm cannot be run, fails, exceeds a limit, or writes text that is not UTF-8.
    pub fn template(&self, chart: &Path) -> Result<String, Failure> {
        let mut command = Command::new(&self.program);
        command
            .args(["template", "landfall"])
            .arg(chart)
            .arg("--include-crds");
        self.values.iter().for_each(|file| {
            command.arg("--values").arg(file);
        });
        self.kubernetes.iter().for_each(|version| {
            command.args(["--kube-version", version]);
        });
        output(&mut command, &Limits::DEFAULT)
    }
}

fn run_error(error: io::Error) -> Failure {
    Failure::failed(error.to_string())
}

fn timed_out(limits: &Limits) -> Failure {
    let seconds = limits.helm_time.as_secs();
    Failure::failed(format!("it did not end within {seconds} seconds"))
}

fn output(command: &mut Command, limits: &Limits) -> Result<String, Failure> {
    // the standard input may be a text for landfall (`-`), which helm must not consume
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(run_error)?;
    let written = read_output(&mut child, limits);
    if written.is_err() {
        // It may have ended by itself meanwhile. A program that it started is not ended: a process
        // group of its own would include that program, but would not receive Ctrl-C.
        let _ = child.kill();
        // the status of an ended process is kept until it is read
        let _ = child.wait();
    }
    let (status, text, message) = written?;
    if !status.success() {
        return Err(Failure::failed(
            String::from_utf8_lossy(&message).trim().to_owned(),
        ));
    }
    String::from_utf8(text).map_err(|_| Failure::failed("its output is not UTF-8"))
}

/// Reads the output of `child` to its end, and waits until `child` ends, within the limits. Returns
/// how it ended, and what it wrote to its standard output and its standard error.
fn read_output(
    child: &mut Child,
    limits: &Limits,
) -> Result<(ExitStatus, Vec<u8>, Vec<u8>), Failure> {
    let deadline = Instant::now() + limits.helm_time;
    // a program that goes on writing ends at the closed pipe
    let text = read_in_thread(child.stdout.take(), limits.helm_output_bytes, drop);
    // the pipe stays open: it would end a program that only writes many warnings
    let message = read_in_thread(child.stderr.take(), MESSAGE_BYTES, |mut rest| {
        let _ = io::copy(&mut rest, &mut io::sink());
    });
    let receive = |bytes: &Receiver<io::Result<Vec<u8>>>| {
        let left = deadline.saturating_duration_since(Instant::now());
        match bytes.recv_timeout(left) {
            Ok(read) => read.map_err(run_error),
            Err(_) => Err(timed_out(limits)),
        }
    };
    let text = receive(&text)?;
    if text.len() as u64 > limits.helm_output_bytes {
        let limit = limits.helm_output_bytes;
        return Err(Failure::failed(format!(
            "its output has more than {limit} bytes"
        )));
    }
    let message = receive(&message)?;
    loop {
        if let Some(status) = child.try_wait().map_err(run_error)? {
            return Ok((status, text, message));
        }
        if Instant::now() >= deadline {
            return Err(timed_out(limits));
        }
        thread::sleep(EXIT_INTERVAL);
    }
}

/// Reads `stream` in a thread. Returns a receiver of its content, or of the first bytes, one more
/// than `limit`. Passes the stream with the other bytes to `end`.
fn read_in_thread<R: Read + Send + 'static>(
    stream: Option<R>,
    limit: u64,
    end: impl FnOnce(R) + Send + 'static,
) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let Some(mut stream) = stream else { return };
        let mut bytes = Vec::new();
        let read = stream.by_ref().take(limit + 1).read_to_end(&mut bytes);
        // nobody receives it after the time limit
        let _ = sender.send(read.map(|_| bytes));
        end(stream);
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_item::lockfile::Lock;
    use landfall_model::document::growth::assert_linear;
    use std::fs;

    /// Writes the file at `path` below `folder`.
    fn put(folder: &Path, path: &str, text: &str) {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn columns_count_characters_up_to_the_value() {
        let lock = Lock::parse("l", "version: 1\n").unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        let columns = |found: Vec<FileFinding>| -> Vec<usize> {
            found.iter().map(|one| one.finding.column).collect()
        };
        // the value also occurs before the flag, and `é` has two bytes
        let flag = "- é # quay.io/x/y:v1 --sidecar-image=quay.io/x/y:v1\n";
        let start = flag.find('=').unwrap();
        assert_eq!(columns(of_flags("f", flag, &inventory)), [start + 1]);
        let variable = "- name: é_IMAGE\n  value: \"quay.io/x/y:v1\"\n";
        assert_eq!(columns(of_flags("f", variable, &inventory)), [11]);
        let schema = "  default: 'quay.io/x/y:v1'  \n";
        assert_eq!(columns(of_schema("f", schema, &inventory)), [13]);
    }

    #[test]
    fn a_long_line_of_flags_takes_linear_time() {
        let lock = Lock::parse("l", "version: 1\n").unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        for one in ["a=", "-image="] {
            assert_linear(2_000, |count| {
                drop(of_flags("f", &one.repeat(count), &inventory));
            });
        }
    }

    #[test]
    fn a_number_as_a_tag_has_the_text_that_templates_print() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| put(dir.path(), path, text);
        put(
            "Chart.yaml",
            "apiVersion: v2\nname: c\nversion: 1.0.0\nappVersion: 2.0\n",
        );
        put(
            "values.yaml",
            "a: {image: {repository: quay.io/x/a, tag: 1.0}}\nb: {image: {repository: quay.io/x/b, tag: ''}}\n",
        );
        let chart = HelmChart::load(dir.path(), &Limits::default()).unwrap();
        let lock = Lock::parse("l", "version: 1\n").unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        let found = chart_images(chart, &Mapping::new(), None, &inventory).unwrap();
        let found: Vec<String> = found.into_iter().map(|one| one.finding.reference).collect();
        assert_eq!(found, ["quay.io/x/a:1", "quay.io/x/b:2"]);
    }

    /// An audit, `discover` and `render helm-values` complete the values of a chart alike.
    #[test]
    fn the_default_tag_has_the_prefix_that_the_templates_of_its_chart_write() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| put(dir.path(), path, text);
        let chart = |name: &str| format!("name: {name}\nversion: 1.0.0\nappVersion: 1.12.1\n");
        let values = "image: {repository: quay.io/x/a, tag: ''}\n";
        put("Chart.yaml", &chart("c"));
        put("values.yaml", values);
        put(
            "templates/_h.tpl",
            "image: {{ printf \"v%s\" $.Chart.AppVersion }}\n",
        );
        put("charts/s/Chart.yaml", &chart("s"));
        put("charts/s/values.yaml", values);
        let chart = HelmChart::load(dir.path(), &Limits::default()).unwrap();
        let lock = Lock::parse("l", "version: 1\n").unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        let mut values = chart.effective(&Mapping::new());
        fill_template_defaults(&chart, &mut values, &inventory);
        assert_eq!(values["image"]["tag"], "v1.12.1");
        assert_eq!(values["s"]["image"]["tag"], "1.12.1");
    }

    /// Istio names its registry `hub`. A template that does not use the globals of its parent takes
    /// the tag from `appVersion`.
    #[test]
    fn global_values_complete_the_images_of_charts_that_use_them() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| put(dir.path(), path, text);
        let chart = |name: &str| format!("name: {name}\nversion: 1.0.0\nappVersion: '9'\n");
        put("Chart.yaml", &chart("c"));
        put(
            "values.yaml",
            "global: {hub: docker.io/istio, tag: 1.27.0, imageTag: v3}\n",
        );
        let values = "{image: pilot, hub: '', tag: '', global: {proxy: {image: proxyv2}}}";
        let values = format!("_internal_defaults_do_not_set:\n  {values}\n");
        put("charts/i/Chart.yaml", &chart("i"));
        put("charts/i/values.yaml", &values);
        put(
            "charts/i/templates/d.yaml",
            "x: {{ .Values.hub | default .Values.global.hub }}\ny: {{ .Values.global.tag }}\n",
        );
        put("charts/t/Chart.yaml", &chart("t"));
        put(
            "charts/t/values.yaml",
            "image: {repository: quay.io/x/t, tag: ''}\n",
        );
        put(
            "charts/t/templates/d.yaml",
            "{{ .Values.global.imageTag }}\n",
        );
        put("charts/o/Chart.yaml", &chart("o"));
        put(
            "charts/o/values.yaml",
            "image: {repository: quay.io/x/o, tag: ''}\nother: {image: word}\n",
        );
        let chart = HelmChart::load(dir.path(), &Limits::default()).unwrap();
        let lock = Lock::parse("l", "version: 1\n").unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        let found = chart_images(chart, &Mapping::new(), None, &inventory).unwrap();
        let at = found
            .iter()
            .map(|one| (one.finding.line, one.finding.column));
        assert!(
            at.into_iter().any(|at| at == (2, 11)),
            "pilot, in the values of Istio"
        );
        let found: BTreeSet<String> = found.into_iter().map(|one| one.finding.reference).collect();
        let expected = [
            "docker.io/istio/pilot:1.27.0",
            "docker.io/istio/proxyv2:1.27.0",
            "quay.io/x/o:9",
            "quay.io/x/t:v3",
            "word",
        ];
        assert_eq!(found, expected.map(str::to_owned).into());
    }

    /// OpenTelemetry's eBPF chart has one `image.registry`, an account of Docker Hub; Datadog's has
    /// one `registry`. Percona's names only the repository of its operator.
    #[test]
    fn names_and_registries_in_different_mappings_form_images() {
        let lock = Lock::parse("l", "version: 1\n").unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        for (values, expected) in [
            (
                "image: {registry: otel, tag: ''}\na: {image: {registry: '', tag: '', name: ebpf}}\n",
                "docker.io/otel/ebpf:1.2",
            ),
            (
                "registry: gcr.io/datadoghq\na: {image: {name: agent, tag: 7.8.1}}\n",
                "gcr.io/datadoghq/agent:7.8.1",
            ),
            (
                "operatorImageRepository: percona/operator\nimage: ''\n",
                "docker.io/percona/operator:1.2",
            ),
        ] {
            let dir = tempfile::tempdir().unwrap();
            put(
                dir.path(),
                "Chart.yaml",
                "name: c\nversion: 1.0.0\nappVersion: '1.2'\n",
            );
            put(dir.path(), "values.yaml", values);
            let chart = HelmChart::load(dir.path(), &Limits::default()).unwrap();
            let found = chart_images(chart, &Mapping::new(), None, &inventory).unwrap();
            let names = found
                .iter()
                .map(|one| one.finding.reference.parse::<ImageRef>());
            let names: Vec<String> = names.map(|name| name.unwrap().to_string()).collect();
            assert_eq!(names, [expected]);
        }
        // a values file without its chart
        let image = "{name: 'gcr.io/datadoghq/agent:7.8.1', mediaType: m, size: 1, digest: \
            sha256:0000000000000000000000000000000000000000000000000000000000000000}";
        let lock = Lock::parse("l", &format!("version: 1\nimages:\n- {image}\n")).unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        let values = "registry: gcr.io/datadoghq\na: {image: {name: agent, tag: 7.8.1}}\n";
        let found = audit(Path::new("values.yaml"), values, &inventory);
        let held = LockCoverage::Held {
            item: "gcr.io/datadoghq/agent:7.8.1".into(),
        };
        assert!(found.iter().any(|one| one.coverage == held), "{found:?}");
        assert!(
            !found.iter().any(|one| one.coverage.is_missing()),
            "{found:?}"
        );
    }

    #[test]
    fn a_number_in_a_separate_values_file_is_also_looked_up_as_templates_print_it() {
        let lock = "version: 1\nimages:\n- {name: 'quay.io/x/a:1.1', mediaType: m, size: 1, digest: \
            sha256:0000000000000000000000000000000000000000000000000000000000000000}\n";
        let lock = Lock::parse("l", lock).unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        let reference = |tag: &str| {
            let text = format!("image: {{repository: quay.io/x/a, tag: {tag}}}\n");
            let found = audit(Path::new("values.yaml"), &text, &inventory);
            found[0].reference.clone()
        };
        assert_eq!(reference("1.10"), "quay.io/x/a:1.1");
        assert_eq!(reference("1.20"), "quay.io/x/a:1.20");
        assert_eq!(reference("'1.10'"), "quay.io/x/a:1.10");
    }

    #[test]
    fn enabled_dependencies_outside_of_audited_folders_are_missing() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| put(dir.path(), path, text);
        put(
            "c/Chart.yaml",
            "name: c\nversion: 1.0.0\ndependencies:\n\
     - {name: gone, version: 1.x, repository: 'https://charts.test'}\n\
     - {name: inside, version: 1.x, repository: ~}\n\
     - {name: idle, version: 1.x, condition: idle.enabled}\n\
     - {name: near, version: 1.x, repository: 'file://../near'}\n\
     - {name: tagged, version: 1.x, tags: [extra, other]}\n\
     - {name: used, version: 1.x, tags: [extra], condition: used.enabled}\n\
     - {name: used, version: 1.x, alias: again, tags: [extra, main]}\n",
        );
        put(
            "c/values.yaml",
            "idle: {enabled: false}\nused: {enabled: true}\ntags: {extra: false, main: true}\n",
        );
        put(
            "c/charts/inside/Chart.yaml",
            "name: inside\nversion: 1.0.0\ndependencies: [{name: deep, version: 1.x}]\n",
        );
        put("near/Chart.yaml", "name: near\nversion: 1.0.0\n");
        let folders = ["c", "near"].map(|chart| dir.path().join(chart));
        let chart = HelmChart::load(&folders[0], &Limits::default()).unwrap();
        let charts = folders[0].join("charts");
        let missing = ["gone", "inside/charts/deep", "near", "used"].map(|path| charts.join(path));
        let without =
            |audited: &[PathBuf]| missing_dependencies(&chart, &AuditedFolders::new(audited));
        assert_eq!(without(&folders[..1]), missing);
        assert_eq!(without(&folders), [&missing[..2], &missing[3..]].concat());
    }

    #[test]
    fn the_output_and_the_time_of_helm_are_limited() {
        let run =
            |script: &str, limits: &Limits| output(Command::new("sh").args(["-c", script]), limits);
        let limits = Limits {
            helm_output_bytes: 10,
            ..Limits::DEFAULT
        };
        assert_eq!(run("echo text", &limits).unwrap(), "text\n");
        let failed = run("echo why >&2; exit 1", &limits).unwrap_err();
        assert_eq!(failed.to_string(), "why");
        let endless = run("yes", &limits).unwrap_err();
        assert_eq!(endless.message, "its output has more than 10 bytes");
        let limits = Limits {
            helm_time: Duration::from_millis(50),
            ..Limits::DEFAULT
        };
        let slow = run("exec sleep 600", &limits).unwrap_err();
        assert!(slow.message.starts_with("it did not end within "), "{slow}");
        let silent = run("exec >&- 2>&-; exec sleep 600", &limits).unwrap_err();
        assert!(
            silent.message.starts_with("it did not end within "),
            "{silent}"
        );
    }

    #[test]
    fn a_program_that_helm_started_ends_when_its_output_is_too_large() {
        let dir = tempfile::tempdir().unwrap();
        let ended = dir.path().join("ended");
        let script = format!("(yes; : > '{}') & wait", ended.display());
        let limits = Limits {
            helm_output_bytes: 10,
            ..Limits::DEFAULT
        };
        let endless = output(Command::new("sh").args(["-c", &script]), &limits).unwrap_err();
        assert_eq!(endless.message, "its output has more than 10 bytes");
        let deadline = Instant::now() + Duration::from_secs(30);
        while !ended.exists() {
            assert!(Instant::now() < deadline, "the program still writes");
            thread::sleep(EXIT_INTERVAL);
        }
    }
}
