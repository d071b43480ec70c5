use proptest::prelude::*;
use serde_json::json;
use switchboard_domain::{
    ChatRequest, Media, Message, ModelId, Opaque, Part, ProviderState, Reasoning, Role as Speaker,
    ToolDefinition, ToolInput, ToolResult, ToolUse,
};
use switchboard_providers_common::schema::ToolSchemas;

use super::*;
use crate::{CacheLifetime, MessagesOptions, ServerTool, capabilities, messages::to_wire_request};

const FIVE: CacheLifetime = CacheLifetime::FiveMinutes;
const HOUR: CacheLifetime = CacheLifetime::Hour;
const TURNS: CachePolicy = CachePolicy::Turns {
    lifetime: FIVE,
    prefix_lifetime: None,
};
const PREFIX: CachePolicy = CachePolicy::Prefix { lifetime: FIVE };

fn with(cache: CachePolicy) -> MessagesOptions {
    MessagesOptions {
        cache,
        ..MessagesOptions::default()
    }
}

fn sent(request: &ChatRequest, model: &str, options: &MessagesOptions) -> Value {
    let model = ModelId::new("anthropic", model);
    let (can, schemas) = (capabilities(&model.name), ToolSchemas::default());
    let wire = to_wire_request(request, &model, &can, options, &schemas).unwrap();
    serde_json::to_value(&wire.body).unwrap()
}

/// A block of a request: its location, such as `2 user`, its JSON without `cache_control`, and its
/// `cache_control`.
type Seen = (String, Value, Option<Value>);

fn seen(body: &Value) -> Vec<Seen> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut all: Vec<(String, Value)> = Vec::new();
    all.extend(
        list(&body["tools"])
            .into_iter()
            .map(|it| ("tools".into(), it)),
    );
    all.extend(
        list(&body["system"])
            .into_iter()
            .map(|it| ("system".into(), it)),
    );
    for (at, message) in list(&body["messages"]).iter().enumerate() {
        let place = format!("{at} {}", message["role"].as_str().unwrap());
        let blocks = list(&message["content"]).into_iter();
        all.extend(blocks.map(|it| (place.clone(), it)));
    }
    let apart = all.into_iter().map(|(place, mut block)| {
        let fields = block.as_object_mut().unwrap();
        let mark = fields.shift_remove("cache_control");
        (place, block, mark)
    });
    apart.collect()
}

/// Returns the position and the location of each block with a breakpoint.
fn marked(seen: &[Seen]) -> Vec<(usize, &str)> {
    let marked = seen.iter().enumerate().filter(|(_, it)| it.2.is_some());
    marked.map(|(at, it)| (at, it.0.as_str())).collect()
}

fn places(body: &Value) -> Vec<String> {
    let seen = seen(body);
    marked(&seen).iter().map(|it| it.1.to_owned()).collect()
}

fn tools() -> [ToolDefinition; 2] {
    ["a", "b"].map(|name| ToolDefinition::new(name, "", json!({"type": "object"})))
}

fn call(id: &str) -> Part {
    Part::ToolUse(ToolUse::new(id, "a", ToolInput::parse_input("{}")))
}

fn thought(text: &str) -> Part {
    let model = ModelId::new("anthropic", "claude-opus-5-5");
    Part::Reasoning(Reasoning {
        text: text.into(),
        provider_state: Some(ProviderState::new_for_model(
            &model,
            json!({"signature": "s"}),
        )),
    })
}

fn native(data: Value) -> Part {
    Part::Opaque(Opaque {
        kind: data["type"].as_str().unwrap().into(),
        text: Some("shown".into()),
        provider_state: ProviderState {
            provider: "anthropic".into(),
            model: None,
            data,
        },
    })
}

/// Returns the messages that each step of a run with two user messages adds to the conversation.
fn run() -> Vec<Vec<Message>> {
    let answer = |parts: Vec<Part>| Message::new(Speaker::Assistant, parts);
    let results = |ids: &[&str]| {
        Message::from_tool_results(ids.iter().map(|id| ToolResult::text(*id, "a", "12 °C")))
    };
    let search = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []});
    let many: Vec<String> = (0..30).map(|at| format!("many_{at}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    vec![
        vec![
            Message::system("You are a weather service."),
            Message::new(
                Speaker::User,
                [
                    Part::text("Weather here?"),
                    Part::Image(Media::from_base64("image/png", "iVBORw0KGgo=")),
                ],
            ),
        ],
        vec![
            answer(vec![thought("hm"), call("1"), call("2")]),
            results(&["1", "2"]),
        ],
        vec![
            answer(many.iter().map(|id| call(id)).collect()),
            results(&many),
        ],
        // The API paused the turn during a search, and the next answer continues it.
        vec![answer(vec![Part::text("I search."), native(search)])],
        vec![answer(vec![native(found), call("3")]), results(&["3"])],
        vec![
            answer(vec![Part::text("It rains.")]),
            Message::user("And tomorrow?"),
        ],
        vec![answer(vec![thought(""), call("4")]), results(&["4"])],
    ]
}

