//! `modules.yaml`: packages that belong to a stream of a module, as in RHEL 8 and 9.
//!
//! dnf hides the packages of every stream that is not active. Active are the streams that are
//! enabled, as by `dnf module enable nginx:1.22` or by requests such as `@nginx:1.22`, the streams
//! that these require, and the default streams of the other modules. A package outside of modules
//! is hidden if it provides the name of a package of an active stream. Repositories of hotfixes are
//! exempt.

use super::modules_yaml::{ModuleFields, NameList, read_documents};
use super::pool::{PackageId, Pool, RpmRelationKind};
use super::relation::{RpmRelation, VersionSense};
use super::solve::is_named;
use super::version::{Architectures, compare_evrs};
use landfall_model::{Failure, split_optional};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The maximum number of streams that are active because of each other. Each takes a call on the
/// stack.
const MAX_DEPTH: usize = 256;

/// The maximum number of steps to find streams whose requirements can be met together.
const MAX_STEPS: usize = 10_000_000;

/// The module whose stream is the release of the machine's distribution. Every machine has it, and
/// no repository lists it.
const PLATFORM: &str = "platform";

/// The module streams that the sources define.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Modules {
    /// The streams of each module, by module and stream, in the order of the sources.
    pub(super) streams: BTreeMap<String, BTreeMap<String, Vec<ModuleStream>>>,
    defaults: BTreeMap<String, ModuleDefaults>,
}

/// A version of a module stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModuleStream {
    version: u64,
    /// Distinguishes builds of one stream with different requirements.
    context: String,
    /// The packages, as `name-epoch:version-release.arch`.
    artifacts: BTreeSet<String>,
    /// The names of the packages of each profile.
    profiles: BTreeMap<String, Vec<String>>,
    /// The modules that are required, each with the streams of which one must be active.
    requires: Vec<(String, Vec<String>)>,
    /// The names of packages that are no longer part of the module.
    demodularized: BTreeSet<String>,
}

/// The defaults of a module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ModuleDefaults {
    modified: u64,
    stream: Option<String>,
    profiles: BTreeMap<String, Vec<String>>,
}

/// The streams that are active on a machine, with the context of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ActiveModules(pub(super) BTreeMap<String, (String, String)>);

/// A request for a module: `@name[:stream][/profile]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModuleRequest<'w> {
    /// The word without its `@`.
    pub(super) word: &'w str,
    name: &'w str,
    stream: &'w str,
    profile: Option<&'w str>,
}

impl Modules {
    /// Adds the module streams and defaults of a `modules.yaml` that machines of `architectures`
    /// use.
    pub(super) fn read(
        &mut self,
        text: &str,
        architectures: &Architectures,
    ) -> Result<(), Failure> {
        read_documents(text, &mut |kind, data| match kind {
            "modulemd" | "modulemd-stream-v2" => self.add_stream(data, architectures),
            "modulemd-defaults" => self.add_defaults(data),
            // other kinds, such as translations and obsoletes, do not affect the selection
            _ => {}
        })
    }

    fn add_stream(&mut self, data: ModuleFields, architectures: &Architectures) {
        let is_usable = |arch: &String| architectures.all().contains(&arch.as_str());
        let (Some(name), Some(stream), true) = (
            data.name,
            data.stream,
            data.arch.as_ref().is_none_or(is_usable),
        ) else {
            return;
        };
        let names = |list: Option<NameList>| list.unwrap_or_default().0.into_iter().collect();
        let profiles = data.profiles.unwrap_or_default().into_iter();
        let requires = data.dependencies.unwrap_or_default().0.into_iter();
        let version = ModuleStream {
            version: number(data.version),
            context: data.context.unwrap_or_default(),
            artifacts: names(data.artifacts),
            profiles: profiles.map(|(name, list)| (name, list.0)).collect(),
            requires: requires
                .flat_map(|one| one.requires.unwrap_or_default())
                .filter(|(module, _)| module != PLATFORM)
                .map(|(module, list)| (module, list.0))
                .collect(),
            demodularized: names(data.demodularized),
        };
        let streams = self.streams.entry(name).or_default();
        streams.entry(stream).or_default().push(version);
    }

