//! Generated scripts of runs: the actions of a model, a person and tools, and the options.

use std::{sync::Arc, time::Duration};

use proptest::{collection::vec, option, prelude::*};
use serde_json::json;
use switchboard_domain::{
    FinishReason, Message, Part, ToolChoice, ToolDefinition, ToolInput, ToolOrigin, ToolUse,
};

use crate::{
    ApprovalPolicy, RunOptions,
    policy::history::HistoryPolicy,
    policy::limits::ToolLimits,
    policy::tool_guard::{GuardCondition, NamedGuardCondition, ToolGuard},
    strategy::{GatherFormat, Strategy as RunStrategy},
    tools::name_pattern::NamePattern,
    tools::results::ResultLimit,
    tools::search::SearchPolicy,
};

/// The actions of a model, a person and tools in one run.
#[derive(Debug, Clone)]
pub(super) struct Script {
    /// The parts of each answer: the kind, the input and the id of each part.
    pub(super) answers: Vec<Vec<(u8, u8, u8)>>,
    pub(super) finish: Vec<u8>,
    /// The result of each model request. 0 is an answer, and other values are errors.
    pub(super) asking: Vec<u8>,
    pub(super) tools: Vec<u8>,
    pub(super) people: Vec<u8>,
    pub(super) seconds: Vec<u8>,
    pub(super) knobs: Knobs,
    /// The number of actions before the run is stopped, and whether the time limit stops it.
    pub(super) stop: Option<(usize, bool)>,
    /// The number of the tool call batch during which the process ends.
    pub(super) crash: Option<u8>,
}

#[derive(Debug, Clone)]
pub(super) struct Knobs {
    pub(super) gathers: bool,
    pub(super) approval: u8,
    pub(super) limit: u8,
    pub(super) many_tools: bool,
    pub(super) small_history: u8,
    pub(super) guarded: bool,
    pub(super) stop_after_denial: bool,
    pub(super) forced: bool,
    pub(super) capabilities: u8,
    pub(super) expires: bool,
}

pub(super) fn knobs() -> impl Strategy<Value = Knobs> {
    (
        (any::<bool>(), 0u8..4, 0u8..10, any::<bool>(), 0u8..3),
        (
            any::<bool>(),
            any::<bool>(),
            any::<bool>(),
            0u8..4,
            any::<bool>(),
        ),
    )
        .prop_map(
            |(
                (gathers, approval, limit, many_tools, small_history),
                (guarded, stop_after_denial, forced, capabilities, expires),
            )| Knobs {
                gathers,
                approval,
                limit,
                many_tools,
                small_history,
                guarded,
                stop_after_denial,
                forced,
                capabilities,
                expires,
            },
        )
}

pub(super) fn scripts() -> impl Strategy<Value = Script> {
    (
        vec(vec((0u8..16, 0u8..7, 0u8..4), 0..5), 1..8),
        vec(0u8..16, 1..6),
        vec(0u8..14, 1..8),
        vec(0u8..9, 1..8),
        vec(0u8..10, 1..6),
        vec(0u8..30, 1..4),
        knobs(),
        option::of((0usize..60, any::<bool>())),
        option::of(0u8..3),
    )
        .prop_map(
            |(answers, finish, asking, tools, people, seconds, knobs, stop, crash)| Script {
                answers,
                finish,
                asking,
                tools,
                people,
                seconds,
                knobs,
                stop,
                crash,
            },
        )
}

pub(super) fn tool(name: &str) -> ToolDefinition {
    let mut tool = ToolDefinition::new(
        name,
        format!("Does {name}."),
        json!({
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
            "additionalProperties": false,
        }),
    );
    tool.annotations.read_only = Some(matches!(name, "look" | "check"));
    tool.sequential = name == "solo";
    tool.origin = Some(ToolOrigin {
        server: "srv".into(),
        tool: name.into(),
    });
    tool
}

pub(super) fn tools(knobs: &Knobs) -> Vec<Arc<ToolDefinition>> {
    let more = if knobs.many_tools { 8 } else { 1 };
    let more = (0..more).map(|n| format!("extra_{n}"));
    ["look", "write", "solo", "check"]
        .map(str::to_owned)
        .into_iter()
        .chain(more)
        .map(|name| Arc::new(tool(&name)))
        .collect()
}

