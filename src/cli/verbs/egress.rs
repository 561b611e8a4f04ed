//! `landfall egress`: lists the hosts that the connected side must reach.

use crate::cli::shared::input_file::{self, OpenedFile};
use crate::cli::shared::{CliError, Context, Exit, ReportMember, VerbOutcome, VerbReport};
use crate::egress::{
    ContactRecord, EgressQuery, EgressRole, FORMATS, UpdateSources, diff, needed, probe, read_list,
    remember, unresolved_lock,
};
use clap::Args;
use clap::builder::PossibleValuesParser;
use landfall_content::store::DiskStore;
use landfall_item::lockfile::{FILE_NAME, Lock};
use landfall_item::manifest::{
    FileOverrides, list_sources, trust_root_sources, updatable_versions,
};
use landfall_model::Limits;
use landfall_model::document::read_text_input;
use std::path::{Path, PathBuf};

/// List the hosts that the firewall must allow
///
/// A host is `observed` if it answered an earlier command with this store, or if such a host named
/// it; `predicted` if only the lock, a manifest or the documentation of a registry names it; and
/// `declared` if it is an endpoint of the manifests. Exits with 4 if a request of --probe fails.
#[derive(Args)]
pub(crate) struct EgressCommand {
    /// The lock, or a bundle with a lock [default: landfall.lock]
    #[arg(value_name = "LOCK|BUNDLE")]
    place: Option<PathBuf>,
    /// The lock, instead of the argument
    #[arg(long, value_name = "FILE", conflicts_with = "place")]
    lock: Option<PathBuf>,
    /// Predict the hosts of manifests, before there is a lock (may be repeated)
    #[arg(short = 'f', long = "file", value_name = "MANIFEST|DIR|LIST", num_args = 1..,
        conflicts_with_all = ["place", "lock", "probe"])]
    manifests: Vec<PathBuf>,
    /// List only the hosts that machines of this role need: `landfall` for the machine that runs
    /// landfall, or a role in `from` of an endpoint
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Request a token, a manifest and the first byte of a blob or file from each host, following
    /// redirects. A refusal by one host does not stop the probe
    #[arg(long)]
    probe: bool,
    /// Show only the hosts that were added or removed since this lock, or since a list of `--format
    /// json`
    #[arg(long, value_name = "LOCK|LIST")]
    diff: Option<PathBuf>,
    /// The format of the list
    #[arg(long, default_value = "text",
        value_parser = PossibleValuesParser::new(FORMATS.iter().map(|format| {
            clap::builder::PossibleValue::new(format.name).help(format.about)
        })))]
    format: String,
}

impl EgressCommand {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        let format = FORMATS
            .iter()
            .find(|format| format.name == self.format)
            .unwrap_or(&FORMATS[0]);
        if format.is_policy && self.diff.is_some() {
            let name = format.name;
            return Err(CliError::usage(format!(
                "--format {name} writes a policy with all hosts, so it cannot be used with --diff"
            )));
        }
        let lock = self.lock(context)?;
        let role = self.role(&lock)?;
        let role = role.as_ref();
        if self.probe && role.is_some_and(|role| !role.is_own()) {
            return Err(CliError::usage(
                "--probe sends the requests of the machine that runs landfall, so it can be used \
                 only with --role landfall",
            ));
        }
        let old = self.diff.as_deref().map(DiffBase::load).transpose()?;
        // A refusal is a result of the probe, and retrying it would only take time.
        let limits = if self.probe {
            Limits {
                attempts: 1,
                ..context.limits
            }
        } else {
            context.limits
        };
        context.run(async {
            let client = context.client_with_limits(limits)?;
            let store = context.memory_dir()?;
            let sessions = client.shared_sessions();
            let probed = if self.probe {
                Some(probe(&lock, &sessions).await?)
            } else {
                None
            };
            let mut report = VerbReport::from(client.report(Vec::new()));
            // The probed hosts are remembered before the record is loaded, so that they are
            // `observed` in the list.
            if probed.is_some() {
                remember(&DiskStore::open(&store)?, &report.hosts, "probe")?;
            }
            let record = ContactRecord::load(&store)?;
            let hosts_of = |lock: &Lock, is_locked: bool| {
                let query = EgressQuery {
                    lock,
                    is_locked,
                    role,
                };
                needed(query, &record, &sessions)
            };
            let mut list = hosts_of(&lock, self.manifests.is_empty())?;
            if let Some(probed) = &probed {
                probed.apply(&mut list.hosts, &report.hosts);
                list.notes.extend(probed.notes.iter().cloned());
            }
            if let Some(old) = old {
                let old = match old {
                    DiffBase::Lock(lock) => hosts_of(&lock, true)?.hosts,
                    DiffBase::List(mut hosts) => {
                        hosts.retain(|host| role.is_none_or(|role| role.needs_host(host)));
                        hosts
                    }
                };
                list.hosts = diff(old, list.hosts);
            }
            let is_good = probed.is_none_or(|probed| probed.is_good());
            let exit = if is_good { Exit::Done } else { Exit::Refused };
            let text = (format.write)(&list);
            report.add(ReportMember::Egress(list));
            let outcome = VerbOutcome::new(report, text, exit);
            Ok(if format.name == "text" {
                outcome
            } else {
                outcome.document()
            })
        })
    }
}

impl EgressCommand {
    fn lock(&self, context: &Context) -> Result<Lock, CliError> {
        if !self.manifests.is_empty() {
            let merged = context.read_manifests(&self.manifests, &[])?;
            return Ok(unresolved_lock(&merged, self.update_sources()?));
        }
        let Some(place) = &self.place else {
            let path = self.lock.as_deref().unwrap_or(Path::new(FILE_NAME));
            return input_file::lock(path).map_err(|error| {
                if path.exists() {
                    return error;
                }
                error.with_help(
                    "before there is a lock, `landfall egress -f MANIFEST` predicts the hosts; \
                     `landfall lock -f MANIFEST` writes a lock",
                )
            });
        };
        match OpenedFile::open(context, place)? {
            OpenedFile::Lock(lock) => Ok(lock),
            other => Ok(other.into_bundle(place)?.lock()?),
        }
    }
}

impl EgressCommand {
    /// The sources from which `landfall update` takes versions, lists and trust roots.
    fn update_sources(&self) -> Result<UpdateSources, CliError> {
        let edited = FileOverrides::new();
        let lists = list_sources(&self.manifests, &edited)?;
        let roots = trust_root_sources(&self.manifests, &edited)?;
        let lists = lists.into_iter().map(|list| list.url);
        Ok(UpdateSources {
            versions: updatable_versions(&self.manifests, &edited)?,
            urls: lists
                .chain(roots.into_iter().map(|root| root.url))
                .collect(),
        })
    }

    fn role(&self, lock: &Lock) -> Result<Option<EgressRole>, CliError> {
        let role = |name| EgressRole::new(name, &lock.endpoints);
        let role = self.role.as_deref().map(role).transpose();
        role.map_err(|error| CliError::usage(format!("--role: {error}")))
    }
}

/// The older side of `--diff`.
enum DiffBase {
    Lock(Box<Lock>),
    List(Vec<crate::egress::EgressHost>),
}

impl DiffBase {
    fn load(path: &Path) -> Result<DiffBase, CliError> {
        // If the file cannot be read, reading it as a lock reports the cause.
        let text = read_text_input(path).unwrap_or_default();
        match read_list(&text) {
            Some(hosts) => Ok(DiffBase::List(hosts)),
            None => Ok(DiffBase::Lock(Box::new(input_file::lock(path)?))),
        }
    }
}