    /// Adds the defaults of a module. Those that were modified last count; if two sources
    /// contradict each other, the module has no default stream, as for dnf.
    fn add_defaults(&mut self, data: ModuleFields) {
        let Some(module) = data.module else { return };
        let profiles = data.profiles.unwrap_or_default().into_iter();
        let new = ModuleDefaults {
            modified: number(data.modified),
            stream: data.stream,
            profiles: profiles.map(|(stream, list)| (stream, list.0)).collect(),
        };
        let known = self.defaults.entry(module).or_insert_with(|| new.clone());
        if new.modified > known.modified {
            *known = new;
        } else if new.modified == known.modified {
            if new.stream != known.stream {
                known.stream = None;
            }
            known.profiles.extend(new.profiles);
        }
    }

    pub(super) fn default_stream(&self, module: &str) -> Option<&str> {
        self.defaults.get(module)?.stream.as_deref()
    }

    /// The stream `word`, as in `name:stream` or `name`. Fails if no source has it, or if the
    /// stream cannot be inferred.
    pub(super) fn stream<'w>(&'w self, word: &'w str) -> Result<ModuleRequest<'w>, String> {
        let name = word.split_once(':').map_or(word, |(name, _)| name);
        self.request(word, &[])?
            .ok_or_else(|| format!("no source has the module '{name}'"))
    }

