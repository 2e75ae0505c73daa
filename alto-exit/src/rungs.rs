//! Who waits where until their peers have come as far.

use crate::policy::ExitPolicy;

/// Every job's rungs, how far it has come, and at which it waits: the part of a trainer's loop that rungs need.
///
/// A trainer parks a job that [`is_at`](Self::is_at) a rung, tells it by [`wait`](Self::wait), and says who has ended by
/// [`end`](Self::end); [`close`](Self::close) then tells who is to be judged.
///
/// ```
/// use alto_exit::{Rungs, Underperforming};
///
/// let policy = Underperforming { mark: 0.1, keep: 0.5 };
/// // Two jobs of 20 and of 40 steps.
/// let mut rungs = Rungs::new(2, &policy, |job, mark| (mark * [20.0, 40.0][job]) as u64)?;
/// rungs.wait(0, 2);
/// assert!(rungs.close().is_none()); // Job 1 is short of the rung.
/// rungs.wait(1, 4);
/// assert_eq!(rungs.close().map(|closing| closing.judged), Some(vec![0, 1]));
/// # Ok::<(), alto_exit::BadRung>(())
/// ```
#[derive(Debug)]
pub struct Rungs {
    seats: Vec<Seat>,
    /// How many jobs wait.
    waiting: usize,
    /// Marks of the rungs that closed: whoever comes to one of them is judged there at once.
    closed: Vec<f64>,
}

#[derive(Debug)]
struct Seat {
    /// Marks with the step that reaches each, ascending.
    rungs: Vec<(f64, u64)>,
    /// Index of the first rung that the job has not reached.
    next: usize,
    /// Marks of the rungs that it waits at, ascending; several where one step reaches several.
    waits: Vec<f64>,
    ended: bool,
    /// Whether the job came when others were under way; then no rung is held open for it.
    late: bool,
}

/// A rung that nobody is short of any more.
#[derive(Debug, Clone, PartialEq)]
pub struct Closing {
    /// Its mark of progress.
    pub mark: f64,
    /// Who waited at it and waits at no other, ascending: they are to be judged now.
    pub judged: Vec<usize>,
    /// Who has this rung, ascending, each with the step that reaches it.
    pub members: Vec<(usize, u64)>,
}

/// A rung at a mark that no progress reaches.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("the policy puts a rung of job {job} at progress {mark}, but marks are from 0 to 1")]
pub struct BadRung {
    /// Index of the job.
    pub job: usize,
    /// The mark.
    pub mark: f64,
}

impl Rungs {
    /// Asks the policy once for every job's marks; `step_at` tells after which step a job reaches a mark.
    ///
    /// # Errors
    /// Names the first mark that is not from 0 to 1.
    pub fn new(jobs: usize, policy: &dyn ExitPolicy, step_at: impl Fn(usize, f64) -> u64) -> Result<Self, BadRung> {
        let seats = (0..jobs).map(|job| Seat::new(job, policy, |mark| step_at(job, mark)));
        Ok(Self { seats: seats.collect::<Result<_, _>>()?, waiting: 0, closed: vec![] })
    }

    /// One more job, whose index is the next. It is late: no rung is held open for it.
    ///
    /// # Errors
    /// As [`new`](Self::new); then nothing is added.
    pub fn add(&mut self, policy: &dyn ExitPolicy, step_at: impl Fn(f64) -> u64) -> Result<(), BadRung> {
        let seat = Seat::new(self.seats.len(), policy, step_at)?;
        self.seats.push(Seat { late: true, ..seat });
        Ok(())
    }

    /// Takes back the job that was added last, before it waited anywhere.
    pub fn remove_last(&mut self) {
        self.seats.pop();
    }

    /// Whether the job has any rung, at which it may wait.
    pub fn has_any(&self, job: usize) -> bool {
        !self.seats[job].rungs.is_empty()
    }

    /// Whether the job has come to a rung that it has not waited at, after this many steps.
    pub fn is_at(&self, job: usize, step: u64) -> bool {
        let seat = &self.seats[job];
        !seat.ended && seat.rungs.get(seat.next).is_some_and(|&(_, at)| at <= step)
    }