pub(super) fn options(knobs: &Knobs) -> RunOptions {
    let mut options = RunOptions::default();
    if knobs.gathers {
        options.strategy = RunStrategy::GatherFormat(GatherFormat {
            max_thinking_steps: 3,
            review: knobs.forced,
            ..GatherFormat::default()
        });
    }
    options.limits.max_steps = 6;
    match knobs.limit {
        1 => options.limits.max_steps = 2,
        2 => options.limits.max_tool_calls = Some(3),
        3 => options.limits.max_calls_per_response = Some(1),
        4 => {
            let limits = ToolLimits {
                max_calls: Some(2),
                ..ToolLimits::default()
            };
            options.limits.tools.insert(NamePattern::new("*"), limits);
        }
        5 => options.limits.max_output_tokens = Some(3),
        6 => options.limits.max_cost_usd = Some(1.0),
        7 => options.limits.max_wall_time = Some(Duration::from_mins(1)),
        8 => options.limits.max_input_tokens = Some(500),
        _ => {}
    }
    options.approval = match knobs.approval {
        0 => ApprovalPolicy::All,
        1 => ApprovalPolicy::None,
        _ => ApprovalPolicy::Ask,
    }
    .into();
    if knobs.expires {
        options.approval.expire_after = Some(Duration::from_secs(20));
    }
    if knobs.guarded {
        options.guards = vec![ToolGuard {
            tool: "check".into(),
            when: GuardCondition::Word(NamedGuardCondition::Error),
        }];
    }
    options.stop_after_denial = knobs.stop_after_denial;
    if knobs.forced {
        options.tool_choice = ToolChoice::Only(vec!["extra_0".into()]);
    }
    options.results = ResultLimit {
        max_tokens: 200,
        preview_tokens: 50,
    };
    options.search = SearchPolicy {
        above_tools: 7,
        ..SearchPolicy::default()
    };
    if knobs.small_history > 0 {
        options.history = HistoryPolicy {
            max_tokens: Some(500),
            shortened_tokens: 20,
            summarise: knobs.small_history == 2,
            ..HistoryPolicy::default()
        };
    }
    options
}

pub(super) fn conversation() -> Vec<Arc<Message>> {
    [
        Message::system("Be kind."),
        Message::user("First of all: hello."),
        Message::assistant("long ago ".repeat(60)),
        Message::user("And what is n?"),
    ]
    .map(Arc::new)
    .to_vec()
}

pub(super) fn part((what, input, id): (u8, u8, u8)) -> Part {
    let name = match what {
        0 => return Part::text("Words. "),
        1 | 2 => return Part::text("NEED MORE DATA: there is more. "),
        3..=5 => "look",
        6..=8 => "write",
        9 => "solo",
        10 => "check",
        11 => "extra_0",
        12 => "nothing",
        13 => "search_tools",
        14 => "read_tool_result",
        _ => "response_formatter",
    };
    let input = match (what, input) {
        (13, _) => r#"{"query":"extra"}"#,
        (14, _) => r#"{"result_id":"a"}"#,
        (15, 0..=3) => r#"{"conversation":[{"type":"text","content":"The form."}]}"#,
        (_, 0 | 1) => r#"{"n":1}"#,
        (_, 2) => r#"{"n":2}"#,
        (_, 3) => "```json\n{\"n\":\"3\",}\n```",
        (_, 4) => r#"{"n":"no"}"#,
        (_, 5) => r#"{"n":"#,
        _ => r#"{"n":1,"m":2}"#,
    };
    let id = ["a", "b", "", "a_2"][usize::from(id)];
    Part::ToolUse(ToolUse::new(id, name, ToolInput::parse_input(input)))
}

pub(super) fn finish(n: u8) -> FinishReason {
    match n {
        0 => FinishReason::Refusal,
        1 => FinishReason::Length,
        2 | 3 => FinishReason::Paused,
        4 => FinishReason::ContentFilter,
        5 => FinishReason::Other("odd".into()),
        6 => FinishReason::ContextOverflow,
        7 => FinishReason::MalformedToolCall,
        8 => FinishReason::Interrupted,
        9 | 10 => FinishReason::Stop,
        _ => FinishReason::ToolUse,
    }
}
