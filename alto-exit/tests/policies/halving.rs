use alto_exit::{Asha, Curve, End, ExitPolicy, Hyperband, Reason, Standing, SuccessiveHalving, Verdict};

use crate::curves::evaluation;

/// Rungs at 0.1, 0.2, 0.4 and 0.8, where half stays.
fn halving() -> SuccessiveHalving {
    SuccessiveHalving { first: 0.1, eta: 2 }
}

/// One loss at each rung that the job has come to.
fn rungs(losses: &[f64]) -> Curve {
    let steps = [10, 20, 40, 80];
    Curve {
        evaluations: steps.iter().zip(losses).map(|(&step, &loss)| evaluation(step, loss)).collect(),
        ..Curve::default()
    }
}

fn stays(policy: &dyn ExitPolicy, cohort: &[Curve]) -> Vec<usize> {
    (0..cohort.len()).filter(|&job| policy.judge(job, cohort) == Verdict::Keep).collect()
}

#[test]
fn the_rungs_are_powers_apart_and_end_before_the_budget() {
    assert_eq!(halving().rungs(0), [0.1, 0.2, 0.4, 0.8]);
    assert_eq!(SuccessiveHalving { first: 0.5, eta: 2 }.rungs(3), [0.5]);
    let thirds = SuccessiveHalving::default().rungs(0);
    assert_eq!(thirds.len(), 3, "{thirds:?}");
    assert_eq!(SuccessiveHalving { first: 0.0, eta: 2 }.rungs(0), [0.0; 0]);
    assert_eq!(SuccessiveHalving { first: 0.1, eta: 1 }.rungs(0), [0.0; 0]);
    assert_eq!(Asha::default().rungs(0), [0.0; 0], "nobody waits");
}

#[test]
fn half_stays_at_the_first_rung_and_the_others_learn_their_place() {
    let cohort = [3.0, 1.0, 4.0, 2.0, 5.0].map(|loss| rungs(&[loss]));
    assert_eq!(stays(&halving(), &cohort), [0, 1, 3], "half of five, rounded up");
    assert_eq!(
        halving().judge(2, &cohort),
        Verdict::Exit(Reason::SuccessiveHalving(Standing {
            step: 10,
            mark: 0.1,
            place: 4,
            of: 5,
            kept: 3,
            loss: 4.0,
            cut: 3.0
        }))
    );
}

#[test]
fn only_survivors_are_ranked_at_the_next_rung() {
    // Jobs 2 and 3 were cut at 0.1 but trained on, and are the best at 0.2.
    let cohort = [&[1.0, 5.0][..], &[2.0, 6.0], &[3.0, 1.0], &[4.0, 1.5]].map(rungs);
    let Verdict::Exit(Reason::SuccessiveHalving(Standing { place, of, kept, cut, .. })) = halving().judge(1, &cohort)
    else {
        panic!("second of two");
    };
    assert_eq!((place, of, kept, cut), (2, 2, 1, 5.0));
    assert_eq!(halving().judge(0, &cohort), Verdict::Keep);
    // Asked anyway, they are ranked with the two survivors: first of three stays, and so does the second.
    assert_eq!(halving().judge(2, &cohort), Verdict::Keep);
}

#[test]
fn a_survivor_that_late_jobs_would_have_pushed_out_is_still_ranked_by_its_loss() {
    let mut cohort = [[1.0, 3.0], [2.0, 2.0]].map(|losses| rungs(&losses)).to_vec();
    cohort.extend([rungs(&[5.0]), rungs(&[6.0])]);
    assert_eq!(stays(&halving(), &cohort), [1], "of two survivors at 0.2");
    cohort.extend([0.25, 0.5, 0.75, 0.875].map(|loss| rungs(&[loss])));
    // By the record of now, the four late ones survive; nobody but the job that is asked about has come to 0.2.
    assert_eq!(halving().judge(0, &cohort), Verdict::Keep);
    assert_eq!(halving().judge(1, &cohort), Verdict::Keep);
}

#[test]
fn it_speaks_only_at_a_rung_and_one_exit_changes_no_other_verdict() {
    let mut cohort = [3.0, 1.0, 4.0, 2.0].map(|loss| rungs(&[loss]));
    assert_eq!(stays(&halving(), &cohort), [1, 3]);
    cohort[2].end = Some(End::Finished);
    cohort[1].evaluations.push(evaluation(11, 99.0));
    assert_eq!(stays(&halving(), &cohort), [1, 3]);
    cohort[0].evaluations.push(evaluation(15, 99.0));
    assert_eq!(stays(&halving(), &cohort), [0, 1, 3], "past the rung, not asked");
}

