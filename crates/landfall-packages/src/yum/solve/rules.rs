//! The relations between packages as rules: clauses with the reason why they must hold.
//!
//! Rules are generated for the packages that can be reached from the requested ones, as in dnf's
//! solver, and then sorted into its order: packages from the last of the pool to the first.

use super::formula::{Formula, LITERALS, Literal, installed, package};
use crate::yum::pool::{PackageId, Pool, RpmRelationKind};
use crate::yum::primary::{FILE_RELATIONS, is_in_primary};
use crate::yum::relation::{RichDependency, RpmRelation};
use crate::yum::version::Architectures;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// The names and capabilities of packages that dnf installs in several versions (`installonlypkgs`
/// of dnf.conf(5)).
const MULTIVERSION: [&str; 6] = [
    "kernel",
    "kernel-PAE",
    "installonlypkg(kernel)",
    "installonlypkg(kernel-module)",
    "installonlypkg(vm)",
    "multiversion(kernel)",
];

/// The steps that a rule and each of its literals cost, because they take memory. With the default
/// limit, 100,000 versions of one package took 1 GiB and 5 s until the steps were used up.
const RULE_STEPS: usize = 128;

const LITERAL_STEPS: usize = 12;

/// How many bytes of a rich dependency are read in one step.
const BYTES_PER_STEP: usize = 16;

/// The maximum number of packages in the formula of one rich dependency. Without a limit, a
/// dependency that repeats a capability of many packages could take any memory.
const FORMULA_PACKAGES: usize = 1 << 20;

/// The reason why a clause must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RuleOrigin {
    /// A package must satisfy this request.
    Requested(String),
    /// The package has this relation: the kind, and the position among the relations of the kind.
    Dependency(PackageId, RpmRelationKind, u32),
    /// The two packages have the same name.
    SameName(PackageId, PackageId),
    /// The package is for an architecture that is not preferred.
    Architecture(PackageId),
    /// The package is in the base, and must be kept or replaced.
    Kept(PackageId),
}

/// A clause with its reason.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) literals: Vec<Literal>,
    pub(super) why: RuleOrigin,
}

/// The rules of all packages that can be reached.
#[derive(Debug)]
pub(super) struct Rules<'p> {
    pub(super) pool: &'p Pool,
    pub(super) architectures: &'p Architectures,
    /// Whether dependencies that no source offers are assumed to be installed.
    assume: bool,
    pub(super) rules: Vec<Rule>,
    /// For each package, whether it can be reached.
    pub(super) reached: Vec<bool>,
    /// The dependencies that are assumed to be installed, by the package that requires them.
    pub(super) assumed: BTreeMap<PackageId, BTreeSet<String>>,
    /// The paths in relations that may be found only in a list of all files.
    pub(super) unlisted: BTreeSet<String>,
    /// The packages that can be installed in several versions.
    multiversion: BTreeSet<PackageId>,
    /// A cache of the packages that provide a relation.
    providers: HashMap<String, Rc<[PackageId]>>,
    /// The number of steps that are left for rules and for the policy. Without a limit, an index
    /// with many versions of one package would take quadratic time and memory.
    steps: u64,
}

