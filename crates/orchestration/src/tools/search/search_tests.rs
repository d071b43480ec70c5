use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_domain::{ToolDefinition, ToolOrigin};

use super::*;

fn tool(name: &str, description: &str) -> Arc<ToolDefinition> {
    let (server, own) = name.split_once("__").unwrap();
    let mut tool = ToolDefinition::new(name, description, json!({"type": "object"}));
    tool.origin = Some(ToolOrigin {
        server: server.to_owned(),
        tool: own.to_owned(),
    });
    Arc::new(tool)
}

fn some_tools() -> Vec<Arc<ToolDefinition>> {
    vec![
        tool(
            "crm__delete_customer",
            "Removes a customer. Cannot be undone.",
        ),
        tool("crm__list_customers", "Lists customers by name."),
        tool("mail__send", "Sends a mail to a customer."),
        tool("git__status", "Shows changed files."),
    ]
}

fn small() -> SearchPolicy {
    SearchPolicy {
        above_tools: 3,
        max_results: 2,
        ..SearchPolicy::default()
    }
}

fn names(tools: &[Arc<ToolDefinition>]) -> Vec<&str> {
    tools.iter().map(|tool| tool.name.as_str()).collect()
}

fn search(selection: &mut ToolSelection, index: &mut ToolIndex, input: &Value) -> SearchResult {
    selection.search(&small(), index, input.as_object().unwrap())
}

#[test]
fn a_small_catalog_is_offered_completely() {
    let tools = some_tools();
    let mut index = ToolIndex::default();
    assert!(index.update(&tools));
    let mut selection = ToolSelection::default();
    let shown = selection.select(&SearchPolicy::default(), &mut index);
    assert_eq!(shown, tools);
    assert!(!selection.is_active() && !selection.is_search_tool("search_tools"));
    let off = SearchPolicy {
        enabled: false,
        ..small()
    };
    assert_eq!(selection.select(&off, &mut index), tools);
}

#[test]
fn many_tools_or_tokens_start_the_search() {
    let mut index = ToolIndex::default();
    index.update(&some_tools());
    let by_tokens = SearchPolicy {
        above_tokens: index.tokens() - 1,
        ..SearchPolicy::default()
    };
    for policy in [small(), by_tokens] {
        let mut selection = ToolSelection::default();
        let shown = selection.select(&policy, &mut index);
        assert_eq!(names(&shown), ["search_tools"]);
        assert!(
            shown[0]
                .description
                .contains("4 tools of the servers crm, mail, git")
        );
        assert_eq!(shown[0].annotations.read_only, Some(true));
    }
}

#[test]
fn found_tools_are_appended_and_keep_their_position() {
    let mut index = ToolIndex::default();
    let mut tools = some_tools();
    index.update(&tools);
    let policy = SearchPolicy {
        always: vec!["status".into()],
        ..small()
    };
    let mut selection = ToolSelection::default();
    let first = selection.select(&policy, &mut index);
    assert_eq!(names(&first), ["search_tools", "git__status"]);

    let answer = search(
        &mut selection,
        &mut index,
        &json!({"query": "send an e-mail"}),
    );
    assert_eq!(answer.revealed[0], "mail__send");
    let second = selection.select(&policy, &mut index);
    assert_eq!(second[..2], first[..]);
    assert!(Arc::ptr_eq(&second[0], &first[0]));
    assert_eq!(second[2].name, "mail__send");

    // A server goes away and comes back; new tools come; the state is stored in between.
    index.update(&tools[..2]);
    let without = selection.select(&policy, &mut index);
    assert_eq!(names(&without), ["search_tools"]);
    tools.insert(0, tool("git__status_all", "Shows all."));
    index.update(&tools);
    let stored = serde_json::to_string(&selection).unwrap();
    let mut selection: ToolSelection = serde_json::from_str(&stored).unwrap();
    let third = selection.select(&policy, &mut index);
    assert_eq!(third, second);
    // Found again, it is not shown twice.
    let again = search(
        &mut selection,
        &mut index,
        &json!({"query": "send mail", "limit": 1}),
    );
    assert_eq!(again.found, ["mail__send"]);
    assert!(again.revealed.is_empty());
}

#[test]
fn tools_offered_before_the_search_stay() {
    let tools = some_tools();
    let mut index = ToolIndex::default();
    index.update(&tools[..2]);
    let mut selection = ToolSelection::default();
    let before = selection.select(&small(), &mut index);
    index.update(&tools);
    let after = selection.select(&small(), &mut index);
    assert_eq!(after[1..], before[..]);
    // It stays on when tools go away: the model knows the search by now.
    index.update(&tools[..1]);
    assert_eq!(
        names(&selection.select(&small(), &mut index)),
        ["search_tools", "crm__delete_customer"]
    );
}