    /// The request that `word`, the text after the `@`, makes for a module; `None` if it names no
    /// module of the sources. Fails if the module has no such stream, or if the stream cannot be
    /// inferred. A word without a stream means the one in `enabled`, if there is one.
    pub(super) fn request<'w>(
        &'w self,
        word: &'w str,
        enabled: &[ModuleRequest<'w>],
    ) -> Result<Option<ModuleRequest<'w>>, String> {
        let (spec, profile) = split_optional(word, '/');
        let profile = profile.filter(|profile| !profile.is_empty());
        let (name, stream) = split_optional(spec, ':');
        let Some(streams) = self.streams.get(name) else {
            return Ok(None);
        };
        let all = || listed(streams.keys().map(|stream| format!("@{name}:{stream}")));
        let own = enabled.iter().find(|one| one.name == name);
        let default = own
            .map(|one| one.stream)
            .or_else(|| self.default_stream(name));
        let stream = match (stream, default) {
            (Some(stream), _) if streams.contains_key(stream) => stream,
            (Some(_), _) => {
                return Err(format!(
                    "no source has the module stream '{spec}', but {}",
                    all()
                ));
            }
            (None, Some(default)) if streams.contains_key(default) => default,
            (None, _) if streams.len() == 1 => streams.keys().next().map_or("", String::as_str),
            (None, _) => {
                return Err(format!(
                    "the module '{name}' has no default stream; write one of {}",
                    all()
                ));
            }
        };
        Ok(Some(ModuleRequest {
            word,
            name,
            stream,
            profile,
        }))
    }

    /// The streams that are active if `requests` are enabled: these, the streams that they require,
    /// and default streams of other modules whose requirements can be met.
    pub(super) fn activate(&self, requests: &[ModuleRequest<'_>]) -> Result<ActiveModules, String> {
        let mut enabled: BTreeMap<&str, &str> = BTreeMap::new();
        for request in requests {
            let known = *enabled.entry(request.name).or_insert(request.stream);
            if known != request.stream {
                return Err(format!(
                    "the module '{}' can have only one stream on a machine, and both {known} and \
                     {} are requested",
                    request.name, request.stream
                ));
            }
        }
        let mut search = StreamSearch {
            modules: self,
            active: BTreeMap::new(),
            steps: MAX_STEPS,
        };
        let wanted: Vec<Requirement<'_>> = enabled
            .iter()
            .map(|(name, stream)| (*name, vec![*stream]))
            .collect();
        if !search.meet(&wanted, 0) {
            return Err(self.explain_unmet(&enabled));
        }
        for (name, defaults) in &self.defaults {
            if let Some(stream) = &defaults.stream {
                // a default stream whose requirements cannot be met is not active
                let _ = search.meet(&[(name.as_str(), vec![stream.as_str()])], 0);
            }
        }
        let active = search.active.into_iter();
        Ok(ActiveModules(
            active
                .map(|(name, (stream, context))| (name.into(), (stream.into(), context.into())))
                .collect(),
        ))
    }

    /// Explains why the streams `enabled` cannot be active together.
    fn explain_unmet(&self, enabled: &BTreeMap<&str, &str>) -> String {
        let mut reasons = Vec::new();
        for (name, stream) in enabled {
            let versions = self.streams.get(*name).and_then(|one| one.get(*stream));
            let newest = versions.and_then(|all| all.iter().max_by_key(|one| one.version));
            for (module, streams) in newest.map(|one| &one.requires).into_iter().flatten() {
                let described = match &streams[..] {
                    [] => module.clone(),
                    _ => format!("{module}:{}", streams.join(" or ")),
                };
                let why = match (enabled.get(module.as_str()), self.streams.get(module)) {
                    (Some(other), _) if !allows(streams, other) => {
                        format!("{module}:{other} is requested")
                    }
                    (None, None) => "no source has that module".into(),
                    (None, Some(offered)) if !offered.keys().any(|one| allows(streams, one)) => {
                        format!("the sources have only {}", listed(offered.keys()))
                    }
                    _ => continue,
                };
                reasons.push(format!(
                    "{name}:{stream} requires the module {described}, and {why}"
                ));
            }
        }
        if reasons.is_empty() {
            let all = listed(
                enabled
                    .iter()
                    .map(|(name, stream)| format!("{name}:{stream}")),
            );
            return format!("the modules that {all} require exclude each other");
        }
        reasons.join("; ")
    }

    /// All versions of the active streams.
    fn active<'m>(&'m self, active: &'m ActiveModules) -> impl Iterator<Item = &'m ModuleStream> {
        active
            .0
            .keys()
            .flat_map(|name| self.active_versions(active, name))
    }

    /// The versions of the active stream of the module `name`.
    fn active_versions<'m>(
        &'m self,
        active: &'m ActiveModules,
        name: &str,
    ) -> impl Iterator<Item = &'m ModuleStream> {
        let found = active.0.get(name).and_then(|(stream, context)| {
            let versions = self.streams.get(name)?.get(stream)?;
            Some(versions.iter().filter(move |one| one.context == *context))
        });
        found.into_iter().flatten()
    }

    /// The packages of the profiles that `request` names, or of the default profiles: the names,
    /// and the packages of the stream as `name-epoch:version-release.arch`.
    pub(super) fn profile_packages<'m>(
        &'m self,
        request: &ModuleRequest<'_>,
        active: &'m ActiveModules,
    ) -> Result<(BTreeSet<&'m str>, BTreeSet<&'m str>), String> {
        let versions: Vec<&ModuleStream> = self.active_versions(active, request.name).collect();
        let newest = versions.iter().max_by_key(|one| one.version);
        let profiles = newest.map(|newest| &newest.profiles);
        let wanted: Vec<&str> = match request.profile {
            Some(profile) => vec![profile],
            None => {
                let defaults = self.defaults.get(request.name);
                let defaults = defaults.and_then(|defaults| defaults.profiles.get(request.stream));
                defaults.into_iter().flatten().map(String::as_str).collect()
            }
        };
        let mut names = BTreeSet::new();
        for profile in &wanted {
            let packages = profiles.and_then(|profiles| profiles.get(*profile));
            let packages = packages.ok_or_else(|| no_profile(request, profiles))?;
            names.extend(packages.iter().map(String::as_str));
        }
        if wanted.is_empty() {
            return Err(no_profile(request, profiles));
        }
        let artifacts = versions.iter().flat_map(|one| &one.artifacts);
        Ok((names, artifacts.map(String::as_str).collect()))
    }

    /// Hides the packages of `pool` that dnf hides while the streams `active` are active.
    /// `hotfixes` says for each source whether its packages are exempt. Returns the hidden packages
    /// that belong to a stream.
    pub(super) fn hide(
        &self,
        active: &ActiveModules,
        hotfixes: &[bool],
        pool: &mut Pool,
    ) -> Vec<HiddenPackage> {
        let mut streams_of: HashMap<&str, BTreeSet<String>> = HashMap::new();
        for (name, streams) in &self.streams {
            for (stream, versions) in streams {
                for package in versions.iter().flat_map(|one| &one.artifacts) {
                    let streams = streams_of.entry(package).or_default();
                    streams.insert(format!("{name}:{stream}"));
                }
            }
        }
        let mut included: HashSet<&str> = HashSet::new();
        let mut names: HashSet<&str> = HashSet::new();
        for version in self.active(active) {
            included.extend(version.artifacts.iter().map(String::as_str));
            let listed = version
                .artifacts
                .iter()
                .filter_map(|artifact| artifact_name(artifact));
            names.extend(listed.filter(|name| !version.demodularized.contains(*name)));
        }
        let mut hidden: Vec<PackageId> = Vec::new();
        let mut of_streams: Vec<HiddenPackage> = Vec::new();
        for id in pool.ids() {
            // installed packages are never hidden
            let Some(source) = pool.package(id).source else {
                continue;
            };
            let nevra = pool.full_name(id);
            if included.contains(nevra.as_str()) || hotfixes.get(usize::from(source)) == Some(&true)
            {
                continue;
            }
            if let Some(streams) = streams_of.get(nevra.as_str()) {
                let streams = streams.iter().map(String::as_str).collect::<Vec<_>>();
                of_streams.push(HiddenPackage::new(pool, id, streams.join(" or ")));
                hidden.push(id);
                continue;
            }
            // a package outside of modules could otherwise replace the package of the active stream
            let mut provides = pool.relations(id, RpmRelationKind::Provides);
            if names.contains(pool.name(id)) || provides.any(|one| names.contains(one.name)) {
                hidden.push(id);
            }
        }
        pool.hide(&hidden);
        of_streams
    }
}

