//! What the packages say as clauses: who needs, excludes and replaces whom.
//!
//! Clauses are made for the packages that can be reached from those that are asked for, as dnf's
//! solver makes them, and in its order: packages from the last of the pool to the first.

use super::formula::{Formula, Literal, installed};
use crate::yum::architecture::Architectures;
use crate::yum::filelists::{FILE_RELATIONS, is_in_primary};
use crate::yum::pool::{PackageId, Pool, RpmRelationKind};
use crate::yum::relation::RpmRelation;
use crate::yum::rich::RichDependency;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// By what names packages are known of which dnf keeps several versions (`installonlypkgs` of
/// dnf.conf(5)).
const BESIDE: [&str; 6] = [
    "kernel",
    "kernel-PAE",
    "installonlypkg(kernel)",
    "installonlypkg(kernel-module)",
    "installonlypkg(vm)",
    "multiversion(kernel)",
];

/// The reason why a clause must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RuleOrigin {
    /// It is asked for, by this word.
    Asked(String),
    /// The package has this dependency of this kind; where that cannot hold, nothing meets it.
    Dependency(PackageId, RpmRelationKind, u32),
    /// Two packages have one name.
    SameName(PackageId, PackageId),
    /// The package is for an architecture that is not preferred.
    Architecture(PackageId),
    /// The package is in the base.
    Kept(PackageId),
}

/// A clause with its reason.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) literals: Vec<Literal>,
    pub(super) why: RuleOrigin,
}

/// All that is known of the packages that can be reached.
#[derive(Debug)]
pub(super) struct Rules<'p> {
    pub(super) pool: &'p Pool,
    pub(super) architectures: &'p Architectures,
    /// Whether what nobody offers is taken to be there.
    assume: bool,
    pub(super) rules: Vec<Rule>,
    /// Whether each package can be reached.
    pub(super) reached: Vec<bool>,
    /// What is taken to be there, by who needs it.
    pub(super) assumed: BTreeMap<PackageId, BTreeSet<String>>,
    /// Files that are needed, and that no list has so far.
    pub(super) unlisted: BTreeSet<String>,
    /// Packages of which a machine has several versions.
    beside: BTreeSet<PackageId>,
    providers: HashMap<String, Rc<[PackageId]>>,
}

