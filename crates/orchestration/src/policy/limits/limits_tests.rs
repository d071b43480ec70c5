use futures_util::FutureExt as _;
use jiff::Timestamp;
use proptest::prelude::*;
use switchboard_domain::{CallRateCounter as _, ModelId, Principal, Usage};

use super::*;
use crate::{RunError, RunErrorKind};

fn at_ms(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(1_800_000_000_000 + ms).unwrap()
}

fn at(second: i64) -> Timestamp {
    at_ms(second * 1000)
}

fn model() -> ModelId {
    ModelId::new("anthropic", "claude")
}

fn used(input: u64, output: u64) -> Usage {
    Usage {
        input_tokens: Some(input),
        output_tokens: Some(output),
        ..Usage::default()
    }
}

fn limits(set: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    set(&mut limits);
    limits
}

const PRICE: Pricing = Pricing {
    input: 3.0,
    output: 15.0,
    cache_read: Some(0.3),
    cache_write: Some(3.75),
    cache_write_long: None,
    server_tool_request: None,
};

impl UsageLedger {
    fn check(&self, limits: &Limits) -> Result<(), RunError> {
        self.check_model_call_limits(limits, &model(), Some(&PRICE), at(0))
    }

    fn used(&mut self, usage: &Usage) {
        self.record_usage(usage, Some(&PRICE), at(0));
    }
}

#[test]
fn the_default_is_16_steps_of_128_calls() {
    let limits = Limits::default();
    let mut ledger = UsageLedger::default();
    for _ in 0..16 {
        assert_eq!(ledger.check(&limits), Ok(()));
        ledger.count_model_call();
        ledger.reset_response_call_count();
        for _ in 0..128 {
            ledger.count_tool_call(&limits, at(0)).unwrap();
        }
        let hit = ledger.count_tool_call(&limits, at(0)).unwrap_err();
        assert_eq!(hit.kind, RunErrorKind::ToolCallLimit);
        ledger.used(&used(1 << 40, 1 << 40));
    }
    let hit = ledger.check(&limits).unwrap_err();
    assert_eq!(hit.kind, RunErrorKind::StepLimit);
    assert_eq!(
        hit.message,
        "the model was called 16 times without a final answer; \
         raise the limit with --max-steps or `max_steps`"
    );
    ledger.uncount_model_call();
    assert_eq!(ledger.check(&limits), Ok(()));
}

#[test]
fn input_output_and_total_tokens_are_limited() {
    let mut ledger = UsageLedger::default();
    ledger.used(&used(100, 20));
    ledger.used(&used(150, 30));
    let hit = |set: fn(&mut Limits)| {
        let error = ledger.check(&limits(set)).err()?;
        assert_eq!(error.kind, RunErrorKind::TokenLimit);
        Some(error.message)
    };
    assert_eq!(
        hit(|limits| limits.max_input_tokens = Some(250)).unwrap(),
        "250 input tokens were used, and 250 are allowed; raise the limit with \
         `limits.max_input_tokens`"
    );
    assert_eq!(hit(|limits| limits.max_input_tokens = Some(251)), None);
    let output = hit(|limits| limits.max_output_tokens = Some(50)).unwrap();
    assert!(output.starts_with("50 output tokens"), "{output}");
    let total = hit(|limits| limits.max_total_tokens = Some(300)).unwrap();
    assert!(total.starts_with("300 input and output tokens"), "{total}");
    assert_eq!(hit(|limits| limits.max_total_tokens = Some(301)), None);
    let both = limits(|limits| {
        limits.max_output_tokens = Some(90);
        limits.max_total_tokens = Some(310);
    });
    assert_eq!(ledger.remaining_output_tokens(&both), Some(10));
    assert_eq!(ledger.remaining_output_tokens(&Limits::default()), None);
}

#[test]
fn the_cost_counts_every_kind_of_token_at_its_price() {
    let usage = Usage {
        input_tokens: Some(1_000_000),
        output_tokens: Some(100_000),
        cache_read_tokens: Some(500_000),
        cache_write_tokens: Some(300_000),
        cache_write_long_tokens: Some(100_000),
        reasoning_tokens: Some(50_000),
        server_tool_requests: Some(3),
    };
    // In million tokens: 0.2 uncached, 0.5 read from the cache, 0.2 written to it, and 0.1 written
    // for a longer time at twice the input price.
    let expected = 0.2 * 3.0 + 0.5 * 0.3 + 0.2 * 3.75 + 0.1 * 6.0 + 0.1 * 15.0;
    let cost = PRICE.compute_cost(&usage);
    assert!((cost.usd - expected).abs() < 1e-9, "{cost:?}");
    assert_eq!(cost.unpriced_requests, 3);

    let with_searches = Pricing {
        server_tool_request: Some(0.01),
        ..PRICE
    };
    let cost = with_searches.compute_cost(&usage);
    assert!((cost.usd - expected - 0.03).abs() < 1e-9, "{cost:?}");
    assert_eq!(cost.unpriced_requests, 0);

    let plain = Pricing::from_price_list(Some(3.0), Some(15.0), None, None).unwrap();
    let cost = plain.compute_cost(&usage);
    let expected = 0.9 * 3.0 + 0.1 * 6.0 + 0.1 * 15.0;
    assert!((cost.usd - expected).abs() < 1e-9, "{cost:?}");
}