/// The number that `text` contains, or 0.
fn number(text: Option<String>) -> u64 {
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The name of a package that is written as `name-epoch:version-release.arch`; `None` for source
/// packages, which cannot be installed.
fn artifact_name(artifact: &str) -> Option<&str> {
    let (rest, arch) = artifact.rsplit_once('.')?;
    let (rest, _) = rest.rsplit_once('-')?;
    let (name, _) = rest.rsplit_once('-')?;
    (!matches!(arch, "src" | "nosrc")).then_some(name)
}

fn listed(names: impl Iterator<Item = impl ToString>) -> String {
    names
        .map(|name| name.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Explains that a stream has not the requested profile, or no default profile.
fn no_profile(
    request: &ModuleRequest<'_>,
    profiles: Option<&BTreeMap<String, Vec<String>>>,
) -> String {
    let ModuleRequest {
        word, name, stream, ..
    } = request;
    let written = profiles.into_iter().flatten();
    let written = listed(written.map(|(profile, _)| format!("@{name}:{stream}/{profile}")));
    let lacks = match word.split_once('/') {
        Some((_, profile)) if !profile.is_empty() => format!("no profile '{profile}'"),
        _ => "no default profile".to_owned(),
    };
    let help = if written.is_empty() {
        format!(
            "it has no profiles at all; enable it with `modules: [\"{name}:{stream}\"]`, and list \
             packages"
        )
    } else {
        format!("write one of {written}")
    };
    format!("the module stream {name}:{stream} has {lacks}; {help}")
}

/// Whether a requirement for one of `streams` allows `stream`. `-x` forbids x; without other names,
/// all streams that are not forbidden are allowed.
fn allows(streams: &[impl AsRef<str>], stream: &str) -> bool {
    let mut is_open = true;
    for one in streams {
        match one.as_ref().strip_prefix('-') {
            Some(forbidden) if forbidden == stream => return false,
            Some(_) => {}
            None if one.as_ref() == stream => return true,
            None => is_open = false,
        }
    }
    is_open
}

/// A module, and the streams of which one has to be active.
type Requirement<'m> = (&'m str, Vec<&'m str>);

/// The search for streams whose requirements can be met together.
struct StreamSearch<'m> {
    modules: &'m Modules,
    /// The stream and context of each active module.
    active: BTreeMap<&'m str, (&'m str, &'m str)>,
    /// The number of steps that are left: versions and requirements that are visited.
    steps: usize,
}

impl<'m> StreamSearch<'m> {
    /// Adds active streams until all requirements of `pending` are met. Returns whether that is
    /// possible; if not, nothing was added.
    fn meet(&mut self, pending: &[Requirement<'m>], depth: usize) -> bool {
        let is_active = |(name, _): &&Requirement<'m>| self.active.contains_key(name);
        let met = pending.iter().take_while(is_active).count();
        let (met, rest) = pending.split_at(met);
        self.spend(pending.len());
        if !met
            .iter()
            .all(|(name, streams)| allows(streams, self.active[name].0))
        {
            return false;
        }
        let Some(((name, streams), rest)) = rest.split_first() else {
            return true;
        };
        if depth >= MAX_DEPTH {
            return false;
        }
        for (stream, version) in self.candidates(name, streams) {
            if self.steps == 0 {
                return false;
            }
            self.active.insert(name, (stream, &version.context));
            let mut next = rest.to_vec();
            next.extend(version.requires.iter().map(|(module, streams)| {
                (
                    module.as_str(),
                    streams.iter().map(String::as_str).collect(),
                )
            }));
            if self.meet(&next, depth + 1) {
                return true;
            }
            self.active.remove(name);
        }
        false
    }

    fn spend(&mut self, steps: usize) {
        self.steps = self.steps.saturating_sub(steps);
    }

    /// The allowed streams of a module with the newest version of each of their contexts: the
    /// default stream first, then the newest stream.
    fn candidates(&mut self, name: &str, streams: &[&str]) -> Vec<(&'m str, &'m ModuleStream)> {
        let default = self.modules.default_stream(name);
        let offered = self.modules.streams.get(name).into_iter().flatten();
        let mut offered: Vec<_> = offered
            .filter(|(stream, _)| allows(streams, stream))
            .collect();
        offered.sort_by(|(a, _), (b, _)| {
            let is_default = |stream: &str| Some(stream) == default;
            is_default(b)
                .cmp(&is_default(a))
                .then_with(|| compare_evrs(b, a))
        });
        let mut found = Vec::new();
        for (stream, versions) in offered {
            self.spend(versions.len());
            let mut contexts: BTreeMap<&str, &ModuleStream> = BTreeMap::new();
            for version in versions {
                let newest = contexts.entry(&version.context).or_insert(version);
                if version.version > newest.version {
                    *newest = version;
                }
            }
            let mut contexts: Vec<&ModuleStream> = contexts.into_values().collect();
            contexts.sort_by_key(|one| std::cmp::Reverse(one.version));
            found.extend(
                contexts
                    .into_iter()
                    .map(|version| (stream.as_str(), version)),
            );
        }
        found
    }
}

/// A package of a stream that is not enabled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HiddenPackage {
    /// The package as `name-evr.arch`.
    pub nevra: String,
    /// The streams that contain it, as `module:stream`.
    pub streams: String,
    /// The name, operator and version of each capability and file that it provides.
    provides: Vec<(String, VersionSense, String)>,
    /// The name, version and architecture, to match requests.
    identity: [String; 3],
}

impl HiddenPackage {
    fn new(pool: &Pool, id: PackageId, streams: String) -> HiddenPackage {
        let provides = [RpmRelationKind::Provides, RpmRelationKind::Files]
            .into_iter()
            .flat_map(|kind| pool.relations(id, kind));
        let provides = provides.map(|one| (one.name.to_owned(), one.sense, one.evr.to_owned()));
        HiddenPackage {
            nevra: pool.nevra(id),
            streams,
            provides: provides.collect(),
            identity: [pool.name(id), pool.evr(id), pool.arch(id)].map(str::to_owned),
        }
    }

    /// Whether `wanted`, a relation or a request, matches the package.
    pub(super) fn matches(&self, wanted: &str) -> bool {
        let [name, evr, arch] = &self.identity;
        let relation = RpmRelation::parse(wanted);
        is_named(wanted, name, evr, arch)
            || relation.is_some_and(|relation| {
                self.provides.iter().any(|(name, sense, evr)| {
                    name == relation.name && sense.meets(evr, relation.sense, relation.evr)
                })
            })
    }
}
