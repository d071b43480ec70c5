use proptest::prelude::*;

use super::*;

const POLICY: Policy = Policy {
    failures: 3,
    pause: Duration::from_secs(10),
    longest: Duration::from_mins(1),
};

const fn at(seconds: u64) -> Moment {
    Duration::from_secs(seconds)
}

fn fail(breaker: &mut Breaker, times: u32, now: Moment) {
    for _ in 0..times {
        let ticket = breaker.admit(now).unwrap();
        breaker.settle(&ticket, Outcome::NoAnswer, now);
    }
}

fn refused(seconds: u64) -> Refused {
    Refused {
        for_another: at(seconds),
    }
}

#[test]
fn it_opens_after_some_failures_in_a_row_and_an_answer_closes_it() {
    let mut breaker = Breaker::new(POLICY);
    fail(&mut breaker, 2, at(0));
    let answered = breaker.admit(at(0)).unwrap();
    breaker.settle(&answered, Outcome::Answered, at(0));
    fail(&mut breaker, 2, at(0));
    assert!(breaker.is_closed());
    fail(&mut breaker, 1, at(1));
    assert_eq!(breaker.admit(at(1)).unwrap_err(), refused(10));
    assert_eq!(breaker.admit(at(10)).unwrap_err(), refused(1));
    let attempt = breaker.admit(at(11)).unwrap();
    // One at a time.
    assert_eq!(breaker.admit(at(11)).unwrap_err(), refused(0));
    breaker.settle(&attempt, Outcome::Answered, at(12));
    fail(&mut breaker, 2, at(12));
    assert!(breaker.is_closed());
}

#[test]
fn each_try_that_fails_makes_the_pause_longer_up_to_the_longest() {
    let mut breaker = Breaker::new(POLICY);
    fail(&mut breaker, 3, at(0));
    let mut now = 0;
    for pause in [10, 20, 40, 60, 60] {
        assert_eq!(breaker.check(at(now)), Err(refused(pause)));
        now += pause;
        fail(&mut breaker, 1, at(now));
    }
}

#[test]
fn a_try_that_was_given_up_says_nothing_and_the_next_call_is_the_try() {
    let mut breaker = Breaker::new(POLICY);
    fail(&mut breaker, 3, at(0));
    let given_up = breaker.admit(at(10)).unwrap();
    breaker.settle(&given_up, Outcome::Unknown, at(11));
    fail(&mut breaker, 1, at(11));
    // The pause grew once, for the one that failed.
    assert_eq!(breaker.check(at(11)), Err(refused(20)));
}

#[test]
fn what_comes_late_counts_only_if_it_is_an_answer() {
    let mut breaker = Breaker::new(POLICY);
    let late: Vec<Ticket> = (0..3).map(|_| breaker.admit(at(0)).unwrap()).collect();
    fail(&mut breaker, 3, at(0));
    let attempt = breaker.admit(at(10)).unwrap();
    breaker.settle(&late[0], Outcome::NoAnswer, at(10));
    assert_eq!(breaker.check(at(10)), Err(refused(0)));
    breaker.settle(&late[1], Outcome::Answered, at(10));
    assert!(breaker.is_closed());
    // Of the time before the opening, and so no first failure of a new row.
    breaker.settle(&late[2], Outcome::NoAnswer, at(10));
    breaker.settle(&attempt, Outcome::NoAnswer, at(10));
    // The try itself is of the new time, and is one.
    fail(&mut breaker, 1, at(10));
    assert!(breaker.is_closed());
    fail(&mut breaker, 1, at(10));
    assert!(!breaker.is_closed());
}

#[test]
fn without_a_number_of_failures_it_never_opens() {
    let mut breaker = Breaker::new(Policy {
        failures: 0,
        ..POLICY
    });
    fail(&mut breaker, 1000, at(0));
    assert!(breaker.is_closed());
}

/// One step of any history. Of the calls under way `which` picks one, if there is any.
#[derive(Debug, Clone)]
enum Step {
    Call,
    Settle { which: usize, outcome: Outcome },
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
        4 => (any::<usize>(), outcomes()).prop_map(|(which, outcome)| Step::Settle { which, outcome }),
        1 => (0..100_u64).prop_map(|seconds| Step::Wait { seconds }),
    ];
    prop::collection::vec(step, 0..200)
}

fn policies() -> impl Strategy<Value = Policy> {
    (1..6_u32, 1..30_u64, 30..90_u64).prop_map(|(failures, pause, longest)| Policy {
        failures,
        pause: at(pause),
        longest: at(longest),
    })
}

proptest! {
    #[test]
    fn in_every_history_the_laws_hold(policy in policies(), steps in steps()) {
        let mut breaker = Breaker::new(policy);
        let mut now = at(0);
        let mut under_way: Vec<Ticket> = Vec::new();
        // Since the last answer or opening, of calls that began after it.
        let mut row: u32 = 0;
        for step in steps {
            match step {
                Step::Wait { seconds } => now += at(seconds),
                Step::Call => {
                    let was_closed = breaker.is_closed();
                    let foreseen = breaker.check(now);
                    let admitted = breaker.admit(now);
                    prop_assert_eq!(foreseen.is_ok(), admitted.is_ok());
                    match admitted {
                        Ok(ticket) => {
                            // A closed one hinders nobody; an open one lets one through, to try.
                            prop_assert_eq!(ticket.is_try, !was_closed);
                            under_way.push(ticket);
                        }
                        Err(refused) => {
                            prop_assert!(!was_closed);
                            prop_assert!(refused.for_another <= policy.longest);
                        }
                    }
                }
                Step::Settle { which, outcome } => {
                    if under_way.is_empty() {
                        continue;
                    }
                    let ticket = under_way.swap_remove(which % under_way.len());
                    let (was_closed, age) = (breaker.is_closed(), breaker.age);
                    let is_news = ticket.age == age;
                    breaker.settle(&ticket, outcome, now);
                    match outcome {
                        Outcome::Answered => {
                            prop_assert!(breaker.is_closed());
                            row = 0;
                        }
                        Outcome::NoAnswer if was_closed && is_news => {
                            row += 1;
                            prop_assert_eq!(breaker.is_closed(), row < policy.failures);
                        }
                        Outcome::NoAnswer | Outcome::Unknown => {
                            prop_assert_eq!(breaker.is_closed(), was_closed);
                        }
                    }
                    if breaker.age != age {
                        row = 0;
                        // It has just opened: nothing is let through before the pause is over.
                        let shortest = policy.pause.min(policy.longest);
                        let refused = breaker.check(now).unwrap_err();
                        prop_assert!(refused.for_another >= shortest);
                        prop_assert!(breaker.check(now + refused.for_another).is_ok());
                    }
                }
            }
            let tries = under_way
                .iter()
                .filter(|ticket| ticket.is_try && ticket.age == breaker.age)
                .count();
            if !breaker.is_closed() {
                prop_assert!(tries <= 1);
            }
        }
        // Whatever happened, once nobody waits any more it can be tried, and an answer closes it.
        for ticket in under_way.drain(..) {
            breaker.settle(&ticket, Outcome::Unknown, now);
        }
        now += policy.longest;
        let last = breaker.admit(now);
        prop_assert!(last.is_ok());
        if let Ok(ticket) = last {
            breaker.settle(&ticket, Outcome::Answered, now);
        }
        prop_assert!(breaker.is_closed());
    }
}