#[test]
fn limits_and_prices_that_are_not_numbers_do_not_remove_the_limit() {
    let nan = limits(|limits| limits.max_cost_usd = Some(f64::NAN));
    let hit = UsageLedger::default().check(&nan).unwrap_err();
    assert_eq!(hit.kind, RunErrorKind::CostLimit);
    assert_eq!(Pricing::from_price_list(Some(1.0), None, None, None), None);
    assert_eq!(
        Pricing::from_price_list(Some(-1.0), Some(1.0), None, None),
        None
    );
    assert_eq!(
        Pricing::from_price_list(Some(f64::INFINITY), Some(1.0), None, None),
        None
    );
    let free = Pricing::from_price_list(Some(0.0), Some(0.0), None, None).unwrap();
    assert_eq!(free.compute_cost(&used(5, 5)), AnswerCost::default());
}

#[test]
fn only_periods_of_work_count() {
    let limits = limits(|limits| limits.max_wall_time = Some(Duration::from_secs(10)));
    let check =
        |ledger: &UsageLedger, now| ledger.check_model_call_limits(&limits, &model(), None, now);
    let mut ledger = UsageLedger::default();
    ledger.start_wall_time(at(0));
    assert_eq!(check(&ledger, at(4)), Ok(()));
    let expected = Some(Duration::from_secs(6));
    assert_eq!(ledger.remaining_time(&limits, at(4)), expected);
    // The time that the run waits for a person does not count.
    ledger.stop_wall_time(at(4));
    assert_eq!(check(&ledger, at(86_400)), Ok(()));
    ledger.start_wall_time(at(86_400));
    ledger.count_tool_call(&limits, at(86_402)).unwrap();
    assert_eq!(ledger.elapsed_ms(at(86_402)), 6_000);
    // The time between the end of the process and the restart of the run does not count.
    let stored = serde_json::to_string(&ledger).unwrap();
    let mut ledger: UsageLedger = serde_json::from_str(&stored).unwrap();
    ledger.start_wall_time(at(200_000));
    assert_eq!(ledger.elapsed_ms(at(200_000)), 6_000);
    assert_eq!(check(&ledger, at_ms(200_003_999)), Ok(()));
    let hit = check(&ledger, at(200_004)).unwrap_err();
    assert_eq!(hit.kind, RunErrorKind::TimeLimit);
    assert_eq!(
        hit.message,
        "the run took 10 s, and 10 s are allowed; raise the limit with `limits.max_wall_time`"
    );
    let expected = Some(Duration::ZERO);
    assert_eq!(ledger.remaining_time(&limits, at(300_000)), expected);
    // A clock that is set back does not reduce the elapsed time.
    assert_eq!(ledger.elapsed_ms(at(100_000)), 6_000);
}

proptest! {
    /// Neither a response nor a run exceeds its maximum number of calls, even if the ledger is
    /// stored and restored between calls.
    #[test]
    fn limits_of_calls_hold(
        new_answers in prop::collection::vec(any::<bool>(), 1..60),
        per_response in 1_u32..4, in_all in 1_u32..30,
    ) {
        let limits = limits(|limits| {
            limits.max_tool_calls = Some(in_all);
            limits.max_calls_per_response = Some(per_response);
        });
        let mut ledger = UsageLedger::default();
        let (mut calls_in_response, mut admitted) = (0, 0);
        for new_answer in new_answers {
            if new_answer {
                ledger.reset_response_call_count();
                calls_in_response = 0;
            }
            let text = serde_json::to_string(&ledger).unwrap();
            ledger = serde_json::from_str(&text).unwrap();
            let within = admitted < in_all && calls_in_response < per_response;
            let verdict = ledger.count_tool_call(&limits, at(0));
            prop_assert_eq!(verdict.is_ok(), within, "{:?}", verdict);
            if within {
                admitted += 1;
                calls_in_response += 1;
            }
        }
    }
    /// No minute has more calls than allowed, neither of all tools nor of one tool.
    #[test]
    fn limits_per_minute_hold(
        calls in prop::collection::vec((0_i64..40_000, 0_usize..2), 1..60),
        all_tools in 1_u32..6, this_tool in 1_u32..4,
    ) {
        let limits = CallRateLimits { all_tools: Some(all_tools), this_tool: Some(this_tool) };
        let rates = InMemoryCallRates::default();
        let mut now = 0;
        let mut admitted: Vec<(i64, usize)> = Vec::new();
        for (wait, tool) in calls {
            now += wait;
            let lately = admitted.iter().filter(|(then, _)| now - then < 60_000);
            let same = lately.clone().filter(|(_, other)| *other == tool).count();
            let within = lately.count() < all_tools as usize && same < this_tool as usize;
            let name = ["a", "b"][tool];
            let me = Principal::default();
            let counted = rates.count_call(&me, name, limits, now * 1000).now_or_never();
            let reached = counted.unwrap().unwrap();
            prop_assert_eq!(reached.is_none(), within, "{:?}", reached);
            if within {
                admitted.push((now, tool));
            }
        }
    }
}