#[test]
fn every_step_reads_the_cache_entry_of_the_previous_step() {
    for model in ["claude-opus-5-5", "claude-haiku-4-5", "kimi-k3"] {
        let mut history = Vec::new();
        let mut before: Option<Vec<Seen>> = None;
        for gain in run() {
            history.extend(gain);
            let request = ChatRequest::new(history.clone()).with_tools(tools());
            let options = MessagesOptions {
                server_tools: vec![ServerTool::web_search()],
                ..with(TURNS)
            };
            let now = seen(&sent(&request, model, &options));
            if let Some(before) = before {
                let (last, place) = *marked(&before).last().unwrap();
                assert!(place.ends_with("user"), "{place}");
                for (at, written) in before[..=last].iter().enumerate() {
                    let again = &now[at];
                    assert_eq!((&written.0, &written.1), (&again.0, &again.1), "{model}");
                    let bytes = |it: &Seen| serde_json::to_string(&it.1).unwrap();
                    assert_eq!(bytes(written), bytes(again), "{model}");
                }
                assert!(now[last].2.is_some(), "{model}: block {last} of {place}");
            }
            before = Some(now);
        }
    }
}

#[test]
fn every_policy_sets_its_breakpoints() {
    let messages = [
        Message::system("Be brief."),
        Message::system("Be kind."),
        Message::user("hi"),
        Message::assistant("Hello."),
        Message::user("Weather?"),
    ];
    let request = ChatRequest::new(messages).with_tools(tools());
    let places = |cache| places(&sent(&request, "claude-opus-5-5", &with(cache)));
    assert!(places(CachePolicy::None).is_empty());
    assert_eq!(places(PREFIX), ["tools", "system"]);
    assert_eq!(places(TURNS), ["tools", "system", "0 user", "2 user"]);
    let body = sent(&request, "claude-opus-5-5", &with(PREFIX));
    let expected = json!({"type": "ephemeral"});
    assert_eq!(body["tools"][1]["cache_control"], expected);
    let expected = json!({"type": "ephemeral"});
    assert_eq!(body["system"][1]["cache_control"], expected);
    // Without tools and instructions only the conversation has breakpoints.
    let bare = ChatRequest::new([Message::user("hi")]);
    let bare = |cache| sent(&bare, "claude-opus-5-5", &with(cache));
    assert!(seen(&bare(PREFIX)).iter().all(|it| it.2.is_none()));
    assert_eq!(marked(&seen(&bare(TURNS))), [(0, "0 user")]);
}

#[test]
fn later_instructions_do_not_move_a_breakpoint() {
    let messages = [
        Message::system("Be brief."),
        Message::user("hi"),
        Message::system("In German."),
    ];
    let body = sent(
        &ChatRequest::new(messages),
        "claude-haiku-4-5",
        &with(PREFIX),
    );
    let seen = seen(&body);
    assert_eq!(seen[1].1["text"], "In German.");
    assert_eq!(marked(&seen), [(0, "system")]);
}

#[test]
fn the_longer_lifetime_comes_first() {
    let request =
        ChatRequest::new([Message::system("Be brief."), Message::user("hi")]).with_tools(tools());
    let ttls = |cache| {
        let body = sent(&request, "claude-opus-5-5", &with(cache));
        let marks = seen(&body).into_iter().filter_map(|it| it.2);
        marks.map(|it| it["ttl"].clone()).collect::<Vec<_>>()
    };
    let turns = |lifetime, prefix_lifetime| CachePolicy::Turns {
        lifetime,
        prefix_lifetime,
    };
    let (hour, five) = (json!("1h"), Value::Null);
    assert_eq!(
        ttls(turns(FIVE, Some(HOUR))),
        [hour.clone(), hour.clone(), five]
    );
    assert_eq!(
        ttls(turns(HOUR, Some(FIVE))),
        [hour.clone(), hour.clone(), hour]
    );
}

