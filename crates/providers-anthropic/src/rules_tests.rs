use super::*;

#[test]
fn names_tell_the_series_whoever_serves_it() {
    for (name, line, version) in [
        ("claude-opus-5-5", Line::Opus, (5, 5)),
        ("claude-sonnet-4-5-20250929", Line::Sonnet, (4, 5)),
        ("claude-sonnet-4-20250514", Line::Sonnet, (4, 0)),
        ("claude-sonnet-5", Line::Sonnet, (5, 0)),
        ("claude-3-5-haiku-20241022", Line::Haiku, (3, 5)),
        ("claude-mythos-preview", Line::Mythos, (4, 9)),
        ("anthropic/claude-sonnet-5.5", Line::Sonnet, (5, 5)),
        ("claude-opus-4-1@20250805", Line::Opus, (4, 1)),
        (
            "us.anthropic.claude-opus-4-20250514-v1:0",
            Line::Opus,
            (4, 0),
        ),
    ] {
        assert_eq!(series(name), Some((line, version)), "{name}");
    }
    for unknown in ["claude-next", "claude-opus", "deepseek-v4", "opus-5", ""] {
        assert_eq!(rules(unknown), None, "{unknown}");
    }
}

#[test]
fn no_row_hides_one_below_it() {
    for (at, hidden) in TABLE.iter().enumerate() {
        for above in &TABLE[..at] {
            let same = above.line.is_none() || above.line == hidden.line;
            assert!(!same || above.from > hidden.from, "{hidden:?}");
        }
    }
    let last = TABLE.last().unwrap();
    assert_eq!(
        (last.line, last.from),
        (None, (0, 0)),
        "every name is in it"
    );
}

#[test]
fn generations_differ_in_how_they_think() {
    let adaptive = |least| Some(Thinking::Adaptive { least });
    for (name, expected) in [
        ("claude-3-haiku-20240307", None),
        ("claude-3-7-sonnet-20250219", Some(Thinking::Budget)),
        ("claude-haiku-4-5", Some(Thinking::Budget)),
        ("claude-opus-4-6", adaptive(LeastThinking::Disabled)),
        ("claude-opus-5", adaptive(LeastThinking::Disabled)),
        ("claude-haiku-5-5", adaptive(LeastThinking::Disabled)),
        ("claude-sonnet-5-5", adaptive(LeastThinking::BetweenTools)),
        ("claude-opus-5-5", adaptive(LeastThinking::LowEffort)),
        ("claude-fable-5", adaptive(LeastThinking::LowEffort)),
        ("claude-mythos-preview", adaptive(LeastThinking::LowEffort)),
    ] {
        assert_eq!(rules(name).unwrap().thinking, expected, "{name}");
    }
}

#[test]
fn what_the_newest_models_refuse_is_known() {
    let told = |model| {
        let it = rules(model).unwrap();
        (it.forced_tool_choice, it.sampling)
    };
    for model in [
        "claude-opus-5-5",
        "claude-sonnet-5-5",
        "claude-fable-5-1",
        "claude-fable-5-2",
        "claude-mythos-5-1",
    ] {
        assert_eq!(told(model), (Some(false), Sampling::Refused), "{model}");
    }
    for (model, forced, sampling) in [
        ("claude-haiku-5-5", Some(true), Sampling::Refused),
        ("claude-opus-4-7", Some(true), Sampling::Refused),
        ("claude-sonnet-4-6", Some(true), Sampling::One),
        ("claude-opus-4-1", Some(true), Sampling::One),
        ("claude-sonnet-4-20250514", Some(true), Sampling::Both),
        ("claude-fable-5", None, Sampling::Refused),
    ] {
        assert_eq!(told(model), (forced, sampling), "{model}");
    }
    let prefill = |model| rules(model).unwrap().prefill;
    assert!(prefill("claude-haiku-4-5") && !prefill("claude-opus-4-6"));
    let later = |model| rules(model).unwrap().later_instructions;
    assert!(later("claude-opus-4-8") && later("claude-haiku-5-5"));
    assert!(!later("claude-sonnet-4-6") && !later("claude-mythos-preview"));
}

#[test]
fn efforts_rise_with_the_generations() {
    let most = |model| rules(model).unwrap().efforts.last().copied();
    assert_eq!(most("claude-haiku-4-5"), None);
    assert_eq!(most("claude-opus-4-5"), Some(Effort::High));
    assert_eq!(most("claude-opus-4-6"), Some(Effort::Max));
    assert!(
        !rules("claude-opus-4-6")
            .unwrap()
            .efforts
            .contains(&Effort::XHigh)
    );
    assert!(
        rules("claude-opus-4-7")
            .unwrap()
            .efforts
            .contains(&Effort::XHigh)
    );
    for row in TABLE {
        assert!(row.rules.efforts.is_sorted(), "{row:?}");
    }
}

#[test]
fn newer_models_take_newer_tools() {
    let tools = |model| {
        let it = rules(model).unwrap().server_tools;
        (it.web_search, it.code_execution, it.direct_only)
    };
    for (model, expected) in [
        ("claude-3-5-haiku-20241022", ("20250305", "20250825", false)),
        ("claude-haiku-4-5", ("20250305", "20250825", false)),
        ("claude-sonnet-4-5", ("20250305", "20260120", false)),
        ("claude-opus-4-6", ("20260318", "20260120", false)),
        ("claude-opus-5-5", ("20260318", "20260521", false)),
        ("claude-haiku-5-5", ("20260318", "20260521", true)),
    ] {
        assert_eq!(tools(model), expected, "{model}");
    }
}