    /// The job goes by the rungs that it has come to after this many steps, if all of them are closed.
    pub fn go_by(&mut self, job: usize, step: u64) {
        let seat = &mut self.seats[job];
        let come = seat.rungs[seat.next..].iter().take_while(|&&(_, at)| at <= step);
        let (closed, all) =
            come.fold((0, 0), |(closed, all), (mark, _)| (closed + usize::from(self.closed.contains(mark)), all + 1));
        if closed == all {
            seat.next += all;
        }
    }

    /// The job waits from now on at every rung that it has come to after this many steps and that has not closed.
    ///
    /// It is judged once, when the last of them has closed: its one evaluation there counts at all of them.
    pub fn wait(&mut self, job: usize, step: u64) {
        while self.is_at(job, step) {
            let seat = &mut self.seats[job];
            let mark = seat.rungs[seat.next].0;
            if !self.closed.contains(&mark) {
                self.waiting += usize::from(seat.waits.is_empty());
                seat.waits.push(mark);
            }
            seat.next += 1;
        }
    }

    /// The job has ended: no rung waits for it.
    pub fn end(&mut self, job: usize) {
        let seat = &mut self.seats[job];
        self.waiting -= usize::from(!seat.waits.is_empty());
        seat.waits.clear();
        seat.ended = true;
    }

    /// Closes the lowest rung where someone waits and that no unfinished job is short of, late ones apart.
    ///
    /// There is one whenever all unfinished jobs wait: the lowest of all where someone does. Whoever were short of it
    /// would wait at a lower one.
    pub fn close(&mut self) -> Option<Closing> {
        if self.waiting == 0 {
            return None;
        }
        let mut marks: Vec<f64> = self.seats.iter().flat_map(|seat| seat.waits.iter().copied()).collect();
        marks.sort_by(f64::total_cmp);
        marks.dedup();
        let mark = marks.into_iter().find(|&mark| !self.seats.iter().any(|seat| seat.is_short_of(mark)))?;
        if !self.closed.contains(&mark) {
            self.closed.push(mark);
        }
        let mut closing = Closing { mark, judged: vec![], members: vec![] };
        for (job, seat) in self.seats.iter_mut().enumerate() {
            closing.members.extend(seat.rungs.iter().filter(|rung| rung.0 == mark).map(|rung| (job, rung.1)));
            if seat.waits.contains(&mark) {
                seat.waits.retain(|&waits_at| waits_at != mark);
                if seat.waits.is_empty() {
                    self.waiting -= 1;
                    closing.judged.push(job);
                }
            }
        }
        Some(closing)
    }
}

impl Seat {
    fn new(job: usize, policy: &dyn ExitPolicy, step_at: impl Fn(f64) -> u64) -> Result<Self, BadRung> {
        let mut marks = policy.rungs(job);
        if let Some(&mark) = marks.iter().find(|mark| !(0.0..=1.0).contains(*mark)) {
            return Err(BadRung { job, mark });
        }
        marks.sort_by(f64::total_cmp);
        marks.dedup();
        let rungs = marks.into_iter().map(|mark| (mark, step_at(mark))).collect();
        Ok(Self { rungs, next: 0, waits: vec![], ended: false, late: false })
    }