#[test]
fn a_called_tool_that_was_not_offered_is_offered_afterwards() {
    let mut index = ToolIndex::default();
    index.update(&some_tools());
    let mut selection = ToolSelection::default();
    selection.select(&small(), &mut index);
    assert!(index.get("git__status").is_some());
    assert!(selection.reveal("git__status"));
    assert!(!selection.reveal("git__status"));
    assert_eq!(
        names(&selection.select(&small(), &mut index)),
        ["search_tools", "git__status"]
    );
}

#[test]
fn a_search_result_has_one_line_per_tool() {
    let mut index = ToolIndex::default();
    index.update(&some_tools());
    let mut selection = ToolSelection::default();
    selection.select(&small(), &mut index);
    let answer = search(
        &mut selection,
        &mut index,
        &json!({"query": "delete customers"}),
    );
    assert_eq!(
        answer.output.content[0].as_text(),
        "2 tools match and can be called now, best match first:\n\
         - crm__delete_customer: Removes a customer.\n\
         - crm__list_customers: Lists customers by name.\n\
         If these are not the right tools: Search with synonyms, or give only `server` to list its \
         tools."
    );
    let one = search(
        &mut selection,
        &mut index,
        &json!({"query": "customer", "limit": 1}),
    );
    assert_eq!(one.found.len(), 1);
    let none = search(&mut selection, &mut index, &json!({"query": "bake a cake"}));
    assert!(none.found.is_empty() && !none.output.is_error);
    assert!(
        none.output.content[0]
            .as_text()
            .starts_with("No tool matches. Search with synonyms")
    );
    for nothing in [json!({}), json!({"query": " "}), json!({"query": 3})] {
        let answer = search(&mut selection, &mut index, &nothing);
        assert!(answer.output.is_error && answer.revealed.is_empty());
    }
}

#[test]
fn one_server_can_be_searched_or_listed() {
    let mut index = ToolIndex::default();
    index.update(&some_tools());
    let mut selection = ToolSelection::default();
    selection.select(&small(), &mut index);
    let mut asked = |input: Value| search(&mut selection, &mut index, &input);
    let crm = asked(json!({"query": "send mail to a customer", "server": "CRM"}));
    assert_eq!(crm.found.len(), 2);
    assert!(crm.found.iter().all(|name| name.starts_with("crm__")));

    let all = asked(json!({"server": "mail"}));
    assert_eq!(
        all.output.content[0].as_text(),
        "The tools of `mail` are: mail__send. Search for the names that you need as `query`; then you can \
         call them."
    );
    assert!(all.revealed.is_empty() && !all.output.is_error);
    let named = asked(json!({"query": "mail__send"}));
    assert_eq!(named.found[0], "mail__send");

    let none = asked(json!({"query": "mail", "server": "post"}));
    assert!(none.output.is_error && none.found.is_empty());
    assert_eq!(
        none.output.content[0].as_text(),
        "Unknown server `post`. Servers: crm, mail, git."
    );
}

#[test]
fn the_list_of_a_large_server_is_limited() {
    let tools: Vec<_> = (0..1_000)
        .map(|n| tool(&format!("huge__tool_{n}"), ""))
        .collect();
    let mut index = ToolIndex::default();
    index.update(&tools);
    let mut selection = ToolSelection::default();
    selection.select(&small(), &mut index);
    let all = search(&mut selection, &mut index, &json!({"server": "huge"}));
    let text = all.output.content[0].as_text();
    assert!(text.contains("huge__tool_199, and 800 more.") && !text.contains("tool_200"));
}

#[test]
fn words_with_typing_errors_match_similar_words() {
    let mut index = ToolIndex::default();
    index.update(&some_tools());
    for (query, expected) in [
        ("costumers lsit", "crm__list_customers"),
        ("chnaged flies", "git__status"),
        ("remvoe", "crm__delete_customer"),
    ] {
        let found = index.search(query, 2);
        assert!(
            found.iter().any(|found| found.tool.name == expected),
            "{query}: {found:?}"
        );
    }
    // A word that some tool has is that word.
    assert!(index.search("sends", 4).len() == 1);
}

