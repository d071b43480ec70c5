//! Three hundred tools of ten servers: the right one is found, and the prompt stays small.

use std::sync::Arc;

use serde_json::json;
use switchboard_domain::ToolDefinition;
use switchboard_orchestration::{
    search::{SearchPolicy, ToolIndex, ToolSelection},
    tokens::estimate_tool,
};

/// What people ask, and the tool that they need. Written before anything was searched.
const QUESTIONS: [(&str, &str); 20] = [
    (
        "Please put a dentist appointment on Tuesday at 3 into my calendar",
        "calendar__create_event",
    ),
    (
        "Will it rain in Lisbon tomorrow?",
        "weather__daily_forecast",
    ),
    (
        "Give the customer her money back for order 1182",
        "payments__create_refund",
    ),
    (
        "Which genes are linked to cystic fibrosis?",
        "biology__find_genes_for_disease",
    ),
    (
        "How do I get from the airport to the hotel by bike?",
        "maps__get_directions",
    ),
    (
        "Write to anna@example.com that I will be late",
        "email__send_message",
    ),
    ("Who changed this line of main.rs last?", "git__blame"),
    (
        "Show me the ten slowest queries of the database",
        "database__list_slow_queries",
    ),
    (
        "Merge the duplicate contacts of Miller GmbH",
        "crm__merge_contacts",
    ),
    ("What's in the file notes.txt?", "files__read_file"),
    (
        "When is everybody free for an hour next week?",
        "calendar__find_free_slots",
    ),
    ("Undo the last commit", "git__revert_commit"),
    ("Is the air in Delhi bad today?", "weather__air_quality"),
    (
        "Stop the monthly subscription of customer 77",
        "payments__cancel_subscription",
    ),
    (
        "What is the protein sequence of BRCA1?",
        "biology__get_protein_sequence",
    ),
    ("Find restaurants near the station", "maps__search_nearby"),
    (
        "Move all newsletters to the archive folder",
        "email__move_messages",
    ),
    ("Make a zip of the reports folder", "files__create_archive"),
    (
        "Add a column for the birthday to the users table",
        "database__add_column",
    ),
    (
        "Which deals will probably be won this quarter?",
        "crm__forecast_pipeline",
    ),
];

/// What a model searches for when it is asked such things, and the tool that it needs.
const SEARCHES: [(&str, &str); 20] = [
    ("cancel meeting", "calendar__cancel_event"),
    ("sunset time", "weather__sunrise_sunset"),
    ("currency conversion", "payments__exchange_rate"),
    ("check drug interactions", "biology__find_drug_interactions"),
    ("electric car charging station", "maps__find_charging"),
    ("search emails from a person", "email__search_messages"),
    ("stash changes", "git__stash_save"),
    ("count rows in a table", "database__count_rows"),
    ("change owner of account", "crm__assign_owner"),
    ("convert markdown to pdf", "files__convert_document"),
    ("book meeting room", "calendar__book_room"),
    ("unsubscribe from newsletter", "email__unsubscribe_list"),
    ("weather warnings", "weather__severe_alerts"),
    ("respond to chargeback", "payments__submit_dispute_evidence"),
    (
        "drugs targeting a protein",
        "biology__find_drugs_for_target",
    ),
    ("route with several stops", "maps__optimize_route"),
    ("find the commit that introduced a bug", "git__bisect"),
    ("restore deleted file", "files__trash_restore"),
    ("query execution plan", "database__explain_query"),
    ("mark deal as won", "crm__close_deal_won"),
];

/// The tokens of tools in a request after one search.
const PROMPT: u64 = 1_500;

#[expect(clippy::unwrap_used, reason = "a test's own data")]
fn catalogue() -> Vec<Arc<ToolDefinition>> {
    serde_json::from_str(include_str!("catalogue.json")).unwrap()
}

fn tokens(tools: &[Arc<ToolDefinition>]) -> u64 {
    tools.iter().map(|tool| estimate_tool(tool)).sum()
}

#[test]
fn the_catalogue_is_three_hundred_different_tools_of_ten_servers() {
    let tools = catalogue();
    assert_eq!(tools.len(), 300);
    let count = |key: fn(&ToolDefinition) -> &str| {
        let all: std::collections::HashSet<&str> = tools.iter().map(|tool| key(tool)).collect();
        all.len()
    };
    assert_eq!(count(|tool| &tool.name), 300);
    assert_eq!(count(|tool| &tool.description), 300);
    assert_eq!(count(|tool| &tool.origin.as_ref().unwrap().server), 10);
    for (_, expected) in QUESTIONS {
        assert!(tools.iter().any(|tool| tool.name == expected), "{expected}");
    }
}

#[test]
fn the_right_tool_is_found_for_eighteen_of_twenty_questions_in_a_small_prompt() {
    let tools = catalogue();
    let whole = tokens(&tools);
    assert!(whole > 20_000, "{whole}");
    let policy = SearchPolicy::default();
    let mut index = ToolIndex::default();
    index.update(&tools);
    let mut missed = Vec::new();
    let mut largest = 0;
    for (question, expected) in QUESTIONS {
        let mut selection = ToolSelection::default();
        selection.select(&policy, &mut index);
        assert!(selection.is_active());
        // A person's own words: a model that searches chooses better ones.
        let input = json!({"query": question});
        let answer = selection.answer_search(&policy, &mut index, input.as_object().unwrap());
        let shown = selection.select(&policy, &mut index);
        largest = largest.max(tokens(&shown));
        if !shown.iter().any(|tool| tool.name == expected) {
            missed.push(format!(
                "{question} -> {expected}, found {:?}",
                answer.found
            ));
        }
    }
    assert!(missed.len() <= 2, "{missed:#?}");
    assert!(largest <= PROMPT, "{largest}");
}

#[test]
fn what_a_model_searches_for_is_among_the_first_four() {
    let mut index = ToolIndex::default();
    index.update(&catalogue());
    for (query, expected) in SEARCHES {
        let found = index.search(query, 4);
        let names: Vec<&str> = found.iter().map(|found| found.tool.name.as_str()).collect();
        assert!(names.contains(&expected), "{query}: {names:?}");
    }
}

#[test]
fn a_long_conversation_shows_what_it_needed_and_keeps_the_order() {
    let tools = catalogue();
    let policy = SearchPolicy {
        max_results: 3,
        ..SearchPolicy::default()
    };
    let mut index = ToolIndex::default();
    index.update(&tools);
    let mut selection = ToolSelection::default();
    let mut before = selection.select(&policy, &mut index);
    for (question, _) in QUESTIONS {
        let input = json!({"query": question});
        selection.answer_search(&policy, &mut index, input.as_object().unwrap());
        let now = selection.select(&policy, &mut index);
        assert!(now.iter().zip(&before).all(|(a, b)| Arc::ptr_eq(a, b)));
        assert!(now.len() >= before.len() && now.len() <= before.len() + 3);
        before = now;
    }
    assert!(tokens(&before) * 4 < tokens(&tools), "{}", tokens(&before));
}
