//! The report of a verb, and the members of its JSON document.

use super::comparison::NewContent;
use super::patch_report::PatchReport;
use crate::doctor::{Diagnosis, LintMessage, RequiredPort};
use crate::egress::{Egress, EgressHost};
use crate::evidence::LoggedCommand;
use crate::lock::{EndpointChange, LockChange};
use crate::push::{
    Delivered, MissingPart, Moved, Problem, PrunedManifest, RegistryTag, Replaced,
    SurveyedRepository,
};
use crate::update::VersionMove;
use landfall_bundle::image_archive::TrimmedImageIndex;
use landfall_bundle::{BaseName, BlobRecipe, BlobReference, ItemName, Serial};
use landfall_content::store::{GarbageFile, SweptBlob};
use landfall_item::OpenReference;
use landfall_item::lockfile::Endpoint;
use landfall_model::report::{ErrorInfo, HostUse, Notice, ReportItem};
use landfall_model::report::{RunReport, RunStatus, RunTotals};
use landfall_model::sign::PublicKey;
use landfall_model::{Descriptor, Digest};
use landfall_render::OverlayKey;
use landfall_rewrite::audit::{FileFinding, UnreadFile};
use landfall_rewrite::{ReadAs, ReferenceRole};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The report of a verb: the run, and the members that the verb adds to the document.
#[derive(Debug, Default, derive_more::Deref, derive_more::DerefMut)]
pub(crate) struct VerbReport {
    #[deref]
    #[deref_mut]
    run: RunReport,
    members: Vec<ReportMember>,
}

impl From<RunReport> for VerbReport {
    fn from(run: RunReport) -> VerbReport {
        VerbReport {
            run,
            members: Vec::new(),
        }
    }
}

impl VerbReport {
    /// A report with these items, of a verb that used no network.
    pub(crate) fn of(items: Vec<ReportItem>) -> VerbReport {
        let run = RunReport {
            items,
            ..RunReport::default()
        };
        run.into()
    }

    /// Adds a member after the others. It replaces an earlier member with the same name.
    pub(crate) fn add(&mut self, member: ReportMember) {
        self.members.push(member);
    }

    /// Adds the member `notices`, sorted.
    pub(crate) fn add_notices(&mut self, mut notices: Vec<Notice>) {
        notices.sort();
        self.add(ReportMember::Notices(notices));
    }

    /// The first value that `value` finds in a member.
    pub(crate) fn find<'r, T>(
        &'r self,
        value: impl Fn(&'r ReportMember) -> Option<T>,
    ) -> Option<T> {
        self.members.iter().find_map(value)
    }

    /// The bundle that the verb wrote or read.
    pub(crate) fn bundle(&self) -> Option<&BundleMember> {
        self.find(|member| match member {
            ReportMember::Bundle(bundle) => Some(&**bundle),
            _ => None,
        })
    }

    /// The fingerprint of the lock.
    pub(crate) fn lock(&self) -> Option<&Digest> {
        self.find(|member| match member {
            ReportMember::Lock(fingerprint) => Some(fingerprint),
            _ => None,
        })
    }

    /// The registry to which content was delivered, or that was compared.
    pub(crate) fn destination(&self) -> Option<&String> {
        self.find(|member| match member {
            ReportMember::To(to) => Some(to),
            _ => None,
        })
    }

    /// The members as JSON, in the order in which they were added.
    pub(crate) fn members(&self) -> Map<String, Value> {
        let members = self.members.iter().map(|member| match json!(member) {
            Value::Object(member) => member,
            // every variant is serialized as an object
            _ => Map::new(),
        });
        members.flatten().collect()
    }

    /// The document of `--output json` and `--report`. Text from servers is safe in it, because
    /// JSON escapes control characters.
    pub(crate) fn document<'r>(
        &'r self,
        command: &'r str,
        status: RunStatus,
        error: Option<&'r ErrorInfo>,
    ) -> ReportDocument<'r> {
        ReportDocument {
            command,
            status,
            items: &self.items,
            totals: self.totals(),
            hosts: &self.hosts,
            members: self.members(),
            error,
        }
    }
}

