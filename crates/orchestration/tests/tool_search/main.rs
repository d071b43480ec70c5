//! Tool search in a catalog of 300 tools of 10 servers: hit rate and prompt size.

use std::sync::Arc;

use serde_json::json;
use switchboard_domain::ToolDefinition;
use switchboard_orchestration::{
    tools::search::{SearchPolicy, ToolIndex, ToolSelection},
    tools::tokens::{estimate_text, estimate_tool},
};

/// Questions of people and the needed tool. They were written before the first search.
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

/// Questions that need every fifteenth tool of the catalog, without its name. They were not used to
/// tune the search.
const HELD_BACK: [(&str, &str); 20] = [
    (
        "Brandt & Sons went out of business, put them away",
        "crm__archive_company",
    ),
    (
        "Who might become a customer? Show me the people from the trade fair",
        "crm__list_leads",
    ),
    (
        "Invite Lisa to the kickoff as well",
        "calendar__add_attendee",
    ),
    (
        "Give me my appointments as a file that I can load into Outlook",
        "calendar__export_ics",
    ),
    ("Put report.pdf into the folder 2024", "files__move_file"),
    (
        "Make a shortcut to the config on the desktop",
        "files__create_link",
    ),
    (
        "Throw away my last three commits and go back to where main was",
        "git__reset_branch",
    ),
    (
        "Get me a local copy of github.com/acme/tools",
        "git__clone_repository",
    ),
    ("When is high water in Hamburg?", "weather__tide_times"),
    (
        "Where are temperatures measured near Oslo?",
        "weather__list_stations",
    ),
    (
        "Jansen moved, the new billing address is Hafenstr. 3",
        "payments__update_customer",
    ),
    (
        "How much money do we have at the moment?",
        "payments__get_balance",
    ),
    (
        "What does MDM2 bind to?",
        "biology__find_protein_interactions",
    ),
    (
        "Which symptoms do people with Marfan syndrome show?",
        "biology__find_phenotypes",
    ),
    ("Is there a jam on the A7?", "maps__traffic_now"),
    ("Remember this café for me", "maps__save_place"),
    (
        "Send the reply that I had begun yesterday",
        "email__send_draft",
    ),
    (
        "I don't want to hear from that spammer ever again",
        "email__block_sender",
    ),
    ("Delete the whole temp_import table", "database__drop_table"),
    (
        "Bring the database back to how it was in last night's backup",
        "database__restore_database",
    ),
];

/// Search queries that a model may write for [`QUESTIONS`], and the needed tool.
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

/// Search queries that a model may write for [`HELD_BACK`], in the same order. They describe the
/// tool and do not repeat the question. They were written before the first search, by somebody who
/// knew the tool names.
const OF_HELD_BACK: [&str; 20] = [
    "archive company in crm",
    "list leads",
    "invite participant to event",
    "export calendar to ics file",
    "move file to folder",
    "create symbolic link",
    "reset branch to earlier commit",
    "clone repository",
    "tide times high water",
    "weather stations near a place",
    "update customer billing address",
    "account balance",
    "protein interaction partners",
    "phenotypes symptoms of disease",
    "current traffic on a road",
    "save favorite place",
    "send a draft email",
    "block sender",
    "drop table",
    "restore database backup",
];

/// Maximum number of tokens of the tools in a request after one search.
const PROMPT: u64 = 1_500;

#[expect(clippy::unwrap_used, reason = "a test's own data")]
fn catalogue() -> Vec<Arc<ToolDefinition>> {
    serde_json::from_str(include_str!("catalogue.json")).unwrap()
}

fn tokens(tools: &[Arc<ToolDefinition>]) -> u64 {
    tools.iter().map(|tool| estimate_tool(tool)).sum()
}

#[test]
fn the_catalogue_has_300_different_tools_of_10_servers() {
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
fn the_right_tool_is_found_for_18_of_20_questions() {
    let tools = catalogue();
    let whole = tokens(&tools);
    assert!(whole > 20_000, "{whole}");
    let policy = SearchPolicy::default();
    let mut index = ToolIndex::default();
    index.set_catalog(&tools);
    let mut missed = Vec::new();
    let mut largest = 0;
    for (question, expected) in QUESTIONS {
        let mut selection = ToolSelection::default();
        selection.select_tools(&policy, &index);
        assert!(selection.is_search_tool("search_tools"));
        // The query is the question itself. A model writes better queries.
        let input = json!({"query": question});
        let answer = selection.execute_search(&policy, &index, input.as_object().unwrap());
        let shown = selection.select_tools(&policy, &index);
        largest = largest.max(tokens(&shown));
        if !is_found(&shown, expected) {
            missed.push(format!("{question} -> {expected}, found {answer:?}"));
        }
    }
    assert!(missed.len() <= 2, "{missed:#?}");
    assert!(largest <= PROMPT, "{largest}");
}

#[test]
fn queries_of_a_model_find_the_tool_among_the_first_four() {
    let mut index = ToolIndex::default();
    index.set_catalog(&catalogue());
    for (query, expected) in SEARCHES {
        let found = index.search_tools(query, 4, None);
        assert!(is_found(&found, expected), "{query}: {found:?}");
    }
}

fn is_found(found: &[Arc<ToolDefinition>], expected: &str) -> bool {
    found.iter().any(|found| found.name == expected)
}

/// The search has no synonyms. The queries of a model compensate for that.
#[test]
fn technical_terms_find_tools_that_everyday_words_do_not() {
    let mut index = ToolIndex::default();
    index.set_catalog(&catalogue());
    let (mut by_person, mut by_model) = (0, 0);
    for ((question, expected), search) in HELD_BACK.iter().zip(OF_HELD_BACK) {
        by_person += u32::from(is_found(&index.search_tools(question, 8, None), expected));
        by_model += u32::from(is_found(&index.search_tools(search, 8, None), expected));
    }
    assert!(by_person >= 10, "{by_person}");
    assert!(by_model >= 20, "{by_model}");
}

#[test]
fn a_tool_that_no_query_finds_is_in_the_list_of_its_server() {
    let policy = SearchPolicy::default();
    let mut index = ToolIndex::default();
    index.set_catalog(&catalogue());
    let mut selection = ToolSelection::default();
    selection.select_tools(&policy, &index);
    for (_, expected) in HELD_BACK {
        let (server, _) = expected.split_once("__").unwrap_or_default();
        let input = json!({"server": server});
        let answer = selection.execute_search(&policy, &index, input.as_object().unwrap());
        let text = answer.content[0].as_text();
        assert!(text.contains(expected), "{text}");
        assert!(estimate_text(&text) <= 400, "{}", estimate_text(&text));
        let found = index.search_tools(expected, 1, None);
        assert!(is_found(&found, expected), "{expected}: {found:?}");
    }
}