impl<'p> Rules<'p> {
    /// Returns the empty list of rules for `pool`. Rules and the policy take at most `steps`.
    pub(super) fn new(
        pool: &'p Pool,
        architectures: &'p Architectures,
        assume: bool,
        steps: u64,
    ) -> Rules<'p> {
        Rules {
            pool,
            architectures,
            assume,
            rules: Vec::new(),
            reached: vec![false; pool.count()],
            assumed: BTreeMap::new(),
            unlisted: BTreeSet::new(),
            multiversion: MULTIVERSION
                .iter()
                .flat_map(|name| pool.named(name))
                .collect(),
            providers: HashMap::new(),
            steps,
        }
    }

    /// Subtracts `steps` from the budget.
    pub(super) fn spend(&mut self, steps: usize) {
        self.steps = self.steps.saturating_sub(steps as u64);
    }

    /// Whether the budget of steps is used up. The rules are incomplete then.
    pub(super) fn is_out_of_steps(&self) -> bool {
        self.steps == 0
    }

    fn push(&mut self, literals: Vec<Literal>, why: RuleOrigin) {
        self.spend(RULE_STEPS + LITERAL_STEPS * literals.len());
        if !self.is_out_of_steps() {
            self.rules.push(Rule { literals, why });
        }
    }

    /// Adds the rules of `first` and of all packages that can be installed because of them; if
    /// `weak` is set, also because of their recommendations. Ends early if the steps are used up.
    pub(super) fn reach(&mut self, first: impl IntoIterator<Item = PackageId>, weak: bool) {
        let mut queue: Vec<PackageId> = first.into_iter().collect();
        while let Some(id) = queue.pop()
            && !self.is_out_of_steps()
        {
            if std::mem::replace(&mut self.reached[id.0 as usize], true) {
                continue;
            }
            self.note_files(id);
            self.requires(id, &mut queue);
            self.excludes(id, &mut queue);
            let same = self.lock_step(id);
            queue.extend(same);
            if weak {
                for (_, relation) in self.dependencies(id, RpmRelationKind::Recommends) {
                    if !RichDependency::is_rich(relation.name) {
                        let providers = self.providers(relation);
                        self.spend(LITERAL_STEPS * providers.len());
                        queue.extend(providers.iter());
                    } else if let Some(formula) = self.formula(&relation) {
                        let packages = formula.packages();
                        self.spend(LITERAL_STEPS * packages.len());
                        queue.extend(packages);
                    }
                }
            }
        }
    }

    /// Collects the paths in the package's relations that may be found only in a list of all files.
    fn note_files(&mut self, id: PackageId) {
        let pool = self.pool;
        for relation in FILE_RELATIONS
            .into_iter()
            .flat_map(|kind| pool.relations(id, kind))
        {
            self.note_file(&relation);
        }
    }

    /// Collects the paths in `relation` that may be found only in a list of all files.
    pub(super) fn note_file(&mut self, relation: &RpmRelation<'_>) {
        if !relation.name.contains('/') {
            return;
        }
        let Some(rich) = RichDependency::parse_relation(relation) else {
            return;
        };
        rich.each_relation(&mut |one| {
            let is_new_path = one.name.starts_with('/') && !self.unlisted.contains(one.name);
            // a path that primary omits counts even if a package provides it as a capability:
            // another package may contain it as a file
            if is_new_path && (!is_in_primary(one.name) || self.pool.named(one.name).is_empty()) {
                self.unlisted.insert(one.name.to_owned());
            }
        });
    }

    /// Returns the relations of a package with their positions.
    fn dependencies(&self, id: PackageId, kind: RpmRelationKind) -> Vec<(u32, RpmRelation<'p>)> {
        (0..).zip(self.pool.relations(id, kind)).collect()
    }

    /// Returns the packages that provide `relation`; none if the steps are used up. The result is
    /// cached, because many packages have the same dependencies.
    pub(super) fn providers(&mut self, relation: RpmRelation<'_>) -> Rc<[PackageId]> {
        if self.is_out_of_steps() {
            return Rc::default();
        }
        let key = relation.to_string();
        if let Some(known) = self.providers.get(&key) {
            return known.clone();
        }
        let found: Rc<[PackageId]> = self.pool.providers(relation).into();
        self.spend(self.pool.provided_count(relation.name) + LITERAL_STEPS * found.len());
        self.providers.insert(key, found.clone());
        found
    }

    /// Like [`Pool::by_name`], but spends a step for each visited package.
    fn by_name(&mut self, relation: RpmRelation<'_>) -> Vec<PackageId> {
        self.spend(self.pool.provided_count(relation.name));
        if self.is_out_of_steps() {
            return Vec::new();
        }
        self.pool.by_name(relation)
    }

    /// Returns the formula of a rich dependency; `None` if it is malformed, if too many packages
    /// provide its names, or if the steps are used up.
    pub(super) fn formula(&mut self, relation: &RpmRelation<'_>) -> Option<Formula> {
        let rich = RichDependency::parse(relation.name)?;
        let pool = self.pool;
        // a name may be repeated: each time, the formula contains all packages that provide it
        let mut packages = 0;
        rich.each_relation(&mut |one| packages += pool.provided_count(one.name));
        self.spend(packages + relation.name.len() / BYTES_PER_STEP);
        let is_possible = packages <= FORMULA_PACKAGES && !self.is_out_of_steps();
        is_possible.then(|| Formula::of(pool, &rich))
    }

    /// Returns the clauses of `formula`, as [`Formula::clauses`] does.
    fn clauses_of(&mut self, formula: &Formula, wanted: bool) -> Option<Vec<Vec<Literal>>> {
        let mut left = LITERALS;
        let clauses = formula.clauses(wanted, &mut left);
        self.spend(LITERALS - left);
        clauses
    }

    /// Returns the clauses of a rich dependency, as [`Formula::clauses`] does; `None` also if it
    /// is malformed, or if the steps are used up.
    pub(super) fn clauses(
        &mut self,
        relation: &RpmRelation<'_>,
        wanted: bool,
    ) -> Option<Vec<Vec<Literal>>> {
        let formula = self.formula(relation)?;
        self.clauses_of(&formula, wanted)
    }

    /// Adds the rules for `Requires`, and queues the providers.
    fn requires(&mut self, id: PackageId, queue: &mut Vec<PackageId>) {
        let is_base = self.is_base(id);
        for (number, relation) in self.dependencies(id, RpmRelationKind::Requires) {
            // features of rpm itself, which no package provides
            if relation.name.starts_with("rpmlib(") {
                continue;
            }
            let why = RuleOrigin::Dependency(id, RpmRelationKind::Requires, number);
            if RichDependency::is_rich(relation.name) {
                self.requires_rich(id, relation, why, queue);
                continue;
            }
            let providers = self.providers(relation);
            // the package satisfies its own requirement
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
            // the base may have unmet dependencies already; they must not make every selection fail
            if is_base && !providers.iter().any(|id| self.is_base(*id)) {
                continue;
            }
            queue.extend(providers.iter().filter(|id| !self.reached[id.0 as usize]));
            let literals =
                std::iter::once(-installed(id)).chain(providers.iter().map(|id| installed(*id)));
            self.push(literals.collect(), why);
        }
    }

    /// Whether `relation`, which no package provides, is assumed to be installed. A relation is not
    /// assumed if a package provides its name in another version.
    fn is_elsewhere(&self, relation: RpmRelation<'_>) -> bool {
        self.assume && self.pool.named(relation.name).is_empty()
    }

    /// Adds the rules for a rich dependency in `Requires`.
    fn requires_rich(
        &mut self,
        id: PackageId,
        relation: RpmRelation<'_>,
        why: RuleOrigin,
        queue: &mut Vec<PackageId>,
    ) {
        let Some(formula) = self.formula(&relation) else {
            // a package with a malformed or too large dependency cannot be installed
            self.push(vec![-installed(id)], why);
            return;
        };
        let is_base = self.is_base(id);
        let has_packages = formula.has_packages();
        let clauses = self.clauses_of(&formula, true);
        // a dependency with too many clauses counts as one that cannot hold, so that the package is
        // rejected with a reason that names the dependency
        for clause in clauses.unwrap_or_else(|| vec![Vec::new()]) {
            if clause.contains(&installed(id)) {
                continue;
            }
            let is_hopeless = !clause.iter().any(|literal| *literal > 0);
            if is_hopeless && (is_base || self.assume && !has_packages) {
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
                .map(|literal| package(*literal));
            queue.extend(others.filter(|id| !self.reached[id.0 as usize]));
            let literals = std::iter::once(-installed(id)).chain(clause.iter().copied());
            self.push(literals.collect(), why.clone());
        }
    }

    /// Adds the rules for `Conflicts` and `Obsoletes`, and for packages of the same name. Two
    /// packages of the base never exclude each other, because they are installed together already.
    fn excludes(&mut self, id: PackageId, queue: &mut Vec<PackageId>) {
        for (number, relation) in self.dependencies(id, RpmRelationKind::Conflicts) {
            let clauses = if RichDependency::is_rich(relation.name) {
                self.clauses(&relation, false).unwrap_or_default()
            } else {
                self.providers(relation)
                    .iter()
                    .map(|other| vec![-installed(*other)])
                    .collect()
            };
            for clause in clauses {
                // RPM allows a package to conflict with a capability that it provides itself
                let is_own = clause == [-installed(id)];
                let is_in_base = matches!(clause[..], [only] if only < 0
                    && self.are_both_base(id, package(only)));
                if is_own || is_in_base {
                    continue;
                }
                // a rich conflict may hold because a package is absent, and is then avoided by
                // installing that package
                let needed = clause.iter().filter(|literal| **literal > 0);
                queue.extend(needed.map(|literal| package(*literal)));
                let why = RuleOrigin::Dependency(id, RpmRelationKind::Conflicts, number);
                self.push([vec![-installed(id)], clause].concat(), why);
            }
        }
        for (number, relation) in self.dependencies(id, RpmRelationKind::Obsoletes) {
            for other in self.by_name(relation) {
                if other == id || self.are_both_base(id, other) {
                    continue;
                }
                let why = RuleOrigin::Dependency(id, RpmRelationKind::Obsoletes, number);
                self.push(vec![-installed(id), -installed(other)], why);
            }
        }
        let name = RpmRelation::any(self.pool.name(id));
        for other in self.by_name(name) {
            let collide = Architectures::collide(self.pool.arch(id), self.pool.arch(other));
            // if the other package was reached earlier, the rule exists already
            if collide
                && !self.reached[other.0 as usize]
                && !self.is_multiversion(id)
                && !self.are_both_base(id, other)
            {
                let why = RuleOrigin::SameName(id, other);
                self.push(vec![-installed(id), -installed(other)], why);
            }
        }
    }

    /// Returns the packages of the same name and version for better architectures. They become
    /// candidates too.
    fn lock_step(&mut self, id: PackageId) -> Vec<PackageId> {
        let rank = self.arch_rank(id);
        if rank.is_none_or(|rank| rank == 0) {
            return Vec::new();
        }
        let mut same = self.by_name(RpmRelation::any(self.pool.name(id)));
        same.retain(|other| self.arch_rank(*other) < rank && self.pool.compare(*other, id).is_eq());
        same
    }

    /// Returns the rank of a package's architecture, 0 for the preferred one; `None` for `noarch`.
    pub(super) fn arch_rank(&self, id: PackageId) -> Option<usize> {
        self.architectures.rank(self.pool.arch(id))
    }

    /// Whether a package is installed on the machine.
    pub(super) fn is_base(&self, id: PackageId) -> bool {
        self.pool.package(id).source.is_none()
    }

    fn are_both_base(&self, id: PackageId, other: PackageId) -> bool {
        self.is_base(id) && self.is_base(other)
    }

    /// Whether several versions of a package can be installed together, as for kernels.
    pub(super) fn is_multiversion(&self, id: PackageId) -> bool {
        self.multiversion.contains(&id)
    }

    /// Adds rules against packages that are also available for a better architecture: such a
    /// package may only be installed together with the same version for the better architecture.
    /// Packages with a name and an architecture in `requested` get no such rule.
    pub(super) fn prefer_architectures(&mut self, requested: &BTreeSet<(&str, &str)>) {
        let pool = self.pool;
        let reached: Vec<PackageId> = pool
            .ids()
            .filter(|id| self.reached[id.0 as usize])
            .collect();
        for id in reached
            .into_iter()
            .filter(|id| !requested.contains(&(pool.name(*id), pool.arch(*id))))
        {
            let Some(rank) = self.arch_rank(id).filter(|rank| *rank > 0) else {
                continue;
            };
            let mut same = self.by_name(RpmRelation::any(pool.name(id)));
            same.retain(|other| self.reached[other.0 as usize]);
            let best = same.iter().filter_map(|other| self.arch_rank(*other)).min();
            if self.is_base(id) || best.is_none_or(|best| best >= rank) {
                continue;
            }
            // for example, a 32-bit library together with the 64-bit one of the same version
            let together = same.iter().filter(|other| {
                self.arch_rank(**other).is_none_or(|own| Some(own) == best)
                    && pool.compare(**other, id).is_eq()
            });
            let literals =
                std::iter::once(-installed(id)).chain(together.map(|other| installed(*other)));
            let literals = literals.collect();
            self.push(literals, RuleOrigin::Architecture(id));
        }
    }

    /// Sorts the rules into the order in which dnf's solver visits them, which affects the
    /// selection.
    pub(super) fn sort(&mut self) {
        self.rules.sort_by(|a, b| {
            sort_key(a)
                .cmp(&sort_key(b))
                .then_with(|| a.literals[1..].cmp(&b.literals[1..]))
        });
    }
}

/// The sort key of a rule: packages with higher ids come first; for each package, the rules of at
/// most two literals come first.
fn sort_key(rule: &Rule) -> (Literal, bool) {
    (rule.literals[0], rule.literals.len() > 2)
}
