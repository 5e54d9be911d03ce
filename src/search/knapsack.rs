//! The multiple-choice knapsack: one candidate for each group, so that the noise is least for its
//! cost.
//!
//! Lagrange's multiplier turns the limit on the cost into a price. For each price every group takes
//! the candidate with the least noise + price · cost by itself. As the price falls from infinity to
//! zero, each group walks along the lower convex hull of its candidates. Sorting the edges of all
//! hulls by their gain for each unit of cost gives all these states in one pass: the curve.
//!
//! Each state of the curve is the exact optimum for its own cost. Between two states the line that
//! joins them is a lower bound on the noise of any choice, since it is the optimum of the problem
//! with fractions. So the distance of a choice from that line bounds what a better one could gain.

/// A candidate of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Cost, not negative.
    pub cost: f64,
    /// Noise, not negative.
    pub noise: f64,
}

/// An edge of a hull: the group takes another candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct HullEdge {
    group: usize,
    to: usize,
    cost: f64,
    gain: f64,
}

/// All choices that are best for some price, from the cheapest to the most accurate.
#[derive(Clone, Debug)]
pub struct Curve {
    candidates: Vec<Vec<Candidate>>,
    start: Vec<usize>,
    steps: Vec<HullEdge>,
}

/// A choice under a limit on the cost.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetChoice {
    /// The candidate of each group.
    pub choice: Vec<usize>,
    /// The sum of the costs.
    pub cost: f64,
    /// The sum of the noises.
    pub noise: f64,
    /// No choice within the limit has less noise than this.
    pub bound: f64,
}

impl Curve {
    /// Computes the curve. Every group must have a candidate.
    pub fn new(candidates: Vec<Vec<Candidate>>) -> Curve {
        let mut start = Vec::with_capacity(candidates.len());
        let mut steps = Vec::new();
        for (group, all) in candidates.iter().enumerate() {
            let hull = hull(all);
            start.push(hull.first().copied().unwrap_or(0));
            steps.extend(hull.windows(2).map(|edge| HullEdge {
                group,
                to: edge[1],
                cost: all[edge[1]].cost - all[edge[0]].cost,
                gain: all[edge[0]].noise - all[edge[1]].noise,
            }));
        }
        // On equal slopes the order of the groups decides. The sort is stable, so the edges of one
        // hull stay in order.
        steps.sort_by(|a, b| (b.gain * a.cost).total_cmp(&(a.gain * b.cost)));
        Curve {
            candidates,
            start,
            steps,
        }
    }

    /// The number of states.
    pub fn len(&self) -> usize {
        self.steps.len() + 1
    }

    /// The choice of a state; 0 is the cheapest.
    pub fn choice(&self, state: usize) -> Vec<usize> {
        let mut choice = self.start.clone();
        for step in &self.steps[..state.min(self.steps.len())] {
            choice[step.group] = step.to;
        }
        choice
    }

    /// Cost and noise of a choice.
    pub fn totals(&self, choice: &[usize]) -> Candidate {
        let chosen = self.candidates.iter().zip(choice).map(|(all, &at)| all[at]);
        let zero = Candidate {
            cost: 0.0,
            noise: 0.0,
        };
        chosen.fold(zero, |sum, one| Candidate {
            cost: sum.cost + one.cost,
            noise: sum.noise + one.noise,
        })
    }

    /// The best choice found within a limit on the cost, with the bound on what any could reach.
    /// `None` if the cheapest choice is beyond the limit.
    pub fn within(&self, limit: f64) -> Option<BudgetChoice> {
        let mut choice = self.start.clone();
        let mut now = self.totals(&choice);
        if now.cost > limit {
            return None;
        }
        let mut bound = None;
        for step in &self.steps {
            if now.cost + step.cost > limit {
                bound = Some(now.noise - step.gain * ((limit - now.cost) / step.cost));
                break;
            }
            choice[step.group] = step.to;
            now = self.totals(&choice);
        }
        let bound = bound.unwrap_or(now.noise).min(now.noise);
        self.fill(&mut choice, limit);
        let now = self.totals(&choice);
        Some(BudgetChoice {
            choice,
            cost: now.cost,
            noise: now.noise,
            bound: bound.max(0.0),
        })
    }