#[test]
fn breakpoints_of_the_caller_count_towards_the_maximum() {
    let mark = json!({"type": "ephemeral"});
    let raw = |marked: bool| {
        let mut declaration = json!({"type": "memory_20250818", "name": "memory"});
        if marked {
            declaration["cache_control"] = mark.clone();
        }
        ServerTool::from_declaration(declaration.as_object().cloned().unwrap())
    };
    let messages = || {
        [
            Message::system("Be brief."),
            Message::user("hi"),
            Message::assistant("Hello."),
            Message::user("Weather?"),
        ]
    };
    let options = |marked| MessagesOptions {
        server_tools: vec![raw(marked)],
        ..with(TURNS)
    };
    let request = ChatRequest::new(messages()).with_tools(tools());
    let body = sent(&request, "claude-opus-5-5", &options(true));
    assert_eq!(places(&body), ["tools", "system", "0 user", "2 user"]);
    assert!(body["tools"][2].get("cache_control").is_none());
    // The field `cache_control` of the request counts as a breakpoint, so the earlier turn gets
    // none.
    let mut request = ChatRequest::new(messages());
    request.extra.insert("cache_control".into(), mark.clone());
    let body = sent(&request, "claude-opus-5-5", &options(true));
    assert_eq!(places(&body), ["tools", "system", "2 user"]);
    // A tool with `defer_loading` is not part of the cached prefix.
    let mut options = options(false);
    let mut later = raw(false);
    if let ServerTool::Raw(later) = &mut later {
        later.declaration.insert("name".into(), json!("later"));
        later
            .declaration
            .insert("defer_loading".into(), json!(true));
    }
    options.server_tools.push(later);
    let body = sent(&ChatRequest::new(messages()), "claude-opus-5-5", &options);
    assert_eq!(body["tools"][0]["cache_control"], mark);
    assert!(body["tools"][1].get("cache_control").is_none());
}

fn any_part() -> impl Strategy<Value = Part> {
    let text = prop_oneof![Just(""), Just(" \n"), Just("hi")];
    prop_oneof![
        text.prop_map(Part::text),
        Just(thought("")),
        Just(call("1")),
        Just(Part::Image(Media::from_base64("image/png", "iVBORw0KGgo="))),
        Just(native(
            json!({"type": "server_tool_use", "id": "s", "name": "f", "input": {}})
        )),
        Just(native(
            json!({"type": "x_tool_result", "tool_use_id": "s", "content": []})
        )),
        Just(Part::ToolResult(ToolResult::text("1", "a", ""))),
    ]
}

fn any_message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![
        Just(Speaker::System),
        Just(Speaker::User),
        Just(Speaker::Assistant),
        Just(Speaker::Tool),
    ];
    let parts = prop::collection::vec(any_part(), 0..4);
    (role, parts).prop_map(|(role, parts)| Message::new(role, parts))
}

proptest! {
    #[test]
    fn breakpoints_are_limited_and_only_on_allowed_blocks(
        messages in prop::collection::vec(any_message(), 1..8),
        model in prop_oneof![Just("claude-opus-5-5"), Just("claude-haiku-4-5")],
    ) {
        let request = ChatRequest::new(messages).with_tools(tools());
        let model = ModelId::new("anthropic", model);
        let options = with(TURNS);
        let Ok(wire) = to_wire_request(&request, &model, &capabilities(&model.name), &options, &ToolSchemas::default()) else {
            return Ok(());
        };
        let seen = seen(&serde_json::to_value(&wire.body).unwrap());
        // A cache policy changes nothing in a request except `cache_control`.
        let bare = self::seen(&sent(&request, &model.name, &with(CachePolicy::None)));
        prop_assert_eq!(
            seen.iter().map(|it| (&it.0, &it.1)).collect::<Vec<_>>(),
            bare.iter().map(|it| (&it.0, &it.1)).collect::<Vec<_>>()
        );
        let marks: Vec<&Seen> = seen.iter().filter(|it| it.2.is_some()).collect();
        prop_assert!((1..=4).contains(&marks.len()), "{seen:?}");
        for (place, block, _) in marks {
            let kind = block["type"].as_str().unwrap_or("custom");
            prop_assert!(!kind.ends_with("thinking"), "{place}");
            prop_assert!(kind != "text" || !block["text"].as_str().unwrap().trim().is_empty());
        }
    }
}