    fn is_short_of(&self, mark: f64) -> bool {
        !self.ended && !self.late && self.rungs[self.next..].iter().any(|rung| rung.0 == mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Curve;
    use crate::policy::Verdict;

    #[derive(Debug)]
    struct Marks(Vec<Vec<f64>>);

    impl ExitPolicy for Marks {
        fn rungs(&self, job: usize) -> Vec<f64> {
            self.0[job].clone()
        }

        fn judge(&self, _: usize, _: &[Curve]) -> Verdict {
            Verdict::Keep
        }
    }

    /// Jobs of 20 steps.
    fn rungs(marks: Vec<Vec<f64>>) -> Result<Rungs, BadRung> {
        Rungs::new(marks.len(), &Marks(marks), |_, mark| (mark * 20.0).ceil() as u64)
    }

    #[test]
    fn a_rung_closes_when_no_unfinished_job_that_has_it_is_short_of_it() {
        let mut rungs = rungs(vec![vec![0.1], vec![0.1], vec![], vec![0.1]]).unwrap();
        assert!(rungs.is_at(0, 2) && !rungs.is_at(0, 1) && !rungs.is_at(2, 20));
        rungs.wait(0, 2);
        assert_eq!(rungs.close(), None, "jobs 1 and 3 are short of it");
        rungs.wait(3, 2);
        assert_eq!(rungs.close(), None, "job 1 is short of it");
        rungs.end(1);
        let closing = rungs.close().unwrap();
        assert_eq!((closing.mark, closing.judged), (0.1, vec![0, 3]));
        assert_eq!(closing.members, [(0, 2), (1, 2), (3, 2)]);
        assert_eq!(rungs.close(), None);
        assert!(!rungs.is_at(0, 20), "it was judged there");
    }

    #[test]
    fn a_late_job_holds_no_rung_open_and_goes_by_a_closed_one() {
        let mut rungs = rungs(vec![vec![0.1, 0.5], vec![0.1]]).unwrap();
        let policy = Marks(vec![vec![0.1]; 2].into_iter().chain([vec![0.1, 0.5], vec![0.1]]).collect());
        let step_at = |mark: f64| (mark * 20.0).ceil() as u64;
        rungs.add(&policy, step_at).unwrap();
        rungs.add(&policy, step_at).unwrap();
        rungs.wait(0, 2);
        rungs.wait(3, 2);
        assert_eq!(rungs.close(), None, "job 1 is short of it");
        rungs.wait(1, 2);
        assert_eq!(rungs.close().map(|closing| closing.judged), Some(vec![0, 1, 3]), "job 2 is late");
        assert!(rungs.is_at(2, 2), "it is evaluated there");
        rungs.go_by(2, 2);
        assert!(!rungs.is_at(2, 2), "and does not wait");
        rungs.go_by(2, 10);
        assert!(rungs.is_at(2, 10), "the next rung is open");
        rungs.wait(2, 10);
        assert_eq!(rungs.close(), None, "job 0 is short of it");
        rungs.end(0);
        assert_eq!(rungs.close().map(|closing| (closing.mark, closing.judged)), Some((0.5, vec![2])));
    }

    #[test]
    fn jobs_that_wait_at_different_rungs_never_wait_for_one_another() {
        let mut rungs = rungs(vec![vec![0.5, 0.1], vec![0.5]]).unwrap();
        rungs.wait(0, 2);
        rungs.wait(1, 10);
        assert_eq!(rungs.close().map(|closing| (closing.mark, closing.judged)), Some((0.1, vec![0])));
        assert_eq!(rungs.close(), None, "job 0 is short of the higher rung");
        rungs.wait(0, 10);
        assert_eq!(rungs.close().map(|closing| (closing.mark, closing.judged)), Some((0.5, vec![0, 1])));
    }

    #[test]
    fn a_step_that_reaches_several_rungs_is_judged_once_when_the_last_of_them_closes() {
        let mut rungs = rungs(vec![vec![0.08, 0.1], vec![0.08], vec![0.1], vec![0.08]]).unwrap();
        rungs.end(2);
        assert_eq!(rungs.close(), None, "nobody waits");
        rungs.wait(0, 2);
        assert_eq!(rungs.close().map(|closing| (closing.mark, closing.judged)), Some((0.1, vec![])));
        rungs.wait(1, 2);
        assert_eq!(rungs.close(), None, "job 3 is short of the other");
        rungs.end(3);
        assert_eq!(rungs.close().map(|closing| (closing.mark, closing.judged)), Some((0.08, vec![0, 1])));
    }

    #[test]
    fn a_mark_that_no_progress_reaches_is_an_error() {
        for mark in [f64::NAN, -0.1, 1.5] {
            let error = rungs(vec![vec![], vec![0.5, mark]]).unwrap_err();
            assert_eq!((error.job, error.mark.to_bits()), (1, mark.to_bits()));
        }
    }
}
