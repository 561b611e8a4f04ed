//! A SAT solver: unit propagation with two watched literals, and clauses learnt from conflicts.
//!
//! It is the textbook algorithm (conflict-driven clause learning, first unique implication point),
//! without heuristics for decisions: [`choose`](super::choose) and [`policy`](super::policy) make
//! them as dnf's solver does.

use super::formula::Literal;

/// The number of a clause.
pub(super) type ClauseId = u32;

/// The clauses and the current assignment.
#[derive(Debug)]
pub(super) struct Sat {
    /// The literals of all clauses. The first two of each clause are watched.
    literals: Vec<Literal>,
    /// The position of the first literal of each clause, and the end of the last clause.
    starts: Vec<u32>,
    /// For each literal, the clauses that watch it.
    watches: Vec<Vec<ClauseId>>,
    /// For each package, the level of its assignment: positive if it is installed, negative if it
    /// is not, 0 if it is unassigned.
    decided: Vec<i32>,
    /// For each package, the clause that forced its assignment; `None` for decisions.
    because: Vec<Option<ClauseId>>,
    /// All assigned literals in the order of their assignment.
    pub(super) trail: Vec<Literal>,
    /// The length of the trail at the beginning of each level above 1.
    level_starts: Vec<usize>,
    /// The number of literals of the trail that have been propagated.
    propagated: usize,
    /// For each learnt clause, the clauses that it was derived from.
    learnt_from: Vec<Vec<ClauseId>>,
    /// The number of the first learnt clause.
    first_learnt: ClauseId,
    /// The number of steps that are left.
    pub(super) steps: u64,
}

/// The reason why the search ended without a solution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SolverStop {
    /// The clauses cannot all hold.
    Contradiction(Contradiction),
    /// The limit of steps was reached.
    OutOfSteps,
}

impl From<Contradiction> for SolverStop {
    fn from(contradiction: Contradiction) -> SolverStop {
        SolverStop::Contradiction(contradiction)
    }
}

/// The clauses cannot all hold. Contains the clause in which the contradiction was detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Contradiction(pub(super) ClauseId);

fn index(literal: Literal) -> usize {
    literal.unsigned_abs() as usize * 2 + usize::from(literal < 0)
}