#[test]
fn a_host_may_have_a_tool_named_like_the_search() {
    let mut tools = some_tools();
    tools.push(Arc::new(ToolDefinition::new(
        "search_tools",
        "Finds pliers.",
        json!({}),
    )));
    let mut index = ToolIndex::default();
    index.update(&tools);
    let mut selection = ToolSelection::default();
    let shown = selection.select(&small(), &mut index);
    assert_eq!(names(&shown), ["search_tools_2"]);
    assert!(!selection.is_search_tool("search_tools"));
    assert!(selection.is_search_tool("search_tools_2"));

    // One that comes later is not declared beside it: no request has a name twice.
    let mut index = ToolIndex::default();
    index.update(&some_tools());
    let mut selection = ToolSelection::default();
    selection.select(&small(), &mut index);
    index.update(&tools);
    selection.reveal("search_tools");
    assert_eq!(
        names(&selection.select(&small(), &mut index)),
        ["search_tools"]
    );
}

#[test]
fn a_tool_matches_by_name_title_server_parameters_and_choices() {
    let mut rich = ToolDefinition::new(
        "x",
        "Does it.",
        json!({"type": "object", "properties": {
            "recipient": {"type": "string", "description": "Somebody's postal code."},
            "options": {"type": "object", "properties": {
                "wrapping": {"type": "string", "enum": ["ribbon", "bow"]},
            }},
        }}),
    );
    rich.title = Some("Parcel Service".to_owned());
    rich.origin = Some(ToolOrigin {
        server: "logistics".to_owned(),
        tool: "shipIt".to_owned(),
    });
    let mut tools = some_tools();
    tools.push(Arc::new(rich));
    let mut index = ToolIndex::default();
    index.update(&tools);
    for query in [
        "ship",
        "parcels",
        "logistics",
        "recipients",
        "postal",
        "wrapping",
        "ribbons",
    ] {
        let found = index.search(query, 1);
        assert_eq!(
            found.first().map(|found| found.tool.name.as_str()),
            Some("x"),
            "{query}"
        );
    }
}

#[test]
fn an_exact_name_comes_first() {
    let mut index = ToolIndex::default();
    index.update(&some_tools());
    let found = index.search("I need `crm__list_customers` to delete a customer", 4);
    assert_eq!(found[0].tool.name, "crm__list_customers");
    // An ordinary word is not a tool name.
    let found = index.search("what is the customer status of the mail I want to send", 4);
    assert_eq!(found[0].tool.name, "mail__send");
}

#[test]
fn the_index_follows_the_catalog() {
    let mut tools = some_tools();
    let mut index = ToolIndex::default();
    assert!(index.update(&tools));
    assert!(!index.update(&tools));
    let equal: Vec<_> = tools
        .iter()
        .map(|tool| Arc::new((**tool).clone()))
        .collect();
    assert!(!index.update(&equal), "made anew is not changed");
    assert!(index.search("otters", 4).is_empty());
    tools[3] = tool("git__status", "Counts otters.");
    let before = index.tokens();
    assert!(index.update(&tools));
    assert_ne!(index.tokens(), before);
    assert_eq!(index.search("otters", 4)[0].tool.name, "git__status");
    assert!(index.search("changed files", 4).is_empty());
    assert!(index.update(&[]));
    assert!(index.search("otters", 4).is_empty());
    assert_eq!(index.tokens(), 0);
}

proptest! {
    /// The remaining tools of a request are a prefix of the tools of the next request, for any
    /// changes, searches, calls and storage.
    #[test]
    fn the_tools_of_a_request_are_a_prefix_of_the_next(
        steps in prop::collection::vec(
            (prop::collection::vec(any::<bool>(), 4), "[a-z ]{0,12}|customers|mail files", 0_usize..4),
            1..12,
        ),
    ) {
        let all = some_tools();
        let mut index = ToolIndex::default();
        let mut selection = ToolSelection::default();
        let mut before: Vec<String> = Vec::new();
        let policy = SearchPolicy { above_tools: 1, ..small() };
        for (there, query, called) in steps {
            let tools: Vec<_> = all
                .iter()
                .zip(&there)
                .filter(|(_, there)| **there)
                .map(|(tool, _)| Arc::clone(tool))
                .collect();
            index.update(&tools);
            let stored = serde_json::to_string(&selection).unwrap();
            selection = serde_json::from_str(&stored).unwrap();
            let was_active = selection.is_active();
            let now: Vec<String> = selection
                .select(&policy, &mut index)
                .iter()
                .map(|tool| tool.name.clone())
                .collect();
            if was_active {
                let still: Vec<&String> = before.iter().filter(|name| now.contains(name)).collect();
                let same: Vec<&String> = now.iter().filter(|name| before.contains(name)).collect();
                prop_assert_eq!(still, same);
                prop_assert_eq!(&now[0], "search_tools");
            }
            let input = json!({"query": query});
            selection.search(&policy, &mut index, input.as_object().unwrap());
            if index.get(&all[called].name).is_some() {
                selection.reveal(&all[called].name);
            }
            before = now;
        }
    }
}