    /// Spends what is left: again and again the change of one group that fits and gains most.
    fn fill(&self, choice: &mut [usize], limit: f64) {
        loop {
            let now = self.totals(choice);
            let mut best: Option<(usize, usize, f64)> = None;
            for (group, all) in self.candidates.iter().enumerate() {
                let held = all[choice[group]];
                for (to, other) in all.iter().enumerate() {
                    let gain = held.noise - other.noise;
                    let fits = now.cost - held.cost + other.cost <= limit;
                    if fits && gain > best.map_or(0.0, |(.., most)| most) {
                        best = Some((group, to, gain));
                    }
                }
            }
            match best {
                Some((group, to, _)) => choice[group] = to,
                None => return,
            }
        }
    }
}

/// The candidates on the lower convex hull, by rising cost and falling noise.
fn hull(all: &[Candidate]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&a, &b| {
        let costs = all[a].cost.total_cmp(&all[b].cost);
        costs.then(all[a].noise.total_cmp(&all[b].noise))
    });
    let mut hull: Vec<usize> = Vec::new();
    for next in order {
        if hull
            .last()
            .is_some_and(|&last| all[next].noise >= all[last].noise)
        {
            continue;
        }
        // The middle one of three goes if it is not below the line between the others.
        while let [.., first, middle] = hull[..] {
            let gains = |from: usize, to: usize| all[from].noise - all[to].noise;
            let costs = |from: usize, to: usize| all[to].cost - all[from].cost;
            if gains(first, middle) * costs(first, next) > gains(first, next) * costs(first, middle)
            {
                break;
            }
            hull.pop();
        }
        hull.push(next);
    }
    hull
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from a fixed sequence, so that every run is the same.
    fn numbers() -> impl FnMut() -> f64 {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % 1000) as f64
        }
    }

    fn random_groups(next: &mut impl FnMut() -> f64, groups: usize) -> Vec<Vec<Candidate>> {
        let mut group = |_| {
            let count = 1 + next() as usize % 4;
            let candidate = |_| Candidate {
                cost: next(),
                noise: next(),
            };
            (0..count).map(candidate).collect()
        };
        (0..groups).map(&mut group).collect()
    }

    /// The least noise of all choices within a limit.
    fn brute_force(groups: &[Vec<Candidate>], limit: f64) -> Option<f64> {
        let Some((first, rest)) = groups.split_first() else {
            return (limit >= 0.0).then_some(0.0);
        };
        let tried = first.iter().filter_map(|candidate| {
            Some(candidate.noise + brute_force(rest, limit - candidate.cost)?)
        });
        tried.min_by(f64::total_cmp)
    }

    #[test]
    fn every_state_of_the_curve_is_the_optimum_for_its_cost() {
        let mut next = numbers();
        for round in 0..60 {
            let groups = random_groups(&mut next, 1 + round % 6);
            let curve = Curve::new(groups.clone());
            let mut last = f64::INFINITY;
            for state in 0..curve.len() {
                let choice = curve.choice(state);
                let totals = curve.totals(&choice);
                assert_eq!(brute_force(&groups, totals.cost), Some(totals.noise));
                assert!(totals.noise < last);
                last = totals.noise;
            }
            let least: f64 = groups
                .iter()
                .map(|all| all.iter().map(|c| c.noise).fold(f64::INFINITY, f64::min))
                .sum();
            assert_eq!(last, least);
        }
    }

    #[test]
    fn a_choice_within_a_limit_is_between_the_bound_and_the_optimum_of_brute_force() {
        let mut next = numbers();
        let (mut exact, mut all) = (0, 0);
        for round in 0..300 {
            let groups = random_groups(&mut next, 1 + round % 6);
            let limit = next() * (1 + round % 6) as f64;
            let best = brute_force(&groups, limit);
            let found = Curve::new(groups).within(limit);
            assert_eq!(found.is_some(), best.is_some());
            let (Some(found), Some(best)) = (found, best) else {
                continue;
            };
            assert!(found.cost <= limit);
            assert!(
                found.noise >= best && found.bound <= best + 1e-9,
                "{found:?} {best}"
            );
            exact += usize::from(found.noise == best);
            all += 1;
        }
        assert!(exact * 10 >= all * 7, "{exact} of {all}");
    }

    #[test]
    fn one_candidate_is_a_curve_of_one_state() {
        let only = Candidate {
            cost: 3.0,
            noise: 2.0,
        };
        let curve = Curve::new(vec![vec![only]]);
        assert_eq!((curve.len(), curve.choice(0)), (1, vec![0]));
        assert_eq!(curve.within(2.0), None);
        assert_eq!(curve.within(3.0).map(|found| found.bound), Some(2.0));
    }
}
