//! The relations between packages as rules: clauses with the reason why they must hold.
//!
//! Rules are generated for the packages that can be reached from the requested ones, as in dnf's
//! solver, and then sorted into its order: packages from the last of the pool to the first.

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
                        queue.extend(formula.packages());
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

    /// Returns the formula of a rich dependency; `None` if it is malformed.
    pub(super) fn formula(&self, relation: &RpmRelation<'_>) -> Option<Formula> {
        RichDependency::parse(relation.name).map(|rich| Formula::of(self.pool, &rich))
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
        let Some(rich) = RichDependency::parse(relation.name) else {
            // a package with a malformed dependency cannot be installed
            self.push(vec![-installed(id)], why);
            return;
        };
        let formula = Formula::of(self.pool, &rich);
        let is_base = self.is_base(id);
        // a dependency with too many clauses counts as one that cannot hold, so that the package is
        // rejected with a reason that names the dependency
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
    /// Packages with a name in `requested` get no such rule, because a request may name an
    /// architecture.
    pub(super) fn prefer_architectures(&mut self, requested: &BTreeSet<&str>) {
        let pool = self.pool;
        let reached: Vec<PackageId> = pool
            .ids()
            .filter(|id| self.reached[id.0 as usize])
            .collect();
        for id in reached
            .into_iter()
            .filter(|id| !requested.contains(pool.name(*id)))
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

// Converts rich dependencies to clauses: lists of literals, at least one of which must hold.

/// The statement that a package is installed (positive) or is not (negative). The absolute value is
/// the id of the package plus 1, because 0 has no sign.
pub(super) type Literal = i32;

/// Returns the literal that holds if `package` is installed.
pub(super) fn installed(package: PackageId) -> Literal {
    package.0 as i32 + 1
}

/// Returns the package of a literal.
pub(super) fn package(literal: Literal) -> PackageId {
    PackageId(literal.unsigned_abs() - 1)
}

/// A dependency as a boolean formula over installed packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Formula {
    /// At least one of the packages is installed.
    Any(Vec<PackageId>),
    Not(Box<Formula>),
    And(Vec<Formula>),
    Or(Vec<Formula>),
}

/// The maximum number of clauses for one dependency. Without a limit, the number could grow
/// exponentially with the length of the dependency.
const CLAUSES: usize = 4096;

impl Formula {
    /// Returns the formula of `rich` over the packages of `pool`.
    pub(super) fn of(pool: &Pool, rich: &RichDependency<'_>) -> Formula {
        let of = |rich| Formula::of(pool, rich);
        match rich {
            RichDependency::One(_) | RichDependency::With(_) | RichDependency::Without(_) => {
                Formula::Any(matching_packages(pool, rich))
            }
            RichDependency::And(all) => Formula::And(all.iter().map(of).collect()),
            RichDependency::Or(all) => Formula::Or(all.iter().map(of).collect()),
            // (then or not condition) and (otherwise or condition)
            RichDependency::If(both, otherwise) => {
                let [then, condition] = &**both;
                let mut all = vec![Formula::Or(vec![of(then), Formula::not(of(condition))])];
                all.extend(
                    otherwise
                        .iter()
                        .map(|other| Formula::Or(vec![of(other), of(condition)])),
                );
                Formula::And(all)
            }
            // (then and not condition) or (otherwise and condition)
            RichDependency::Unless(both, otherwise) => {
                let [then, condition] = &**both;
                let mut any = vec![Formula::And(vec![of(then), Formula::not(of(condition))])];
                any.extend(
                    otherwise
                        .iter()
                        .map(|other| Formula::And(vec![of(other), of(condition)])),
                );
                Formula::Or(any)
            }
        }
    }

    fn not(formula: Formula) -> Formula {
        Formula::Not(Box::new(formula))
    }

    /// Returns clauses that hold together exactly if the formula has the value `wanted`. An empty
    /// list always holds, and an empty clause never. Returns `None` if there are too many clauses.
    pub(super) fn clauses(&self, wanted: bool) -> Option<Vec<Vec<Literal>>> {
        match (self, wanted) {
            (Formula::Any(all), true) => Some(vec![all.iter().map(|id| installed(*id)).collect()]),
            (Formula::Any(all), false) => {
                Some(all.iter().map(|id| vec![-installed(*id)]).collect())
            }
            (Formula::Not(inner), _) => inner.clauses(!wanted),
            // every part must have the wanted value: all clauses together
            (Formula::And(all), true) | (Formula::Or(all), false) => {
                let all: Option<Vec<_>> = all.iter().map(|one| one.clauses(wanted)).collect();
                let clauses = all?.concat();
                // if one clause never holds, the others would only make packages look relevant
                if never_holds(&clauses) {
                    return Some(vec![Vec::new()]);
                }
                (clauses.len() <= CLAUSES).then_some(clauses)
            }
            // one part is enough: each combination of one clause per part becomes a clause
            (Formula::Or(all), true) | (Formula::And(all), false) => {
                let mut product: Option<Vec<Vec<Literal>>> = None;
                for one in all {
                    let clauses = one.clauses(wanted)?;
                    // a part that cannot hold adds nothing to the others, not even its packages
                    if !never_holds(&clauses) {
                        product = Some(distributed(
                            &product.unwrap_or_else(|| vec![Vec::new()]),
                            &clauses,
                        )?);
                    }
                }
                Some(product.unwrap_or_else(|| vec![Vec::new()]))
            }
        }
    }

    /// Whether the formula holds for the installed packages.
    pub(super) fn holds(&self, is_installed: &dyn Fn(PackageId) -> bool) -> bool {
        match self {
            Formula::Any(all) => all.iter().any(|id| is_installed(*id)),
            Formula::Not(inner) => !inner.holds(is_installed),
            Formula::And(all) => all.iter().all(|one| one.holds(is_installed)),
            Formula::Or(all) => all.iter().any(|one| one.holds(is_installed)),
        }
    }

    /// Like [`holds`](Formula::holds), with a strength for each package: 0 if it is not installed,
    /// more if it is. Returns the greatest strength that makes the formula hold, at least 1; or 0
    /// if it does not hold.
    pub(super) fn strength(&self, strength_of: &dyn Fn(PackageId) -> u8) -> u8 {
        let of = |one: &Formula| one.strength(strength_of);
        match self {
            Formula::Any(all) => all.iter().map(|id| strength_of(*id)).max().unwrap_or(0),
            Formula::Not(inner) => u8::from(of(inner) == 0),
            Formula::And(all) => {
                let strengths = all.iter().map(of).collect::<Vec<_>>();
                if strengths.contains(&0) {
                    0
                } else {
                    strengths.into_iter().max().unwrap_or(1)
                }
            }
            Formula::Or(all) => all.iter().map(of).max().unwrap_or(0),
        }
    }

    pub(super) fn packages(&self) -> Vec<PackageId> {
        match self {
            Formula::Any(all) => all.clone(),
            Formula::Not(inner) => inner.packages(),
            Formula::And(all) | Formula::Or(all) => {
                all.iter().flat_map(Formula::packages).collect()
            }
        }
    }

    /// Whether any package can affect the formula.
    pub(super) fn has_packages(&self) -> bool {
        !self.packages().is_empty()
    }
}

/// Whether one of `clauses` is empty, so that they never hold together.
fn never_holds(clauses: &[Vec<Literal>]) -> bool {
    clauses.iter().any(Vec::is_empty)
}

/// Returns clauses that hold if those of `a` or those of `b` hold: their product. Returns `None` if
/// there are too many.
fn distributed(a: &[Vec<Literal>], b: &[Vec<Literal>]) -> Option<Vec<Vec<Literal>>> {
    if a.len().checked_mul(b.len())? > CLAUSES {
        return None;
    }
    let pairs = a
        .iter()
        .flat_map(|one| b.iter().map(move |other| [one.as_slice(), other].concat()));
    Some(
        pairs
            .map(|mut clause: Vec<Literal>| {
                clause.sort_unstable();
                clause.dedup();
                clause
            })
            // a clause with a literal and its opposite always holds
            .filter(|clause| !clause.iter().any(|one| clause.binary_search(&-one).is_ok()))
            .collect(),
    )
}

/// Returns the packages that satisfy `rich` on their own.
fn matching_packages(pool: &Pool, rich: &RichDependency<'_>) -> Vec<PackageId> {
    match rich {
        RichDependency::One(relation) => pool.providers(*relation),
        RichDependency::With(all) => {
            let mut sets = all.iter().map(|one| matching_packages(pool, one));
            let first = sets.next().unwrap_or_default();
            sets.fold(first, |mut all, other| {
                all.retain(|id| other.binary_search(id).is_ok());
                all
            })
        }
        RichDependency::Without(both) => {
            let [mut first, second] = [&both[0], &both[1]].map(|one| matching_packages(pool, one));
            first.retain(|id| second.binary_search(id).is_err());
            first
        }
        RichDependency::Or(all) => {
            let mut any: Vec<PackageId> = all
                .iter()
                .flat_map(|one| matching_packages(pool, one))
                .collect();
            any.sort_unstable();
            any.dedup();
            any
        }
        // the other operators do not apply to a single package
        RichDependency::And(_) | RichDependency::If(..) | RichDependency::Unless(..) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any(numbers: &[u32]) -> Formula {
        Formula::Any(numbers.iter().map(|number| PackageId(*number)).collect())
    }

    /// For every set of installed packages, the clauses of a formula hold exactly if the formula
    /// has the wanted value.
    #[test]
    fn clauses_are_equivalent_to_the_formula() {
        let not = |formula| Formula::Not(Box::new(formula));
        let formulas = [
            any(&[]),
            any(&[0, 1]),
            not(any(&[0, 1])),
            Formula::And(vec![any(&[0]), any(&[1, 2])]),
            Formula::Or(vec![Formula::And(vec![any(&[0]), any(&[1])]), any(&[2])]),
            Formula::And(vec![
                Formula::Or(vec![any(&[0, 3]), not(any(&[1, 2]))]),
                Formula::Or(vec![any(&[2]), any(&[1])]),
            ]),
            Formula::Or(vec![
                Formula::And(vec![any(&[0]), not(any(&[1]))]),
                Formula::And(vec![any(&[3]), any(&[1])]),
            ]),
            Formula::Or(vec![any(&[0]), not(any(&[0]))]),
            Formula::Or(vec![any(&[0]), Formula::And(vec![any(&[]), any(&[1])])]),
            Formula::And(vec![any(&[0]), any(&[])]),
            not(Formula::Or(vec![any(&[0]), not(any(&[]))])),
        ];
        for formula in formulas {
            for installed_set in 0_u32..16 {
                let is_installed = |id: PackageId| installed_set >> id.0 & 1 == 1;
                for wanted in [true, false] {
                    let clauses = formula.clauses(wanted).unwrap();
                    let holds = clauses.iter().all(|clause| {
                        clause
                            .iter()
                            .any(|literal| is_installed(package(*literal)) == (*literal > 0))
                    });
                    assert_eq!(
                        holds,
                        formula.holds(&is_installed) == wanted,
                        "{formula:?} {installed_set:b}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_dependency_with_too_many_clauses_is_rejected() {
        let pair = |n: u32| Formula::And(vec![any(&[2 * n]), any(&[2 * n + 1])]);
        assert!(
            Formula::Or((0..10).map(pair).collect())
                .clauses(true)
                .is_some()
        );
        assert!(
            Formula::Or((0..40).map(pair).collect())
                .clauses(true)
                .is_none()
        );
    }
}
