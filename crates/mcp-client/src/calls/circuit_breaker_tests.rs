use proptest::prelude::*;

use super::*;

const POLICY: Policy = Policy {
    failures: 3,
    pause: Duration::from_secs(10),
    max_pause: Duration::from_mins(1),
};

const fn at(seconds: u64) -> Moment {
    Duration::from_secs(seconds)
}

fn fail(breaker: &mut Breaker, times: u32, now: Moment) {
    for _ in 0..times {
        let admission = breaker.admit(now).unwrap();
        breaker.record(&admission, Outcome::NoAnswer, now);
    }
}

fn rejected(seconds: u64) -> Rejected {
    Rejected {
        retry_after: at(seconds),
    }
}

#[test]
fn it_opens_after_consecutive_failures_and_closes_after_an_answer() {
    let mut breaker = Breaker::new(POLICY);
    fail(&mut breaker, 2, at(0));
    let answered = breaker.admit(at(0)).unwrap();
    breaker.record(&answered, Outcome::Answered, at(0));
    fail(&mut breaker, 2, at(0));
    assert!(breaker.is_closed());
    fail(&mut breaker, 1, at(1));
    assert_eq!(breaker.admit(at(1)).unwrap_err(), rejected(10));
    assert_eq!(breaker.admit(at(10)).unwrap_err(), rejected(1));
    let probe = breaker.admit(at(11)).unwrap();
    // Only one probe is admitted.
    assert_eq!(breaker.admit(at(11)).unwrap_err(), rejected(0));
    breaker.record(&probe, Outcome::Answered, at(12));
    fail(&mut breaker, 2, at(12));
    assert!(breaker.is_closed());
}

#[test]
fn each_failed_probe_doubles_the_pause_up_to_the_maximum() {
    let mut breaker = Breaker::new(POLICY);
    fail(&mut breaker, 3, at(0));
    let mut now = 0;
    for pause in [10, 20, 40, 60, 60] {
        assert_eq!(breaker.check(at(now)), Err(rejected(pause)));
        now += pause;
        fail(&mut breaker, 1, at(now));
    }
}

#[test]
fn a_cancelled_probe_has_no_outcome_and_the_next_call_is_the_probe() {
    let mut breaker = Breaker::new(POLICY);
    fail(&mut breaker, 3, at(0));
    let cancelled = breaker.admit(at(10)).unwrap();
    breaker.record(&cancelled, Outcome::Unknown, at(11));
    fail(&mut breaker, 1, at(11));
    // Only the failed probe doubled the pause.
    assert_eq!(breaker.check(at(11)), Err(rejected(20)));
}

#[test]
fn a_late_outcome_counts_only_if_it_is_an_answer() {
    let mut breaker = Breaker::new(POLICY);
    let late: Vec<Admission> = (0..3).map(|_| breaker.admit(at(0)).unwrap()).collect();
    fail(&mut breaker, 3, at(0));
    let probe = breaker.admit(at(10)).unwrap();
    breaker.record(&late[0], Outcome::NoAnswer, at(10));
    assert_eq!(breaker.check(at(10)), Err(rejected(0)));
    breaker.record(&late[1], Outcome::Answered, at(10));
    assert!(breaker.is_closed());
    // A failure from before the opening does not count.
    breaker.record(&late[2], Outcome::NoAnswer, at(10));
    breaker.record(&probe, Outcome::NoAnswer, at(10));
    // The failure of the probe counts as one.
    fail(&mut breaker, 1, at(10));
    assert!(breaker.is_closed());
    fail(&mut breaker, 1, at(10));
    assert!(!breaker.is_closed());
}

#[test]
fn it_never_opens_without_a_failure_limit() {
    let mut breaker = Breaker::new(Policy {
        failures: 0,
        ..POLICY
    });
    fail(&mut breaker, 1000, at(0));
    assert!(breaker.is_closed());
}

/// One step of a history. `which` selects one of the running calls.
#[derive(Debug, Clone)]
enum Step {
    Call,
    Record { which: usize, outcome: Outcome },
    Wait { seconds: u64 },
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        3 => Just(Outcome::NoAnswer),
        1 => Just(Outcome::Answered),
        1 => Just(Outcome::Unknown),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Call),
        4 => (any::<usize>(), outcomes()).prop_map(|(which, outcome)| Step::Record { which, outcome }),
        1 => (0..100_u64).prop_map(|seconds| Step::Wait { seconds }),
    ];
    prop::collection::vec(step, 0..200)
}

fn policies() -> impl Strategy<Value = Policy> {
    (1..6_u32, 1..30_u64, 30..90_u64).prop_map(|(failures, pause, max_pause)| Policy {
        failures,
        pause: at(pause),
        max_pause: at(max_pause),
    })
}

proptest! {
    #[test]
    fn the_laws_hold_in_every_history(policy in policies(), steps in steps()) {
        let mut breaker = Breaker::new(policy);
        let mut now = at(0);
        let mut running: Vec<Admission> = Vec::new();
        // Consecutive failures since the last answer or opening.
        let mut failures_in_row: u32 = 0;
        for step in steps {
            match step {
                Step::Wait { seconds } => now += at(seconds),
                Step::Call => {
                    let was_closed = breaker.is_closed();
                    let expected = breaker.check(now);
                    let admitted = breaker.admit(now);
                    prop_assert_eq!(expected.is_ok(), admitted.is_ok());
                    match admitted {
                        Ok(admission) => {
                            // A call that an open breaker admits is a probe.
                            prop_assert_eq!(admission.is_probe, !was_closed);
                            running.push(admission);
                        }
                        Err(rejected) => {
                            prop_assert!(!was_closed);
                            prop_assert!(rejected.retry_after <= policy.max_pause);
                        }
                    }
                }
                Step::Record { which, outcome } => {
                    if running.is_empty() {
                        continue;
                    }
                    let admission = running.swap_remove(which % running.len());
                    let (was_closed, generation) = (breaker.is_closed(), breaker.generation);
                    let is_current = admission.generation == generation;
                    breaker.record(&admission, outcome, now);
                    match outcome {
                        Outcome::Answered => {
                            prop_assert!(breaker.is_closed());
                            failures_in_row = 0;
                        }
                        Outcome::NoAnswer if was_closed && is_current => {
                            failures_in_row += 1;
                            prop_assert_eq!(breaker.is_closed(), failures_in_row < policy.failures);
                        }
                        Outcome::NoAnswer | Outcome::Unknown => {
                            prop_assert_eq!(breaker.is_closed(), was_closed);
                        }
                    }
                    if breaker.generation != generation {
                        failures_in_row = 0;
                        // Nothing is admitted before the pause is over.
                        let shortest = policy.pause.min(policy.max_pause);
                        let rejected = breaker.check(now).unwrap_err();
                        prop_assert!(rejected.retry_after >= shortest);
                        prop_assert!(breaker.check(now + rejected.retry_after).is_ok());
                    }
                }
            }
            let probes = running
                .iter()
                .filter(|admission| admission.is_probe && admission.generation == breaker.generation)
                .count();
            if !breaker.is_closed() {
                prop_assert!(probes <= 1);
            }
        }
        // When no call runs, a probe is admitted after the pause, and its answer closes the
        // breaker.
        for admission in running.drain(..) {
            breaker.record(&admission, Outcome::Unknown, now);
        }
        now += policy.max_pause;
        let last = breaker.admit(now);
        prop_assert!(last.is_ok());
        if let Ok(admission) = last {
            breaker.record(&admission, Outcome::Answered, now);
        }
        prop_assert!(breaker.is_closed());
    }
}
