//! Converts rich dependencies to clauses: lists of literals, at least one of which must hold.

use crate::yum::pool::{PackageId, Pool};
use crate::yum::relation::RichDependency;

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

/// The maximum number of literals that are written for the combinations of one dependency. Without
/// a limit, a short dependency on a capability of many packages could take any memory.
pub(super) const LITERALS: usize = 1 << 20;

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
    /// list always holds, and an empty clause never. Returns `None` if there are too many clauses,
    /// or if their combinations have more than `left` literals. Subtracts these from `left`.
    pub(super) fn clauses(&self, wanted: bool, left: &mut usize) -> Option<Vec<Vec<Literal>>> {
        match (self, wanted) {
            (Formula::Any(all), true) => Some(vec![all.iter().map(|id| installed(*id)).collect()]),
            (Formula::Any(all), false) => {
                Some(all.iter().map(|id| vec![-installed(*id)]).collect())
            }
            (Formula::Not(inner), _) => inner.clauses(!wanted, left),
            // every part must have the wanted value: all clauses together
            (Formula::And(all), true) | (Formula::Or(all), false) => {
                let all: Option<Vec<_>> = all.iter().map(|one| one.clauses(wanted, left)).collect();
                let clauses = all?.concat();
                // if one clause never holds, the others would only make packages look relevant
                if never_holds(&clauses) {
                    return Some(vec![Vec::new()]);
                }
                (clauses.len() <= CLAUSES).then_some(clauses)
            }
            // one part is enough: each combination of one clause per part becomes a clause
            (Formula::Or(all), true) | (Formula::And(all), false) => {
                // parts of one clause are combined last, all at once: one by one, many of them
                // would take quadratic time
                let mut single: Vec<Literal> = Vec::new();
                let mut product: Vec<Vec<Literal>> = vec![Vec::new()];
                for one in all {
                    let clauses = one.clauses(wanted, left)?;
                    // a part that cannot hold adds nothing to the others, not even its packages
                    if never_holds(&clauses) {
                        continue;
                    }
                    if let [only] = &clauses[..] {
                        single.extend(only);
                    } else {
                        product = distributed(&product, &clauses, left)?;
                    }
                }
                distributed(&[single], &product, left)
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
/// there are too many, or if they have more than `left` literals. Subtracts these from `left`.
fn distributed(
    a: &[Vec<Literal>],
    b: &[Vec<Literal>],
    left: &mut usize,
) -> Option<Vec<Vec<Literal>>> {
    let count = a.len().checked_mul(b.len())?;
    if count > CLAUSES {
        return None;
    }
    // a single clause repeats nothing
    if count > 1 {
        let literals = |clauses: &[Vec<Literal>]| clauses.iter().map(Vec::len).sum::<usize>();
        let written = literals(a)
            .saturating_mul(b.len())
            .saturating_add(literals(b).saturating_mul(a.len()));
        *left = left.checked_sub(written)?;
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

    fn clauses(formula: &Formula, wanted: bool) -> Option<Vec<Vec<Literal>>> {
        let mut left = LITERALS;
        formula.clauses(wanted, &mut left)
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
                    let found = clauses(&formula, wanted).unwrap();
                    let holds = found.iter().all(|clause| {
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
        assert!(clauses(&Formula::Or((0..10).map(pair).collect()), true).is_some());
        assert!(clauses(&Formula::Or((0..40).map(pair).collect()), true).is_none());
    }

    #[test]
    fn combinations_with_too_many_literals_are_rejected() {
        let capability = |providers: u32| any(&(0..providers).collect::<Vec<u32>>());
        let either = |providers: u32| {
            let all = (10_000..12_000).map(|number| any(&[number])).collect();
            Formula::Or(vec![capability(providers), Formula::And(all)])
        };
        assert_eq!(clauses(&either(100), true).unwrap().len(), 2_000);
        // each of 2,000 clauses would have 1,001 literals
        assert_eq!(clauses(&either(1_000), true), None);
        // a single clause has any number of literals
        assert_eq!(clauses(&capability(2_000_000), true).unwrap().len(), 1);
        let any_of_all = Formula::Or((0..100_000).map(|number| any(&[number])).collect());
        assert_eq!(clauses(&any_of_all, true).unwrap()[0].len(), 100_000);
    }
}
