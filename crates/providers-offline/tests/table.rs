//! Questions and the calls that they mean, over the tool lists of real servers.

#![allow(
    clippy::expect_used,
    reason = "a fixture without an origin is a failed test"
)]

mod support;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Value, json};
use support::{first, tools};

const ALL: &str = "customer_service everything filesystem git memory time";

/// Servers, question, calls.
type Row = (&'static str, &'static str, Value);

fn check(rows: Vec<Row>) {
    let mut wrong = Vec::new();
    for (servers, question, expected) in rows {
        let (calls, text) = first(question, &tools(servers));
        let found: Value = calls
            .iter()
            .map(|(name, input)| json!([name, input]))
            .collect();
        if found != expected {
            wrong.push(format!(
                "[{servers}] {question}\n  wanted {expected}\n  got    {found} {text}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

fn one(tool: &str, input: &Value) -> Value {
    json!([[tool, input]])
}

#[test]
fn customers() {
    let recent = |input| one("get_recent_customers", &input);
    let value = |id| one("calculate_account_value", &json!({"customer_id": id}));
    let ticket = |input| one("create_support_ticket", &input);
    check(vec![
        (
            "customer_service",
            "What is the account value of customer 42?",
            value(42),
        ),
        (ALL, "What is the account value of customer 42?", value(42)),
        (ALL, "what's customer #42's account value", value(42)),
        (
            ALL,
            "Calculate the account value for customer_id 7",
            value(7),
        ),
        (
            ALL,
            "How much is the account of client 12 worth?",
            value(12),
        ),
        (
            ALL,
            "Give me the balance of customer number 1042, please.",
            value(1042),
        ),
        (
            ALL,
            "What are the account values of customers 42 and 7?",
            json!([
                ["calculate_account_value", {"customer_id": 42}],
                ["calculate_account_value", {"customer_id": 7}],
            ]),
        ),
        (
            ALL,
            "Compare the account value of customers 1, 2 and 3",
            json!([
                ["calculate_account_value", {"customer_id": 1}],
                ["calculate_account_value", {"customer_id": 2}],
                ["calculate_account_value", {"customer_id": 3}],
            ]),
        ),
        (
            ALL,
            "Who are the 5 most recent customers?",
            recent(json!({"limit": 5})),
        ),
        (
            ALL,
            "List the latest three customers",
            recent(json!({"limit": 3})),
        ),
        (
            ALL,
            "Who is the newest customer?",
            recent(json!({"limit": 1})),
        ),
        (ALL, "Show me our recent customers", recent(json!({}))),
        (
            ALL,
            "Which customers signed up since 2026-10-01?",
            recent(json!({"since": "2026-10-01"})),
        ),
        (
            ALL,
            "Show the last 10 customers who joined since yesterday",
            recent(json!({"limit": 10, "since": "2026-10-20"})),
        ),
        (
            ALL,
            "Create a high priority support ticket for customer 7 about a late delivery",
            ticket(json!({"customer_id": 7, "subject": "a late delivery", "priority": "high"})),
        ),
        (
            ALL,
            "Open a ticket for customer 12 with subject \"Broken screen\" and description \"It went dark.\"",
            ticket(
                json!({"customer_id": 12, "subject": "Broken screen", "description": "It went dark."}),
            ),
        ),
        (
            ALL,
            "Please raise an urgent support ticket for client #3: cannot log in",
            ticket(json!({"customer_id": 3, "subject": "cannot log in", "priority": "high"})),
        ),
        (
            ALL,
            "create_support_ticket {\"customer_id\": 5, \"subject\": \"x\", \"priority\": \"low\"}",
            ticket(json!({"customer_id": 5, "subject": "x", "priority": "low"})),
        ),
    ]);
}

#[test]
fn what_is_needed_goes_first_and_what_nobody_says_is_asked() {
    let recent = |input| one("get_recent_customers", &input);
    check(vec![
        // What is needed first.
        (
            ALL,
            "What is the account value of the most recent customer?",
            recent(json!({"limit": 1})),
        ),
        (
            ALL,
            "What is the account value of Ada Lovelace?",
            recent(json!({})),
        ),
        (
            ALL,
            "What is the account value of each of the 2 latest customers?",
            recent(json!({"limit": 2})),
        ),
        (
            ALL,
            "Create a support ticket for our newest customer about a missing invoice",
            recent(json!({"limit": 1})),
        ),
        // Asked, not made up.
        (ALL, "What is the account value?", json!([])),
        (ALL, "Create a support ticket", json!([])),
        (ALL, "Create a support ticket for customer 7", json!([])),
        (ALL, "Show the 500 most recent customers", json!([])),
    ]);
}

#[test]
fn everything() {
    check(vec![
        (
            "everything",
            "echo hello world",
            one("echo", &json!({"message": "hello world"})),
        ),
        (
            ALL,
            "Echo \"Hello, World!\"",
            one("echo", &json!({"message": "Hello, World!"})),
        ),
        (
            ALL,
            "Use the echo tool to say good morning",
            one("echo", &json!({"message": "good morning"})),
        ),
        (
            ALL,
            "What is the sum of 19 and 23?",
            one("get-sum", &json!({"a": 19, "b": 23})),
        ),
        (
            ALL,
            "Add 2.5 and -4",
            one("get-sum", &json!({"a": 2.5, "b": -4})),
        ),
        (
            ALL,
            "sum of seven and twenty-five",
            one("get-sum", &json!({"a": 7, "b": 25})),
        ),
        (
            ALL,
            "get-sum a=1 b=2",
            one("get-sum", &json!({"a": 1, "b": 2})),
        ),
        (
            ALL,
            "Show me the tiny image",
            one("get-tiny-image", &json!({})),
        ),
        (
            ALL,
            "Print the environment variables",
            one("get-env", &json!({})),
        ),
        (
            ALL,
            "What is the temperature in New York?",
            one("get-structured-content", &json!({"location": "New York"})),
        ),
        (
            ALL,
            "Get 4 resource links",
            one("get-resource-links", &json!({"count": 4})),
        ),
        (
            ALL,
            "Get an annotated error message with an image",
            one(
                "get-annotated-message",
                &json!({"messageType": "error", "includeImage": true}),
            ),
        ),
        (
            ALL,
            "Run a long running operation of 3 seconds in 6 steps",
            one(
                "trigger-long-running-operation",
                &json!({"duration": 3, "steps": 6}),
            ),
        ),
        (
            ALL,
            "What is the sum of 1 and 2, and then echo good night",
            json!([["get-sum", {"a": 1, "b": 2}], ["echo", {"message": "good night"}]]),
        ),
        (ALL, "Add 5 to nothing", json!([])),
    ]);
}

#[test]
fn files_and_time() {
    check(vec![
        (
            ALL,
            "Read the file /etc/hosts",
            one("read_text_file", &json!({"path": "/etc/hosts"})),
        ),
        (
            ALL,
            "Show the first 20 lines of /var/log/app.log",
            one(
                "read_text_file",
                &json!({"path": "/var/log/app.log", "head": 20}),
            ),
        ),
        (
            ALL,
            "List the directory /srv/data",
            one("list_directory", &json!({"path": "/srv/data"})),
        ),
        (
            ALL,
            "Create a directory /srv/new",
            one("create_directory", &json!({"path": "/srv/new"})),
        ),
        (
            ALL,
            "Move /srv/a.txt to /srv/b.txt",
            one(
                "move_file",
                &json!({"source": "/srv/a.txt", "destination": "/srv/b.txt"}),
            ),
        ),
        (
            ALL,
            "Write \"hello\" to the file /srv/hello.txt",
            one(
                "write_file",
                &json!({"path": "/srv/hello.txt", "content": "hello"}),
            ),
        ),
        (
            ALL,
            "Search /srv for *.md files",
            one("search_files", &json!({"path": "/srv", "pattern": "*.md"})),
        ),
        (
            ALL,
            "Which directories are allowed?",
            one("list_allowed_directories", &json!({})),
        ),
        (
            ALL,
            "What time is it in Europe/Berlin?",
            one("get_current_time", &json!({"timezone": "Europe/Berlin"})),
        ),
        (
            ALL,
            "What is the current time in Tokyo?",
            one("get_current_time", &json!({"timezone": "Asia/Tokyo"})),
        ),
        (
            ALL,
            "Convert 16:30 from Europe/Paris to Asia/Tokyo",
            one(
                "convert_time",
                &json!({"source_timezone": "Europe/Paris", "time": "16:30", "target_timezone": "Asia/Tokyo"}),
            ),
        ),
    ]);
}

#[test]
fn what_means_no_tool() {
    check(
        [
            "Hello!",
            "Who was Napoleon?",
            "Tell me a joke",
            "What is the meaning of life?",
            "You are very kind.",
            "How tall is Mount Everest?",
            "",
            "???",
        ]
        .into_iter()
        .map(|question| (ALL, question, json!([])))
        .collect(),
    );
}

#[test]
fn one_message_may_ask_for_several_things() {
    check(vec![
        // What depends on an earlier part waits for it.
        (
            ALL,
            "Show me the newest 3 customers and open a ticket for the first one about onboarding",
            one("get_recent_customers", &json!({"limit": 3})),
        ),
        (
            ALL,
            "Is customer 42 worth more than customer 7?",
            json!([
                ["calculate_account_value", {"customer_id": 42}],
                ["calculate_account_value", {"customer_id": 7}],
            ]),
        ),
        (
            ALL,
            "Create a ticket for customers 7 and 42 about the new terms",
            json!([
                ["create_support_ticket", {"customer_id": 7, "subject": "the new terms"}],
                ["create_support_ticket", {"customer_id": 42, "subject": "the new terms"}],
            ]),
        ),
        (
            ALL,
            "echo one; what is 19 + 23?",
            json!([["echo", {"message": "one"}], ["get-sum", {"a": 19, "b": 23}]]),
        ),
    ]);
}

#[test]
fn further_ways_to_say_it() {
    check(vec![
        (
            ALL,
            "Create a support ticket for customer 7: late delivery, priority high",
            one(
                "create_support_ticket",
                &json!({"customer_id": 7, "subject": "late delivery", "priority": "high"}),
            ),
        ),
        (
            ALL,
            "Please create a ticket for customer 42. Subject: Broken cup. Priority: low. Description: The handle came off.",
            one(
                "create_support_ticket",
                &json!({
                    "customer_id": 42, "subject": "Broken cup", "description": "The handle came off", "priority": "low",
                }),
            ),
        ),
        (
            ALL,
            "I need a ticket for customer number 7 because the parcel never arrived",
            one(
                "create_support_ticket",
                &json!({"customer_id": 7, "subject": "the parcel never arrived"}),
            ),
        ),
        (
            ALL,
            "Create a ticket for customer 42 about the echo in her headphones",
            one(
                "create_support_ticket",
                &json!({"customer_id": 42, "subject": "the echo in her headphones"}),
            ),
        ),
        (
            ALL,
            "Which customers joined since January?",
            one("get_recent_customers", &json!({"since": "2026-01-01"})),
        ),
        (
            ALL,
            "Which customers joined in the last week?",
            one("get_recent_customers", &json!({"since": "2026-10-14"})),
        ),
        (
            ALL,
            "show me the last two sign-ups",
            one("get_recent_customers", &json!({"limit": 2})),
        ),
        (
            ALL,
            "Who is the third newest customer?",
            one("get_recent_customers", &json!({"limit": 3})),
        ),
        (
            ALL,
            "list the customers, the newest first, at most 4",
            one("get_recent_customers", &json!({"limit": 4})),
        ),
        (
            ALL,
            "What is 19 + 23?",
            one("get-sum", &json!({"a": 19, "b": 23})),
        ),
        (
            ALL,
            "account value 42",
            one("calculate_account_value", &json!({"customer_id": 42})),
        ),
    ]);
}

#[test]
fn further_ways_to_say_it_to_other_servers() {
    check(vec![
        (
            ALL,
            "Get a debug message without an image",
            one(
                "get-annotated-message",
                &json!({"messageType": "debug", "includeImage": false}),
            ),
        ),
        (
            ALL,
            "Get a blob resource reference with id 3",
            one(
                "get-resource-reference",
                &json!({"resourceType": "Blob", "resourceId": 3}),
            ),
        ),
        (
            ALL,
            "Trigger sampling with prompt \"Tell me a story\" and 50 tokens",
            one(
                "trigger-sampling-request",
                &json!({"prompt": "Tell me a story", "maxTokens": 50}),
            ),
        ),
        (
            ALL,
            "Research the history of coffee",
            one(
                "simulate-research-query",
                &json!({"topic": "history of coffee"}),
            ),
        ),
        (
            ALL,
            "Commit the changes in /srv/repo with message \"first try\"",
            one(
                "git_commit",
                &json!({"repo_path": "/srv/repo", "message": "first try"}),
            ),
        ),
        (
            ALL,
            "Create a branch feature-x in /srv/repo",
            one(
                "git_create_branch",
                &json!({"repo_path": "/srv/repo", "branch_name": "feature-x"}),
            ),
        ),
        (
            ALL,
            "Add file notes.txt to /srv/repo",
            one(
                "git_add",
                &json!({"repo_path": "/srv/repo", "files": ["notes.txt"]}),
            ),
        ),
        (
            ALL,
            "Delete the entities Ada and Bob",
            one("delete_entities", &json!({"entityNames": ["Ada", "Bob"]})),
        ),
        (
            ALL,
            "What's the time in New York when it is 9am in London?",
            one(
                "convert_time",
                &json!({
                    "source_timezone": "Europe/London", "time": "09:00", "target_timezone": "America/New_York",
                }),
            ),
        ),
    ]);
}

/// Better no call than one that does something else.
#[test]
fn what_no_tool_does_is_not_made_into_what_some_tool_does() {
    check(
        [
            "Create a customer named Bob",
            "Delete customer 7",
            "delete the file /srv/a.txt",
            "Send an email to ada@example.org",
            "List the 3 oldest customers",
            "Show customers who joined on 2026-10-01",
            "What is the sum of 19, 23 and 4?",
            "What's the weather in Paris?",
            "Show customer 42",
            "customer 42",
            "42",
            "yes",
        ]
        .into_iter()
        .map(|question| (ALL, question, json!([])))
        .collect(),
    );
}

/// Clients of several servers put the server's name before each tool's.
#[test]
fn tools_are_called_by_the_names_they_are_declared_with() {
    for with_origin in [true, false] {
        let tools: Vec<_> = tools(ALL)
            .into_iter()
            .map(|tool| {
                let mut tool = (*tool).clone();
                let origin = tool.origin.clone().expect("fixtures have origins");
                tool.name = format!("{}__{}", origin.server.replace('-', "_"), tool.name);
                if !with_origin {
                    tool.origin = None;
                }
                Arc::new(tool)
            })
            .collect();
        for (question, name) in [
            (
                "What is the account value of customer 42?",
                "customer_service__calculate_account_value",
            ),
            (
                "customer_service__calculate_account_value for customer 42",
                "customer_service__calculate_account_value",
            ),
            ("echo hello", "everything__echo"),
            ("What is the sum of 19 and 23?", "everything__get-sum"),
        ] {
            let (calls, text) = first(question, &tools);
            assert_eq!(calls.len(), 1, "{question}: {calls:?} {text}");
            assert_eq!(calls[0].0, name, "{question}");
        }
    }
}

/// The tools of the fixtures are examples: no rule may know one of them.
#[test]
fn no_tool_is_known_by_name() {
    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                sources(&path, found);
            } else {
                found.push(path);
            }
        }
    }
    let mut files = Vec::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut files,
    );
    assert!(files.len() > 20, "{files:?}");
    let names: Vec<String> = tools(ALL).iter().map(|tool| tool.name.clone()).collect();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file");
        // `echo` and the like are English.
        let known: Vec<&String> = names
            .iter()
            .filter(|name| name.contains(['_', '-']) && text.contains(*name))
            .collect();
        assert!(known.is_empty(), "{}: {known:?}", file.display());
    }
}
