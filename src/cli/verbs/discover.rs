//! `landfall discover`: a first manifest, from what is there already.

use crate::cli::shared::drafted::{Asked, Drafted, drafted, name};
use crate::cli::shared::result_file::write_result;
use crate::cli::shared::{Context, Failure, Outcome};
use clap::Args;
use landfall_model::Platform;
use landfall_rewrite::audit::Helm;
use std::path::PathBuf;

/// Draft a manifest from Kubernetes manifests, charts, Dockerfiles, lists, the images of a cluster
/// or a node, cloud-init and systemd units
///
/// Charts are rendered by `helm template` where a helm is on PATH, and read as they are where not.
#[derive(Args)]
pub(crate) struct Discover {
    /// Files, folders, charts, or - for stdin: `kubectl get pods -A -o json`, `crictl images -o
    /// json`, `ctr images ls`
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Values for the charts, as for helm (may be repeated)
    #[arg(short = 'f', long, value_name = "FILE")]
    values: Vec<PathBuf>,
    /// Read charts as they are, also where there is a helm
    #[arg(long, conflicts_with = "values")]
    no_helm: bool,
    /// A platform for all images, as in linux/amd64 [default: those that node selectors name] (may
    /// be repeated)
    #[arg(long = "platform", value_name = "OS/ARCH")]
    platforms: Vec<Platform>,
    /// The manifest's metadata.name
    #[arg(long, value_name = "NAME", default_value = "discovered", value_parser = name)]
    name: String,
    /// Where to write the manifest [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Discover {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let helm = match self.no_helm {
            true => None,
            false => Helm::find(std::env::var_os("PATH").as_deref(), &self.values),
        };
        if helm.is_none() && !self.values.is_empty() {
            return Err(Failure::usage(
                "there is no helm on PATH, and without it values are not read",
            ));
        }
        let title =
            "Drafted by `landfall discover`. Read it, pin what is commented, and keep it in git.";
        let (paths, helm, platforms) = (&self.paths, helm.as_ref(), &self.platforms);
        let asked = Asked {
            paths,
            helm,
            platforms,
            name: &self.name,
            title,
        };
        let Drafted {
            text,
            lines,
            report,
            exit,
            ..
        } = drafted(&asked, context)?;
        write_result(
            Outcome::new(report, text, exit),
            self.out.as_deref(),
            &lines,
            context,
        )
    }
}