#[test]
fn losses_that_are_not_finite_rank_last_and_ties_go_by_index() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let cohort = [nan, 9.0, -inf, 9.0, inf, 9.0].map(|loss| rungs(&[loss]));
    assert_eq!(stays(&halving(), &cohort), [1, 3, 5]);
    assert_eq!(stays(&Asha { first: 0.1, eta: 2 }, &cohort), [1, 3, 5]);
    let equal = vec![rungs(&[1.0]); 4];
    assert_eq!(stays(&halving(), &equal), [0, 1]);
    assert_eq!(stays(&Asha { first: 0.1, eta: 2 }, &equal), [0, 1]);
    assert_eq!(stays(&halving(), &[rungs(&[nan])]), [0], "one job");
}

#[test]
fn asha_ranks_against_those_that_came_before() {
    let policy = Asha { first: 0.1, eta: 2 };
    let mut cohort = vec![rungs(&[5.0]), Curve::default(), Curve::default()];
    assert_eq!(policy.judge(0, &cohort), Verdict::Keep, "alone so far");
    cohort[1] = rungs(&[1.0]);
    assert_eq!(policy.judge(1, &cohort), Verdict::Keep);
    cohort[2] = rungs(&[3.0]);
    assert_eq!(policy.judge(2, &cohort), Verdict::Keep, "two of three stay");
    cohort.push(rungs(&[4.0]));
    assert_eq!(
        policy.judge(3, &cohort),
        Verdict::Exit(Reason::Asha(Standing { step: 10, mark: 0.1, place: 3, of: 4, kept: 2, loss: 4.0, cut: 3.0 }))
    );
}

#[test]
fn asha_lets_all_go_on_while_fewer_than_eta_have_come() {
    let policy = Asha { first: 0.1, eta: 3 };
    let cohort = [1.0, 2.0, 3.0].map(|loss| rungs(&[loss]));
    assert_eq!(stays(&policy, &cohort[..2]), [0, 1]);
    assert_eq!(stays(&policy, &cohort), [0]);
}

#[test]
fn asha_judges_an_evaluation_at_every_mark_that_it_is_the_first_past() {
    let policy = Asha { first: 0.1, eta: 2 };
    // At 0.1 all three are known, and the last is third; at 0.2 it is alone.
    let cohort = [rungs(&[1.0]), rungs(&[2.0]), Curve { evaluations: vec![evaluation(25, 3.0)], ..Curve::default() }];
    let Verdict::Exit(Reason::Asha(Standing { mark, step, place, .. })) = policy.judge(2, &cohort) else {
        panic!("third of three")
    };
    assert_eq!((mark, step, place), (0.1, 25, 3));
}

#[test]
fn each_bracket_gets_its_share_of_the_jobs() {
    let policy = Hyperband::default();
    let brackets: Vec<usize> = (0..490).map(|job| policy.bracket(job)).collect();
    for period in brackets.chunks(49) {
        let count = |bracket| period.iter().filter(|&&at| at == bracket).count();
        assert_eq!([0, 1, 2, 3].map(count), [27, 12, 6, 4]);
    }
    // No stretch of jobs is far from its share.
    for jobs in 1..490 {
        let most = brackets[..jobs].iter().filter(|&&at| at == 0).count() as f64;
        assert!((most - jobs as f64 * 27.0 / 49.0).abs() < 2.0, "{most} of {jobs}");
    }
}

#[test]
fn a_bracket_halves_from_its_own_rung_on_and_knows_no_other() {
    let policy = Hyperband { first: 0.25, eta: 2 };
    let of = |bracket: usize| (0..60).filter(move |&job| Hyperband { first: 0.25, eta: 2 }.bracket(job) == bracket);
    let job = |bracket| of(bracket).next().expect("some of sixty");
    assert_eq!(policy.rungs(job(0)), [0.25, 0.5]);
    assert_eq!(policy.rungs(job(1)), [0.5]);
    assert_eq!(policy.rungs(job(2)), [0.0; 0]);

    // Everybody is at 0.5; those in bracket 1 are the worst, and half of them stay all the same.
    let mut cohort = vec![Curve { evaluations: vec![evaluation(50, 1.0)], ..Curve::default() }; 60];
    for (job, loss) in of(1).zip(1_u32..) {
        cohort[job].evaluations[0].loss = 100.0 + f64::from(loss);
    }
    let members: Vec<usize> = of(1).collect();
    let stay: Vec<usize> = stays(&policy, &cohort).into_iter().filter(|job| members.contains(job)).collect();
    assert_eq!(stay, members[..members.len().div_ceil(2)]);
    assert!(of(2).all(|job| policy.judge(job, &cohort) == Verdict::Keep), "they train to the end");
    let last = *members.last().expect("some of sixty");
    let Verdict::Exit(Reason::Hyperband { bracket, standing }) = policy.judge(last, &cohort) else {
        panic!("the last of its bracket")
    };
    assert_eq!((bracket, standing.mark, standing.of), (1, 0.5, members.len()));
}
