use super::*;

#[test]
fn names_of_every_vendor_are_recognised() {
    for (name, family, version) in [
        ("claude-opus-5-5", ModelFamily::Opus, (5, 5)),
        ("claude-sonnet-4-5-20250929", ModelFamily::Sonnet, (4, 5)),
        ("claude-sonnet-4-20250514", ModelFamily::Sonnet, (4, 0)),
        ("claude-sonnet-5", ModelFamily::Sonnet, (5, 0)),
        ("claude-3-5-haiku-20241022", ModelFamily::Haiku, (3, 5)),
        ("claude-mythos-preview", ModelFamily::Mythos, (4, 9)),
        ("anthropic/claude-sonnet-5.5", ModelFamily::Sonnet, (5, 5)),
        ("claude-opus-4-1@20250805", ModelFamily::Opus, (4, 1)),
        (
            "us.anthropic.claude-opus-4-20250514-v1:0",
            ModelFamily::Opus,
            (4, 0),
        ),
    ] {
        assert_eq!(
            parse_family_and_version(name),
            Some((family, version)),
            "{name}"
        );
    }
    for unknown in ["claude-next", "claude-opus", "deepseek-v4", "opus-5", ""] {
        assert_eq!(find_rules(unknown), None, "{unknown}");
    }
}

#[test]
fn no_row_hides_a_later_row() {
    for (at, hidden) in TABLE.iter().enumerate() {
        for above in &TABLE[..at] {
            let same = above.family.is_none() || above.family == hidden.family;
            assert!(!same || above.since > hidden.since, "{hidden:?}");
        }
    }
    let last = TABLE.last().unwrap();
    let expected = (None, (0, 0));
    assert_eq!((last.family, last.since), expected, "every name is in it");
}

#[test]
fn the_thinking_mode_depends_on_the_generation() {
    let adaptive = |minimum| Some(Thinking::Adaptive { minimum });
    for (name, expected) in [
        ("claude-3-haiku-20240307", None),
        ("claude-3-7-sonnet-20250219", Some(Thinking::Budget)),
        ("claude-haiku-4-5", Some(Thinking::Budget)),
        ("claude-opus-4-6", adaptive(MinimumThinking::Disabled)),
        ("claude-opus-5", adaptive(MinimumThinking::Disabled)),
        ("claude-haiku-5-5", adaptive(MinimumThinking::Disabled)),
        ("claude-sonnet-5-5", adaptive(MinimumThinking::BetweenTools)),
        ("claude-opus-5-5", adaptive(MinimumThinking::LowEffort)),
        ("claude-fable-5", adaptive(MinimumThinking::LowEffort)),
        (
            "claude-mythos-preview",
            adaptive(MinimumThinking::LowEffort),
        ),
    ] {
        assert_eq!(find_rules(name).unwrap().thinking, expected, "{name}");
    }
}

#[test]
fn the_newest_models_refuse_some_features() {
    let told = |model| {
        let it = find_rules(model).unwrap();
        (it.forced_tool_choice, it.sampling)
    };
    for model in [
        "claude-opus-5-5",
        "claude-sonnet-5-5",
        "claude-fable-5-1",
        "claude-fable-5-2",
        "claude-mythos-5-1",
    ] {
        let expected = (Some(false), SamplingSupport::Refused);
        assert_eq!(told(model), expected, "{model}");
    }
    for (model, forced, sampling) in [
        ("claude-haiku-5-5", Some(true), SamplingSupport::Refused),
        ("claude-opus-4-7", Some(true), SamplingSupport::Refused),
        ("claude-sonnet-4-6", Some(true), SamplingSupport::One),
        ("claude-opus-4-1", Some(true), SamplingSupport::One),
        (
            "claude-sonnet-4-20250514",
            Some(true),
            SamplingSupport::Both,
        ),
        ("claude-fable-5", None, SamplingSupport::Refused),
    ] {
        assert_eq!(told(model), (forced, sampling), "{model}");
    }
    let prefill = |model| find_rules(model).unwrap().prefill;
    assert!(prefill("claude-haiku-4-5") && !prefill("claude-opus-4-6"));
    let later = |model| find_rules(model).unwrap().later_instructions;
    assert!(later("claude-opus-4-8") && later("claude-haiku-5-5"));
    assert!(!later("claude-sonnet-4-6") && !later("claude-mythos-preview"));
}

#[test]
fn newer_generations_have_more_efforts() {
    let most = |model| find_rules(model).unwrap().efforts.last().copied();
    assert_eq!(most("claude-haiku-4-5"), None);
    assert_eq!(most("claude-opus-4-5"), Some(Effort::High));
    assert_eq!(most("claude-opus-4-6"), Some(Effort::Max));
    assert!(
        !find_rules("claude-opus-4-6")
            .unwrap()
            .efforts
            .contains(&Effort::XHigh)
    );
    assert!(
        find_rules("claude-opus-4-7")
            .unwrap()
            .efforts
            .contains(&Effort::XHigh)
    );
    for row in TABLE {
        assert!(row.rules.efforts.is_sorted(), "{row:?}");
    }
}

#[test]
fn newer_models_use_the_newer_web_search() {
    for (model, version, direct_only) in [
        ("claude-3-5-haiku-20241022", "20250305", false),
        ("claude-sonnet-4-5", "20250305", false),
        ("claude-opus-4-6", "20260318", false),
        ("claude-haiku-5-5", "20260318", true),
    ] {
        let search = find_rules(model).unwrap().web_search;
        assert_eq!(
            (search.version, search.direct_only),
            (version, direct_only),
            "{model}"
        );
    }
}
