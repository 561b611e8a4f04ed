//! `landfall discover`: drafts a manifest from existing files.

use crate::cli::shared::draft::{DraftRequest, DraftResult, draft_manifest, parse_manifest_name};
use crate::cli::shared::output_file::{
    OutputMark, ReplaceFlag, is_sealed, sealed, text_file, write_result,
};
use crate::cli::shared::{CliError, Context, VerbOutcome};
use clap::Args;
use landfall_model::PlatformRequest;
use landfall_rewrite::audit::HelmCommand;
use std::path::PathBuf;

/// Draft a manifest from Kubernetes manifests, charts and lists
///
/// Also reads Dockerfiles, cloud-init, systemd units, and the images of a cluster or a node. Charts
/// are rendered by `helm template` if helm is on PATH, and otherwise read without rendering.
#[derive(Args)]
pub(crate) struct DiscoverCommand {
    /// Files, folders, charts, or - for stdin, as with the output of `kubectl get pods -A -o json`,
    /// `crictl images -o json` or `ctr images ls`
    #[arg(required_unless_present = "access_logs", value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// A log of what nodes asked for and did not get: the access log of a registry or file server,
    /// /misses.json of `landfall serve`, or the log of containerd or kubelet (may be repeated)
    #[arg(long = "access-log", value_name = "FILE")]
    access_logs: Vec<PathBuf>,
    /// Values for the charts, as with helm (may be repeated)
    #[arg(short = 'f', long, value_name = "FILE")]
    values: Vec<PathBuf>,
    /// Read charts without rendering them, even if helm is on PATH
    #[arg(long, conflicts_with = "values")]
    no_helm: bool,
    /// A platform for all images, as in linux/amd64 [default: those in node selectors] (may be
    /// repeated)
    #[arg(long = "platform", value_name = "OS/ARCH")]
    platforms: Vec<PlatformRequest>,
    /// The metadata.name of the manifest
    #[arg(long, value_name = "NAME", default_value = "discovered",
        value_parser = parse_manifest_name)]
    name: String,
    /// The manifest to write [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Also replace a file that this command did not write, or that was edited since
    #[arg(long = "replace", requires = "out")]
    replaces: bool,
}

impl DiscoverCommand {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        let helm = if self.no_helm {
            None
        } else {
            HelmCommand::find(std::env::var_os("PATH").as_deref(), &self.values)
        };
        if helm.is_none() && !self.values.is_empty() {
            return Err(CliError::usage("--values needs helm, which is not on PATH"));
        }
        let title = "Drafted by `landfall discover`. Review it, pin commented-out entries, and \
            keep it in git.";
        let request = DraftRequest {
            paths: &self.paths,
            access_logs: &self.access_logs,
            helm: helm.as_ref(),
            platforms: &self.platforms,
            name: &self.name,
            title,
        };
        let DraftResult {
            text,
            lines,
            report,
            exit,
            ..
        } = draft_manifest(&request, context)?;
        let out = text_file(self.out.as_deref());
        let text = match out {
            Some(_) => sealed(&text),
            None => text,
        };
        let replace = ReplaceFlag {
            replaces: self.replaces,
        };
        write_result(
            VerbOutcome::new(report, text, exit),
            replace.file(out, OutputMark::Content(&is_sealed)),
            &lines,
            context,
        )
    }
}