impl<'p> Rules<'p> {
    pub(super) fn new(pool: &'p Pool, architectures: &'p Architectures, assume: bool) -> Rules<'p> {
        Rules {
            pool,
            architectures,
            assume,
            rules: Vec::new(),
            reached: vec![false; pool.count()],
            assumed: BTreeMap::new(),
            unlisted: BTreeSet::new(),
            beside: BESIDE.iter().flat_map(|name| pool.named(name)).collect(),
            providers: HashMap::new(),
        }
    }

    /// Adds the clauses of `first`, and of all that they can lead to; with `weak` also over what
    /// they recommend.
    pub(super) fn reach(&mut self, first: impl IntoIterator<Item = PackageId>, weak: bool) {
        let mut queue: Vec<PackageId> = first.into_iter().collect();
        while let Some(id) = queue.pop() {
            if std::mem::replace(&mut self.reached[id.0 as usize], true) {
                continue;
            }
            self.note_files(id);
            self.requires(id, &mut queue);
            self.excludes(id, &mut queue);
            queue.extend(self.lock_step(id));
            if weak {
                for (_, relation) in self.dependencies(id, RpmRelationKind::Recommends) {
                    if !RichDependency::is_rich(relation.name) {
                        queue.extend(self.providers(relation).iter());
                    } else if let Some(formula) = self.formula(&relation) {
                        queue.extend(formula.packages());
                    }
                }
            }
        }
    }

    /// Notes the files that relations of a reached package name and that only a list of all files
    /// can have.
    fn note_files(&mut self, id: PackageId) {
        let pool = self.pool;
        for relation in FILE_RELATIONS
            .into_iter()
            .flat_map(|kind| pool.relations(id, kind))
        {
            self.note_file(&relation);
        }
    }

    /// Notes the files in `relation` that only a list of all files can have.
    pub(super) fn note_file(&mut self, relation: &RpmRelation<'_>) {
        if !relation.name.contains('/') {
            return;
        }
        let Some(rich) = RichDependency::parse_relation(relation) else {
            return;
        };
        rich.each_relation(&mut |one| {
            let is_path = one.name.starts_with('/') && !self.unlisted.contains(one.name);
            if is_path && (!is_in_primary(one.name) || self.pool.named(one.name).is_empty()) {
                self.unlisted.insert(one.name.to_owned());
            }
        });
    }

    /// The relations of a package, numbered.
    fn dependencies(&self, id: PackageId, kind: RpmRelationKind) -> Vec<(u32, RpmRelation<'p>)> {
        (0..).zip(self.pool.relations(id, kind)).collect()
    }

    /// Who provides `relation`, remembered: many packages need the same.
    pub(super) fn providers(&mut self, relation: RpmRelation<'_>) -> Rc<[PackageId]> {
        let key = relation.to_string();
        if let Some(known) = self.providers.get(&key) {
            return known.clone();
        }
        let found: Rc<[PackageId]> = self.pool.providers(relation).into();
        self.providers.insert(key, found.clone());
        found
    }

    /// What a rich dependency means; `None` where it is malformed.
    pub(super) fn formula(&self, relation: &RpmRelation<'_>) -> Option<Formula> {
        RichDependency::parse(relation.name).map(|rich| Formula::of(self.pool, &rich))
    }

    fn requires(&mut self, id: PackageId, queue: &mut Vec<PackageId>) {
        let is_base = self.is_base(id);
        for (number, relation) in self.dependencies(id, RpmRelationKind::Requires) {
            if relation.name.starts_with("rpmlib(") {
                continue;
            }
            let why = RuleOrigin::Dependency(id, RpmRelationKind::Requires, number);
            if RichDependency::is_rich(relation.name) {
                self.requires_rich(id, relation, why, queue);
                continue;
            }
            let providers = self.providers(relation);
            if providers.contains(&id) {
                continue;
            }
            if providers.is_empty() && self.is_elsewhere(relation) {
                if !is_base {
                    self.assumed
                        .entry(id)
                        .or_default()
                        .insert(relation.to_string());
                }
                continue;
            }
            // a base may lack something already
            if is_base && !providers.iter().any(|id| self.is_base(*id)) {
                continue;
            }
            queue.extend(providers.iter().filter(|id| !self.reached[id.0 as usize]));
            let literals =
                std::iter::once(-installed(id)).chain(providers.iter().map(|id| installed(*id)));
            self.rules.push(Rule {
                literals: literals.collect(),
                why,
            });
        }
    }

    /// Whether `relation`, which nobody provides, is taken to be on the machine.
    fn is_elsewhere(&self, relation: RpmRelation<'_>) -> bool {
        self.assume && self.pool.named(relation.name).is_empty()
    }

    fn requires_rich(
        &mut self,
        id: PackageId,
        relation: RpmRelation<'_>,
        why: RuleOrigin,
        queue: &mut Vec<PackageId>,
    ) {
        let Some(rich) = RichDependency::parse(relation.name) else {
            self.rules.push(Rule {
                literals: vec![-installed(id)],
                why,
            });
            return;
        };
        let formula = Formula::of(self.pool, &rich);
        let is_base = self.is_base(id);
        // a dependency with too many combinations is one that cannot hold: the reason names it
        for clause in formula.clauses(true).unwrap_or_else(|| vec![Vec::new()]) {
            if clause.contains(&installed(id)) {
                continue;
            }
            let is_hopeless = !clause.iter().any(|literal| *literal > 0);
            if is_hopeless && (is_base || self.assume && !formula.has_packages()) {
                if !is_base {
                    self.assumed
                        .entry(id)
                        .or_default()
                        .insert(relation.name.to_owned());
                }
                continue;
            }
            let others = clause
                .iter()
                .filter(|literal| **literal > 0)
                .map(|literal| super::formula::package(*literal));
            queue.extend(others.filter(|id| !self.reached[id.0 as usize]));
            let literals = std::iter::once(-installed(id)).chain(clause.iter().copied());
            self.rules.push(Rule {
                literals: literals.collect(),
                why: why.clone(),
            });
        }
    }

    fn excludes(&mut self, id: PackageId, queue: &mut Vec<PackageId>) {
        // what stands beside each other in a base already does no harm
        let is_base = self.is_base(id);
        let does_no_harm = |this: &Rules<'_>, other: PackageId| is_base && this.is_base(other);
        for (number, relation) in self.dependencies(id, RpmRelationKind::Conflicts) {
            let why = || RuleOrigin::Dependency(id, RpmRelationKind::Conflicts, number);
            let clauses = if RichDependency::is_rich(relation.name) {
                self.formula(&relation)
                    .and_then(|formula| formula.clauses(false))
                    .unwrap_or_default()
            } else {
                self.providers(relation)
                    .iter()
                    .map(|other| vec![-installed(*other)])
                    .collect()
            };
            for clause in clauses {
                // RPM lets a package conflict with what it provides itself
                let is_own = clause == [-installed(id)];
                let is_in_base = matches!(clause[..], [only] if only < 0
                    && does_no_harm(self, super::formula::package(only)));
                if is_own || is_in_base {
                    continue;
                }
                // a rich conflict can hold because of what is not installed: then that is needed
                let needed = clause.iter().filter(|literal| **literal > 0);
                queue.extend(needed.map(|literal| super::formula::package(*literal)));
                self.rules.push(Rule {
                    literals: [vec![-installed(id)], clause].concat(),
                    why: why(),
                });
            }
        }
        for (number, relation) in self.dependencies(id, RpmRelationKind::Obsoletes) {
            for other in self.pool.by_name(relation) {
                if other == id || does_no_harm(self, other) {
                    continue;
                }
                let why = RuleOrigin::Dependency(id, RpmRelationKind::Obsoletes, number);
                self.rules.push(Rule {
                    literals: vec![-installed(id), -installed(other)],
                    why,
                });
            }
        }
        let name = RpmRelation::any(self.pool.name(id));
        for other in self.pool.by_name(name) {
            let collide = Architectures::collide(self.pool.arch(id), self.pool.arch(other));
            // a package that was reached earlier has stated the conflict already
            if collide
                && !self.reached[other.0 as usize]
                && !self.stands_beside(id)
                && !does_no_harm(self, other)
            {
                let why = RuleOrigin::SameName(id, other);
                self.rules.push(Rule {
                    literals: vec![-installed(id), -installed(other)],
                    why,
                });
            }
        }
    }

    /// The same package for better architectures: it comes along.
    fn lock_step(&self, id: PackageId) -> Vec<PackageId> {
        let rank = |id| self.architectures.rank(self.pool.arch(id));
        if rank(id).is_none_or(|rank| rank == 0) {
            return Vec::new();
        }
        let mut same = self.pool.by_name(RpmRelation::any(self.pool.name(id)));
        same.retain(|other| rank(*other) < rank(id) && self.pool.compare(*other, id).is_eq());
        same
    }

    /// Whether a package is on the machine already.
    pub(super) fn is_base(&self, id: PackageId) -> bool {
        self.pool.package(id).source.is_none()
    }

    /// Whether other versions of a package may be on a machine with it, as of kernels.
    pub(super) fn stands_beside(&self, id: PackageId) -> bool {
        self.beside.contains(&id)
    }

    /// Packages that are no longer wanted where the same is offered for a better architecture: they
    /// are allowed beside that one, of the same version. Names that are `asked` for are free of
    /// that.
    pub(super) fn prefer_architectures(&mut self, asked: &BTreeSet<&str>) {
        let reached: Vec<PackageId> = self
            .pool
            .ids()
            .filter(|id| self.reached[id.0 as usize])
            .collect();
        for id in reached
            .into_iter()
            .filter(|id| !asked.contains(self.pool.name(*id)))
        {
            let Some(rank) = self
                .architectures
                .rank(self.pool.arch(id))
                .filter(|rank| *rank > 0)
            else {
                continue;
            };
            let mut same = self.pool.by_name(RpmRelation::any(self.pool.name(id)));
            same.retain(|other| self.reached[other.0 as usize]);
            let rank_of = |other: &PackageId| self.architectures.rank(self.pool.arch(*other));
            if self.is_base(id)
                || !same
                    .iter()
                    .any(|other| rank_of(other).is_some_and(|other| other < rank))
            {
                continue;
            }
            let best = same.iter().filter_map(rank_of).min();
            let beside = same.iter().filter(|other| {
                rank_of(other).is_none_or(|own| Some(own) == best)
                    && self.pool.compare(**other, id).is_eq()
            });
            let literals =
                std::iter::once(-installed(id)).chain(beside.map(|other| installed(*other)));
            let rule = Rule {
                literals: literals.collect(),
                why: RuleOrigin::Architecture(id),
            };
            self.rules.push(rule);
        }
    }

    /// Brings the clauses into the order in which dnf's solver looks at them.
    pub(super) fn sort(&mut self) {
        self.rules.sort_by(|a, b| {
            let key = |rule: &Rule| (rule.literals[0], rule.literals.len() > 2);
            key(a)
                .cmp(&key(b))
                .then_with(|| a.literals[1..].cmp(&b.literals[1..]))
        });
    }
}