/// What --output json prints, and --report writes.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Report")]
pub(crate) struct ReportDocument<'r> {
    /// The command that was run.
    command: &'r str,
    /// `done` (exit 0), `partial` (exit 3), `failed` (exit 1 or 2) or `refused` (exit 4). A `pack`
    /// that is refused because content is missing is `refused` with exit 3.
    status: RunStatus,
    /// One for each lock entry that the command handled, see below.
    items: &'r [ReportItem],
    /// The number of items by status, and the traffic, see below.
    totals: RunTotals,
    /// Every host that was contacted, see below.
    hosts: &'r [HostUse],
    /// The [members](ReportMember) that only some commands have.
    #[serde(flatten)]
    #[schemars(skip)]
    members: Map<String, Value>,
    /// What ended the command: `message`, and `side` and `item` if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'r ErrorInfo>,
}

/// An object whose members have no schema.
type JsonRow = Map<String, Value>;

/// A member of the document that only some commands have. The descriptions are those of the schema
/// and of `docs/reference/report.md`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ReportMember {
    /// The fingerprint of the lock (of lock, push, mirror, ls, update, refresh).
    Lock(Digest),
    /// `path`, `digest`, `lock`, `bytes`, what it lacks (`partial`), `bases` and `omitted` of a
    /// delta, `recipes` and `references` of a bundle with patches (the blobs that it has patches
    /// for, and the blobs outside the bundle that the patches use), `signed` and the `signer` that
    /// was verified; after `pack` and `pull` also `content_bytes`, `files` and `beside` (files next
    /// to it) (of pull, pack, sign, verify, push, ls, refresh, report, sbom).
    Bundle(Box<BundleMember>),
    /// With `--patches`, what the bundle carries: the sizes of blobs that are carried whole
    /// (`whole_bytes`), omitted (`omitted_bytes`) or patched (`patched_bytes`), and of their
    /// patches (`patch_bytes`). `items` has the same for each item, and its `blobs`: `digest`,
    /// `size`, how it is `carried` (`whole`, `omitted` or `patched`), the `reason` why it has no
    /// patch, or `patch_bytes` and the blobs that the patch uses (`from`). After `diff` the sizes
    /// of patches are `estimated`; if that is impossible, there is only a `reason` (of pack,
    /// refresh, diff).
    Patches(#[schemars(with = "JsonRow")] PatchReport),
    /// The same without an estimate.
    #[serde(rename = "patches")]
    #[schemars(skip)]
    NoPatches { estimated: bool, reason: String },
    /// What differs, or what was rewritten. If an item is replaced by another version, the new one
    /// has `replaces` and `version` (`up` or `down`), the old one `replacedBy`. `packages` of a set
    /// lists the changes: `name`, `arch`, `change`, `from`, `to`, `bytes`, `digest`, and
    /// `changelog` if it is available. `newBytes` is the size of the item's new content, if it is
    /// known: a receipt has no sizes (of lock, diff, report, rewrite, render, update, refresh).
    Changes(Vec<ReportChange>),
    /// Versions that moved, are held or wait: `name`, `at`, `policy`, `from`, `to`, `items`, `held`
    /// with `version` and `why`, and `waiting` with `version`, `firstSeen` and `until`; for a
    /// package the `source` that has it (of update, refresh).
    Updates(Vec<VersionMove>),
    /// References in charts that cannot be resolved: `item`, `reference`, `at`, `why` (of lock).
    Open(Vec<OpenRow>),
    /// Names of failing items that changed since manuals were written: `name`, `replacement`,
    /// `says`, `source` (of lock, pull, update, refresh).
    ChangedNames(Vec<ChangedNameRow>),
    /// With `--shard`: the `number` of this runner, from 1, and the number of runners (`of`) (of
    /// pull, push, mirror, verify).
    Shard { number: usize, of: usize },
    /// The disk space that is needed at most (of pull, pack, push, mirror, export).
    #[serde(rename = "needed_bytes")]
    NeededBytes(u64),
    /// The free disk space, in a dry run, if the file system says it (of pull, pack, export).
    #[serde(rename = "available_bytes")]
    AvailableBytes(u64),
    /// The registry and prefix to which content was delivered, or that was compared (of push,
    /// mirror, status).
    To(String),
    /// Each tag of the lock at the registry: `state` (`there`, `missing`, `different`,
    /// `incomplete`, `foreign`, `unknown`), `at`, `kind`, `name`, `wanted` (the locked digest),
    /// `stands` (the digest at the registry), `why` (of status).
    Standings(Vec<RegistryTag>),
    /// What prevents the delivery: `kind`, `at`, `message`, `stands`, `wanted` (of push, mirror).
    Problems(Vec<Problem>),
    /// Tags that had another digest: `at`, `from`, `to` (of push, mirror).
    Moved(Vec<Moved>),
    /// Indexes that were trimmed: `name`, `from`, `to` (of push, mirror, export).
    Trimmed(Vec<Replaced>),
    /// The same in an archive.
    #[serde(rename = "trimmed")]
    #[schemars(skip)]
    TrimmedInArchive(Vec<TrimmedImageIndex>),
    /// What the registry has now: `name`, `at`, `digest`; for a trimmed index also the locked
    /// digest, `trimmedFrom` (of push, mirror).
    Delivered(Vec<Delivered>),
    /// Why the list of locks could not be written, so that `serve --from` does not find the new
    /// items (of push, mirror).
    Unlisted(String),
    /// The volume that was packed again: `path`, `bytes` (of pack).
    Volume { path: String, bytes: u64 },
    /// Verified signatures of images, charts and files: `name`, `by` and the other keys of
    /// `verified` in the lock, and `verified`: whether this run verified it (of lock, verify, push,
    /// status, report).
    Signatures(#[schemars(with = "Vec<JsonRow>")] Vec<SignatureRow>),
    /// The rules for signatures that match no item (of lock, verify, push).
    UnmatchedRules(Vec<String>),
    /// The git repositories: `name`, and whether their packs were `checked` to have everything that
    /// their refs need; a delta needs its bases for that (of verify).
    Repositories(Vec<RepositoryRow>),
    /// For `ls` the platforms of each image, by its name; for `render --list` what each platform
    /// writes (of ls, render).
    Platforms(JsonRow),
    /// The number of signatures, attestations and SBOMs of each image, by its name (of ls).
    Referrers(BTreeMap<String, BTreeMap<&'static str, usize>>),
    /// The endpoints of the lock: `host`, `port`, `why`, `from` (of ls).
    Endpoints(Vec<Endpoint>),
    /// How endpoints differ: `change`, `host`, `port`, `why`, `from` (of lock, diff, report,
    /// update, refresh).
    EndpointChanges(Vec<EndpointChange>),
    /// The archive of images that was written (of export).
    Archive {
        path: String,
        format: Option<String>,
        bytes: u64,
        images: Vec<ArchivedImageRow>,
    },
    /// Hosts that only one side needs, as in `landfall egress --diff` (of diff, report).
    HostChanges(#[schemars(with = "Vec<JsonRow>")] Vec<EgressHost>),
    /// The older side: its type (`of`), and the fingerprint of its `lock` (of diff, report).
    Old { lock: Digest, of: &'static str },
    /// The newer side, likewise; for a lock or bundle also the number of `blobs` that only it has,
    /// their `bytes`, and `all_bytes` (of diff, report).
    New {
        lock: Digest,
        of: &'static str,
        #[serde(flatten)]
        content: Option<NewContent>,
    },
    /// Each file: `file`, `status`, `changes`, `settled`, `readAs`; for `render` `file`, `mode`,
    /// `secret` (of rewrite, render).
    Files(#[schemars(with = "Vec<JsonRow>")] Vec<FileRow>),
    /// References that were left unchanged, and why (of rewrite).
    Left(#[schemars(with = "Vec<JsonRow>")] Vec<ReferenceRow>),
    /// References that the lock lacks: `count`, and the command that lists them (`audit`) (of
    /// rewrite).
    Unknown { count: usize, audit: String },
    /// The document or diff that text mode prints (of rewrite, render).
    Text(String),
    /// References that the lock contains (of audit).
    Held(#[schemars(with = "Vec<JsonRow>")] Vec<FileFinding>),
    /// What the lock lacks; for packages with their `manager`, for git repositories with their
    /// `git` (of audit, render).
    Missing(#[schemars(with = "Vec<JsonRow>")] Vec<FileFinding>),
    /// Possible references (of audit, init, discover, render).
    Undecided(#[schemars(with = "Vec<JsonRow>")] Vec<FileFinding>),
    /// Files that could not be read (of audit, init, discover).
    Unread(#[schemars(with = "Vec<JsonRow>")] Vec<UnreadFile>),
    /// Packages that machines install and that are not carried: `manager`, `name`, `at` (of init,
    /// discover).
    Packages(Vec<InstalledRow>),
    /// The blobs that were read from each archive of another tool: `path`, `blobs`, `bytes`,
    /// `notUsed` (of pull).
    Archives(Vec<ArchiveRow>),
    /// What the registry lacks, if it was queried (of audit).
    Lacking(Option<Vec<MissingPart>>),
    /// Registries other than the site's at which missing references name locked images: possible
    /// values for `--to` (of audit).
    OtherRegistries(Vec<String>),
    /// Images without a version, which are comments in the manifest (of init, discover).
    Unpinned(Vec<String>),
    /// The manifest that was written (of init, discover, import).
    Manifest(String),
    /// Requested items that the manifest or list cannot express, and why (of import, export).
    NotCarried(Vec<String>),
    /// The list that was written, in the format of another tool (of export).
    List(String),
    /// Settings that the manifest or site cannot express (of import).
    Notes(Vec<String>),
    /// The systems of the catalogue: name, about, files, edit, platform (of init).
    Systems(Vec<SystemRow>),
    /// The files that were copied from the catalogue (of init).
    Written(Vec<String>),
    /// What must be edited in the copied files (of init).
    Edit(&'static [&'static str]),
    /// The site that was written (of init, import).
    Site(String),
    /// The next command (of init).
    Next(String),
    /// The helm that rendered charts (of init, discover).
    Helm(Option<String>),
    /// The keys of values that were written (of render).
    Keys(#[schemars(with = "Vec<JsonRow>")] Vec<OverlayKey>),
    /// The values themselves.
    #[schemars(skip)]
    Values(Value),
    /// The `hosts` that the lock needs, and `notes` about what is unknown (of egress).
    Egress(#[schemars(with = "JsonRow")] Egress),
    /// Each target, and the steps to it (of doctor).
    Targets(#[schemars(with = "Vec<JsonRow>")] Vec<Diagnosis>),
    /// The ports that the role needs: `role`, `port`, `protocol`, `from`, `to`, `address`, `why`
    /// (of doctor).
    Ports(#[schemars(with = "Vec<JsonRow>")] Vec<RequiredPort>),
    /// The faults of NO_PROXY (of doctor).
    Lint(#[schemars(with = "Vec<JsonRow>")] Vec<LintMessage>),
    /// Files that an earlier run wrote and this one did not (of render).
    Stale(Vec<String>),
    /// The bundles whose content is kept (`kept`), and the `older` ones (of gc).
    Bundles {
        kept: Vec<String>,
        older: Vec<String>,
    },
    /// Unneeded content of the registry: `manifests` (`repository`, `digest`, `tags`), the `bytes`
    /// of blobs that nothing needs any more (`null` if a repository could not be examined), the
    /// `repositories`, each with the number of tags that remain (`kept`) and the reason if it could
    /// not be pruned completely (`why`), and whether the manifests were `deleted` (of push).
    Pruned {
        deleted: bool,
        repositories: Vec<SurveyedRepository>,
        manifests: Vec<PrunedManifest>,
        bytes: Option<u64>,
    },
    /// Notices about upstream, old images and wrong clocks: `kind` (`gone`, `moved`, `newer`,
    /// `old`, `clock`), `name`, `message`, whether the change was accepted (`taken`), `from` and
    /// `to` if the content moved, and the time `until` which the change waits (of lock, report,
    /// update, refresh).
    Notices(Vec<Notice>),
    /// The CycloneDX document (of sbom).
    Sbom(#[schemars(with = "JsonRow")] Value),
    /// The content that servers of the store now serve: its `place`, the fingerprint of the `lock`,
    /// and that of the lock `before` it (of publish).
    Published {
        place: String,
        lock: Digest,
        before: Option<Digest>,
    },
    /// The content that was removed, or would be: `what`, `digest`, `bytes` (of gc).
    Removed(#[schemars(with = "Vec<JsonRow>")] Vec<GarbageFile>),
    /// The same in an object store.
    #[serde(rename = "removed")]
    #[schemars(skip)]
    RemovedBlobs(Vec<SweptBlob>),
    /// What is kept: `blobs`, `bytes` (of gc).
    Kept { blobs: usize, bytes: u64 },
    /// Files that do not belong to a store (of gc).
    Strange(Vec<String>),
    /// The unused blobs of an object store that were marked in this run: `digest`, `bytes` (of gc).
    Condemned(#[schemars(with = "Vec<JsonRow>")] Vec<SweptBlob>),
    /// The number of marked blobs of an object store whose grace period has not ended (of gc).
    Waiting(usize),
    /// The number of unfinished uploads to an object store that were aborted (of gc).
    Uploads(usize),
    /// The number of locks that claim blobs of an object store (of gc).
    Claims(usize),
    /// For `doctor packages`, the installed packages that would be replaced or removed (of doctor).
    Replaced(Vec<String>),
    /// With `--into` and `--diff`, the difference that text mode prints (of render).
    Diff(String),
    /// The evidence log: its `path`, and the hash of its last record (`head`); of `report` and
    /// `log` also the number of `records`; of `log` also the number of the line after the last
    /// record if it is incomplete (`incompleteLine`), and the number of the record that `--head`
    /// names (`anchor`), else `null` (of lock, update, refresh, pull, pack, sign, verify, push,
    /// mirror, publish, gc, report, log).
    Log {
        path: String,
        head: Option<Digest>,
        #[serde(skip_serializing_if = "Option::is_none")]
        records: Option<u64>,
        #[serde(flatten)]
        check: Option<LogCheck>,
    },
    /// The records of the log about the bundle or its lock: `seq`, `time`, `command`, `status`,
    /// `exit`, `registry`, `version` (of report).
    Records(VecDeque<LoggedCommand>),
    /// The requested schema (of schema).
    Schema(#[schemars(with = "JsonRow")] Value),
}

impl ReportMember {
    /// The log at `path`, with the hash of its last record.
    pub(crate) fn log(path: String, head: Option<Digest>) -> ReportMember {
        ReportMember::Log {
            path,
            head,
            records: None,
            check: None,
        }
    }

    /// The changes of a lock.
    pub(crate) fn changes(changes: &[LockChange]) -> ReportMember {
        let rows = changes.iter().cloned();
        ReportMember::Changes(rows.map(|change| ReportChange::new(change, None)).collect())
    }
}

/// A bundle that was written or read.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BundleMember {
    pub path: String,
    pub digest: Digest,
    pub lock: Digest,
    pub bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_bytes: Option<u64>,
    #[schemars(with = "Vec<JsonRow>")]
    pub partial: Vec<ItemName>,
    #[schemars(with = "Vec<JsonRow>")]
    pub bases: Vec<BaseName>,
    #[schemars(with = "Vec<JsonRow>")]
    pub omitted: Vec<Descriptor>,
    #[schemars(with = "Vec<JsonRow>")]
    pub recipes: Vec<BlobRecipe>,
    #[schemars(with = "Vec<JsonRow>")]
    pub references: Vec<BlobReference>,
    #[serde(flatten)]
    pub written: Option<WrittenFiles>,
    pub signed: bool,
    /// The keys of signatures that were not verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signatures: Option<Vec<String>>,
    /// The first of `signers`.
    pub signer: Option<SignerRow>,
    /// Null unless signatures were verified.
    pub signers: Option<Vec<SignerRow>>,
    #[serde(flatten)]
    pub serial: SerialMember,
}

/// The series of a bundle, and its number.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SerialMember {
    pub series: Option<String>,
    #[serde(rename = "serial")]
    pub number: Option<u64>,
}

impl SerialMember {
    pub(crate) fn new(serial: Option<Serial>) -> SerialMember {
        let (series, number) = serial.map(|serial| (serial.series, serial.number)).unzip();
        SerialMember { series, number }
    }
}

/// The files of a bundle that was written.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WrittenFiles {
    pub files: Vec<String>,
    pub beside: Vec<String>,
    pub removed: Vec<String>,
}

/// The key of a signature that was made or verified.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct SignerRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principals: Option<String>,
    pub key: String,
    #[serde(rename = "type")]
    pub kind: String,
}

impl SignerRow {
    pub(crate) fn new(key: &PublicKey, principals: Option<String>) -> SignerRow {
        SignerRow {
            principals,
            key: key.fingerprint(),
            kind: key.kind().to_owned(),
        }
    }
}

/// A difference, a rewritten reference, or a key that was set.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ReportChange {
    Item {
        #[serde(flatten)]
        change: Box<LockChange>,
        #[serde(rename = "newBytes", skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
    },
    Reference(#[schemars(with = "JsonRow")] ReferenceRow),
    Key(String),
}

impl ReportChange {
    /// A change that adds `bytes`, if that is known.
    pub(crate) fn new(change: LockChange, bytes: Option<u64>) -> ReportChange {
        let change = Box::new(change);
        ReportChange::Item { change, bytes }
    }
}

/// A reference that was rewritten or left.
#[derive(Debug, Serialize)]
pub(crate) struct ReferenceRow {
    pub file: String,
    pub line: usize,
    pub column: usize,
    pub position: ReferenceRole,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
    #[serde(flatten)]
    pub outcome: ReferenceOutcome,
}

/// The outcome for a reference.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum ReferenceOutcome {
    Changed {
        from: String,
        to: String,
        item: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        reaches: Vec<String>,
    },
    Left {
        reference: String,
        why: String,
    },
}

/// A file that was rewritten or rendered.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum FileRow {
    Failed {
        file: String,
        status: &'static str,
        reason: String,
    },
    #[serde(rename_all = "camelCase")]
    Rewritten {
        file: String,
        status: &'static str,
        changes: usize,
        settled: usize,
        read_as: ReadAs,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        lost: Vec<String>,
    },
    Rendered {
        file: String,
        mode: String,
        secret: bool,
    },
}

/// A reference in a chart that cannot be resolved.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OpenRow {
    pub item: String,
    #[serde(flatten)]
    pub open: OpenReference,
}

/// A name that changed since manuals were written.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangedNameRow {
    pub name: &'static str,
    pub replacement: Option<&'static str>,
    pub says: String,
    pub source: &'static str,
}

/// A verified signature.
#[derive(Debug, Serialize)]
pub(crate) struct SignatureRow {
    pub name: String,
    pub verified: bool,
    /// The fields in the order of the lock.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// A git repository that was verified.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RepositoryRow {
    pub name: String,
    pub checked: bool,
}

/// An image of an archive.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ArchivedImageRow {
    pub name: String,
    pub digest: Digest,
    pub names: BTreeSet<String>,
}

/// A package that a machine installs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct InstalledRow {
    pub manager: &'static str,
    pub name: String,
    pub at: String,
}

/// An archive of another tool.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ArchiveRow {
    pub path: String,
    pub blobs: usize,
    pub bytes: u64,
    #[serde(rename = "notUsed")]
    pub not_used: Vec<String>,
}

/// A system of the catalogue.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SystemRow {
    pub name: &'static str,
    pub about: &'static str,
    pub files: Vec<&'static str>,
    pub edit: &'static [&'static str],
    pub platform: &'static str,
}

/// The result of checking a whole log.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LogCheck {
    pub incomplete_line: Option<u64>,
    pub anchor: Option<u64>,
}