impl Sat {
    /// Returns a solver for `clauses` over `packages` packages, after unit propagation, and whether
    /// that found a contradiction. Decisions take at most `steps`, because the time to solve
    /// clauses may grow exponentially with their number.
    pub(super) fn new<'c>(
        packages: usize,
        steps: u64,
        clauses: impl Iterator<Item = &'c [Literal]>,
    ) -> (Sat, Result<(), Contradiction>) {
        let mut sat = Sat {
            literals: Vec::new(),
            starts: vec![0],
            watches: vec![Vec::new(); packages * 2 + 2],
            decided: vec![0; packages + 1],
            because: vec![None; packages + 1],
            trail: Vec::new(),
            level_starts: Vec::new(),
            propagated: 0,
            learnt_from: Vec::new(),
            first_learnt: 0,
            steps,
        };
        let mut units = Vec::new();
        for clause in clauses {
            let id = sat.add(clause);
            if clause.len() < 2 {
                units.push(id);
            }
        }
        sat.first_learnt = sat.starts.len() as ClauseId - 1;
        // clauses of one literal need no watches; their literals are assigned here
        for id in units {
            let Some(literal) = sat.clause(id).first().copied() else {
                return (sat, Err(Contradiction(id)));
            };
            match sat.value(literal) {
                value if value < 0 => return (sat, Err(Contradiction(id))),
                0 => sat.set(literal, Some(id)),
                _ => {}
            }
        }
        let outcome = sat.propagate().map_or(Ok(()), |id| Err(Contradiction(id)));
        (sat, outcome)
    }

    fn add(&mut self, clause: &[Literal]) -> ClauseId {
        let id = self.starts.len() as ClauseId - 1;
        self.literals.extend_from_slice(clause);
        self.starts.push(self.literals.len() as u32);
        if let [first, second, ..] = clause {
            self.watches[index(*first)].push(id);
            self.watches[index(*second)].push(id);
        }
        id
    }

    /// Returns the literals of a clause. Propagation changes their order.
    pub(super) fn clause(&self, id: ClauseId) -> &[Literal] {
        &self.literals[self.starts[id as usize] as usize..self.starts[id as usize + 1] as usize]
    }

    /// Returns the current decision level. Level 1 contains the assignments that follow from the
    /// clauses without a decision.
    pub(super) fn level(&self) -> usize {
        self.level_starts.len() + 1
    }

    /// Returns the level at which the literal was assigned: positive if it holds, negative if it
    /// does not, 0 if it is unassigned.
    pub(super) fn value(&self, literal: Literal) -> i32 {
        let decided = self.decided[literal.unsigned_abs() as usize];
        if literal > 0 { decided } else { -decided }
    }

    /// Subtracts `steps` (visited clauses, for example) from the budget, and fails once it is used
    /// up.
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), SolverStop> {
        self.steps = self.steps.saturating_sub(steps as u64);
        if self.steps == 0 {
            Err(SolverStop::OutOfSteps)
        } else {
            Ok(())
        }
    }

    fn set(&mut self, literal: Literal, because: Option<ClauseId>) {
        let level = self.level() as i32;
        self.decided[literal.unsigned_abs() as usize] = if literal > 0 { level } else { -level };
        self.because[literal.unsigned_abs() as usize] = because;
        self.trail.push(literal);
    }

    /// Assigns the unassigned `literal` at a new decision level and propagates it. After a
    /// conflict, adds the learnt clause and backtracks. Fails if the clauses are unsatisfiable, or
    /// the steps are used up.
    pub(super) fn decide(&mut self, literal: Literal) -> Result<(), SolverStop> {
        self.level_starts.push(self.trail.len());
        self.set(literal, None);
        while let Some(conflict) = self.propagate() {
            if self.level() == 1 {
                return Err(Contradiction(conflict).into());
            }
            self.learn(conflict);
            // `learn` allocates one flag per package
            self.spend(self.decided.len())?;
        }
        self.spend(1)
    }

    /// Reverts all assignments above `level`.
    pub(super) fn back_to(&mut self, level: usize) {
        let Some(keep) = self.level_starts.get(level - 1).copied() else {
            return;
        };
        self.level_starts.truncate(level - 1);
        for literal in self.trail.drain(keep..) {
            self.decided[literal.unsigned_abs() as usize] = 0;
            self.because[literal.unsigned_abs() as usize] = None;
        }
        self.propagated = self.propagated.min(keep);
    }

    /// Assigns all literals that follow from the trail. Returns the clause that cannot hold any
    /// more, if there is one.
    fn propagate(&mut self) -> Option<ClauseId> {
        while let Some(literal) = self.trail.get(self.propagated).copied() {
            self.propagated += 1;
            let lost = -literal;
            let mut watching = std::mem::take(&mut self.watches[index(lost)]);
            self.steps = self.steps.saturating_sub(watching.len() as u64);
            let mut kept = 0;
            let mut conflict = None;
            for at in 0..watching.len() {
                let id = watching[at];
                watching[kept] = id;
                kept += 1;
                let start = self.starts[id as usize] as usize;
                let end = self.starts[id as usize + 1] as usize;
                // after a conflict, the other clauses of the list are kept unchanged
                if conflict.is_some() {
                    continue;
                }
                // moves the lost literal to the second position, so that the other watched literal
                // is the first
                if self.literals[start] == lost {
                    self.literals.swap(start, start + 1);
                }
                let first = self.literals[start];
                if self.value(first) > 0 {
                    continue;
                }
                match (start + 2..end).find(|at| self.value(self.literals[*at]) >= 0) {
                    // another literal that may still hold is watched instead
                    Some(other) => {
                        self.literals.swap(start + 1, other);
                        self.watches[index(self.literals[start + 1])].push(id);
                        kept -= 1;
                    }
                    None if self.value(first) < 0 => conflict = Some(id),
                    None => self.set(first, Some(id)),
                }
            }
            watching.truncate(kept);
            self.watches[index(lost)] = watching;
            if conflict.is_some() {
                return conflict;
            }
        }
        None
    }

    /// Learns a clause from `conflict`, backtracks to the level at which it forces a literal, and
    /// assigns that literal.
    fn learn(&mut self, conflict: ClauseId) {
        let level = self.level() as i32;
        let mut seen = vec![false; self.decided.len()];
        let mut learnt = Vec::new();
        let mut from = vec![conflict];
        // the number of seen literals of this level that have not been resolved
        let mut open = 0;
        let mut at = self.trail.len();
        let mut clause = conflict;
        // replaces literals of this level by their reasons, in the reverse order of assignment,
        // until one is left: the first unique implication point
        let forced = loop {
            for position in self.starts[clause as usize]..self.starts[clause as usize + 1] {
                let literal = self.literals[position as usize];
                let package = literal.unsigned_abs() as usize;
                if std::mem::replace(&mut seen[package], true) {
                    continue;
                }
                let decided = self.decided[package].abs();
                if decided == level {
                    open += 1;
                } else {
                    // literals of level 1 never change their value and could be omitted, but their
                    // reasons belong to the explanation
                    learnt.push(literal);
                }
            }
            loop {
                at -= 1;
                if seen[self.trail[at].unsigned_abs() as usize] {
                    break;
                }
            }
            open -= 1;
            let literal = self.trail[at];
            match self.because[literal.unsigned_abs() as usize].filter(|_| open > 0) {
                Some(because) => {
                    from.push(because);
                    clause = because;
                }
                None => break -literal,
            }
        };
        let back = learnt
            .iter()
            .map(|literal| self.value(*literal).abs())
            .max()
            .unwrap_or(1)
            .max(1) as usize;
        // the second watched literal must be of the level that is restored, because it is the next
        // to become unassigned
        if let Some(highest) = learnt
            .iter()
            .position(|literal| self.value(*literal).abs() == back as i32)
        {
            learnt.swap(0, highest);
        }
        learnt.insert(0, forced);
        self.back_to(back);
        let id = self.add(&learnt);
        self.learnt_from.push(from);
        self.set(forced, Some(id));
    }

    /// Returns the given clauses (not the learnt ones) from which `contradiction` follows.
    pub(super) fn core(&self, contradiction: Contradiction) -> Vec<ClauseId> {
        let mut seen_clauses = std::collections::BTreeSet::from([contradiction.0]);
        let mut queue = vec![contradiction.0];
        let mut core = Vec::new();
        while let Some(id) = queue.pop() {
            let mut next: Vec<ClauseId> = Vec::new();
            match id.checked_sub(self.first_learnt) {
                Some(learnt) => next.extend(&self.learnt_from[learnt as usize]),
                None => core.push(id),
            }
            // the clauses that forced literals of clause `id` at level 1
            next.extend(self.clause(id).iter().filter_map(|literal| {
                let package = literal.unsigned_abs() as usize;
                self.because[package].filter(|_| self.decided[package].abs() == 1)
            }));
            queue.extend(next.into_iter().filter(|id| seen_clauses.insert(*id)));
        }
        core.sort_unstable();
        core
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whether some set of installed packages, out of 8, satisfies `clauses`.
    fn can_hold(clauses: &[Vec<Literal>]) -> bool {
        (0_u32..256).any(|set| {
            let holds = |literal: &Literal| {
                (set >> (literal.unsigned_abs() - 1) & 1 == 1) == (*literal > 0)
            };
            clauses.iter().all(|clause| clause.iter().any(holds))
        })
    }

    /// Decides every package; the bits of `wishes` are the packages that are preferred.
    fn solved(clauses: &[Vec<Literal>], wishes: u8) -> Result<Vec<bool>, Vec<ClauseId>> {
        let (mut sat, outcome) = Sat::new(8, u64::MAX, clauses.iter().map(Vec::as_slice));
        let mut outcome = outcome.map_err(SolverStop::from);
        while outcome.is_ok() {
            let Some(open) = (1..=8).find(|package| sat.value(*package) == 0) else {
                break;
            };
            outcome = sat.decide(if wishes >> (open - 1) & 1 == 1 {
                open
            } else {
                -open
            });
        }
        match outcome {
            Ok(()) => Ok((1..=8).map(|package| sat.value(package) > 0).collect()),
            Err(SolverStop::Contradiction(contradiction)) => Err(sat.core(contradiction)),
            Err(SolverStop::OutOfSteps) => unreachable!("there are enough steps"),
        }
    }

    proptest! {
        /// A solution satisfies all clauses. If there is none, no set of installed packages
        /// satisfies the core.
        #[test]
        fn solutions_hold_and_contradictions_are_real(
            clauses in prop::collection::vec(
                prop::collection::btree_set((1..=8_i32, any::<bool>()), 1..4), 1..40,
            ),
            wishes: u8,
        ) {
            let literal = |(package, holds): (Literal, bool)| if holds { package } else { -package };
            let clauses: Vec<Vec<Literal>> =
                clauses.into_iter().map(|clause| clause.into_iter().map(literal).collect()).collect();
            match solved(&clauses, wishes) {
                Ok(installed) => {
                    let holds = |literal: &Literal| installed[literal.unsigned_abs() as usize - 1] == (*literal > 0);
                    prop_assert!(clauses.iter().all(|clause| clause.iter().any(holds)));
                }
                Err(core) => {
                    let core: Vec<Vec<Literal>> = core.iter().map(|id| clauses[*id as usize].clone()).collect();
                    prop_assert!(!can_hold(&core), "{core:?}");
                }
            }
        }
    }
}
