use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_domain::{ToolDefinition, ToolOrigin, ToolOutput};

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

fn search(selection: &mut ToolSelection, index: &ToolIndex, input: &Value) -> ToolOutput {
    selection.execute_search(&small(), index, input.as_object().unwrap())
}

#[test]
fn a_small_catalog_is_offered_completely() {
    let tools = some_tools();
    let mut index = ToolIndex::default();
    assert!(index.set_catalog(&tools));
    let mut selection = ToolSelection::default();
    let shown = selection.select_tools(&SearchPolicy::default(), &index);
    assert_eq!(shown, tools);
    assert!(!selection.is_search_tool("search_tools"));
    let off = SearchPolicy {
        enabled: false,
        ..small()
    };
    assert_eq!(selection.select_tools(&off, &index), tools);
}

#[test]
fn many_tools_or_tokens_start_the_search() {
    let mut index = ToolIndex::default();
    index.set_catalog(&some_tools());
    let by_tokens = SearchPolicy {
        above_tokens: index.total_tokens() - 1,
        ..SearchPolicy::default()
    };
    for policy in [small(), by_tokens] {
        let mut selection = ToolSelection::default();
        let shown = selection.select_tools(&policy, &index);
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
    index.set_catalog(&tools);
    let policy = SearchPolicy {
        always: vec!["status".into()],
        ..small()
    };
    let mut selection = ToolSelection::default();
    let first = selection.select_tools(&policy, &index);
    assert_eq!(names(&first), ["search_tools", "git__status"]);

    search(&mut selection, &index, &json!({"query": "send an e-mail"}));
    let second = selection.select_tools(&policy, &index);
    assert_eq!(second[..2], first[..]);
    assert!(Arc::ptr_eq(&second[0], &first[0]));
    assert_eq!(second[2].name, "mail__send");

    // A server disconnects, and returns with a new tool.
    index.set_catalog(&tools[..2]);
    let without = selection.select_tools(&policy, &index);
    assert_eq!(names(&without), ["search_tools"]);
    tools.insert(0, tool("git__status_all", "Shows all."));
    index.set_catalog(&tools);
    assert_eq!(selection.select_tools(&policy, &index), second);
}

#[test]
fn the_index_follows_the_catalog_and_corrects_typing_errors() {
    let mut tools = some_tools();
    let mut index = ToolIndex::default();
    assert!(index.set_catalog(&tools));
    let equal: Vec<_> = tools
        .iter()
        .map(|tool| Arc::new((**tool).clone()))
        .collect();
    assert!(
        !index.set_catalog(&equal),
        "equal definitions are not a change"
    );
    assert_eq!(
        names(&index.search_tools("chnaged flies", 1, None)),
        ["git__status"]
    );
    let expected = ["crm__delete_customer"];
    assert_eq!(names(&index.search_tools("remvoe", 1, None)), expected);
    tools[3] = tool("git__status", "Counts otters.");
    assert!(index.set_catalog(&tools));
    let expected = ["git__status"];
    assert_eq!(names(&index.search_tools("otters", 4, None)), expected);
    assert!(index.search_tools("changed files", 4, None).is_empty());
}

#[test]
fn a_search_result_has_one_line_per_tool() {
    let mut index = ToolIndex::default();
    index.set_catalog(&some_tools());
    let mut selection = ToolSelection::default();
    selection.select_tools(&small(), &index);
    let mut answer = |input: Value| {
        let output = search(&mut selection, &index, &input);
        let text = output.content[0].as_text();
        if output.is_error { Err(text) } else { Ok(text) }
    };
    let expected = "2 tools match and can be called now, best match first:\n\
         - crm__delete_customer: Removes a customer.\n\
         - crm__list_customers: Lists customers by name.\n\
         If these are not the right tools: Search with synonyms, or give only `server` to list its \
         tools.";
    assert_eq!(
        answer(json!({"query": "delete customers"})).as_deref(),
        Ok(expected)
    );
    let one = answer(json!({"query": "customer", "limit": 1})).unwrap();
    assert!(one.starts_with("1 tool matches"), "{one}");
    let none = answer(json!({"query": "bake a cake"})).unwrap();
    assert!(
        none.starts_with("No tool matches. Search with synonyms"),
        "{none}"
    );
    for nothing in [json!({}), json!({"query": " "}), json!({"query": 3})] {
        assert!(answer(nothing).is_err());
    }
    let crm = answer(json!({"query": "send mail to a customer", "server": "CRM"})).unwrap();
    assert!(crm.contains("crm__") && !crm.contains("mail__"), "{crm}");
    assert_eq!(
        answer(json!({"server": "mail"})).unwrap(),
        "The tools of `mail` are: mail__send. To call one of them, first search for its name with \
         `query`."
    );
    assert_eq!(
        answer(json!({"query": "mail", "server": "post"})).unwrap_err(),
        "Unknown server `post`. Servers: crm, mail, git."
    );
}

#[test]
fn the_list_of_a_large_server_is_limited() {
    let tools: Vec<_> = (0..1_000)
        .map(|n| tool(&format!("huge__tool_{n}"), ""))
        .collect();
    let mut index = ToolIndex::default();
    index.set_catalog(&tools);
    let mut selection = ToolSelection::default();
    selection.select_tools(&small(), &index);
    let all = search(&mut selection, &index, &json!({"server": "huge"}));
    let text = all.content[0].as_text();
    assert!(text.contains("huge__tool_199, and 800 more.") && !text.contains("tool_200"));
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
    index.set_catalog(&tools);
    let mut selection = ToolSelection::default();
    let shown = selection.select_tools(&small(), &index);
    assert_eq!(names(&shown), ["search_tools_2"]);
    assert!(!selection.is_search_tool("search_tools"));
    assert!(selection.is_search_tool("search_tools_2"));

    // A catalog tool that gets the name of the search tool later is not declared, because names in
    // a request are unique.
    let mut index = ToolIndex::default();
    index.set_catalog(&some_tools());
    let mut selection = ToolSelection::default();
    selection.select_tools(&small(), &index);
    index.set_catalog(&tools);
    selection.offer_tool("search_tools");
    let expected = ["search_tools"];
    assert_eq!(names(&selection.select_tools(&small(), &index)), expected);
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
    index.set_catalog(&tools);
    for query in [
        "ship",
        "parcels",
        "logistics",
        "recipients",
        "postal",
        "wrapping",
        "ribbons",
    ] {
        let found = index.search_tools(query, 1, None);
        assert_eq!(names(&found), ["x"], "{query}");
    }
}

#[test]
fn an_exact_name_comes_first() {
    let mut index = ToolIndex::default();
    index.set_catalog(&some_tools());
    let found = index.search_tools("I need `crm__list_customers` to delete a customer", 4, None);
    assert_eq!(found[0].name, "crm__list_customers");
    // A word that is part of many tool names does not count as a tool name.
    let found = index.search_tools(
        "what is the customer status of the mail I want to send",
        4,
        None,
    );
    assert_eq!(found[0].name, "mail__send");
}

proptest! {
    /// The tools of a request that still exist are a prefix of the tools of the next request, for
    /// any changes, searches, calls and restores.
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
            index.set_catalog(&tools);
            let stored = serde_json::to_string(&selection).unwrap();
            selection = serde_json::from_str(&stored).unwrap();
            let was_active = selection.search_tool.is_some();
            let now: Vec<String> = selection
                .select_tools(&policy, &index)
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
            selection.execute_search(&policy, &index, input.as_object().unwrap());
            if index.find_tool(&all[called].name).is_some() {
                selection.offer_tool(&all[called].name);
            }
            before = now;
        }
    }
}
