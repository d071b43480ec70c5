//! A conversation at a terminal.

use switchboard_testkit::fake::{Answer, FakeModel, Gate, Say};

use crate::{
    support::{Place, program, texts},
    terminal::Terminal,
};

const TICKET: &str = "Create a low priority ticket for customer 7 with subject \"test\"";

/// Value of `TERM` for a terminal that cuts its rows when it becomes narrower, as the emulator of
/// these tests does.
const TERM: &str = "vt100";

pub(crate) fn chat_with<'v>(
    place: &Place,
    args: &[&str],
    more: impl IntoIterator<Item = (&'v str, String)>,
    size: (u16, u16),
) -> Terminal {
    let args = [&["chat"], args].concat();
    start_at_terminal(place, &args, more, size)
}

fn start_at_terminal<'v>(
    place: &Place,
    args: &[&str],
    more: impl IntoIterator<Item = (&'v str, String)>,
    size: (u16, u16),
) -> Terminal {
    let home = place.path().display().to_string();
    let mut variables = vec![
        ("HOME", home),
        ("TERM", TERM.to_owned()),
        ("PATH", std::env::var("PATH").unwrap_or_default()),
    ];
    variables.extend(more);
    Terminal::start(&program(), args, place.path(), variables, size)
}

/// A chat with a model on loopback and without tools.
pub(crate) fn chat_with_model(place: &Place, fake: &FakeModel, args: &[&str]) -> Terminal {
    let args = [&["--no-tools", "--model", "openai/gpt-test"], args].concat();
    chat_with(place, &args, of_model(fake), (30, 90))
}

/// Starts a chat without colours and sends it a question.
fn colourless_chat(place: &Place, fake: &FakeModel, size: (u16, u16)) -> Terminal {
    let variables = of_model(fake).into_iter();
    let variables = variables.chain([("NO_COLOR", "1".to_owned())]);
    let args = ["--no-tools", "--model", "openai/gpt-test"];
    let chat = chat_with(place, &args, variables, size);
    chat.wait_for_prompt();
    chat.keys("go\r");
    chat
}

pub(crate) fn of_model(fake: &FakeModel) -> Vec<(&'static str, String)> {
    vec![
        ("OPENAI_API_KEY", "k".to_owned()),
        ("OPENAI_BASE_URL", format!("{}/v1", fake.base_url())),
    ]
}

pub(crate) async fn sessions(place: &Place) -> serde_json::Value {
    place.run(["sessions", "-o", "json"]).await.json()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_answered_with_a_tool_and_stored_in_its_session() {
    let place = Place::new();
    let mut chat = chat_with(&place, &[], [], (40, 100));
    chat.answers("/help for commands");
    chat.line("What is the account value of customer 42?");
    chat.answers("✔ customer-service · calculate_account_value");
    chat.line("/usage");
    chat.shows("1 answer, 2 model calls, 1 tool call");
    chat.line("/tools");
    chat.shows("create_support_ticket(customer_id");
    chat.line("/nonsense");
    chat.shows("unknown command /nonsense");
    chat.line("/save talk.md");
    chat.shows("written to talk.md");
    chat.line("/quit");
    assert_eq!(chat.end(), 0);
    let screen = chat.screen();
    assert_eq!(screen.matches("✔ customer-service").count(), 1, "{screen}");
    assert!(screen.contains("switchboard chat --session"), "{screen}");

    let saved = place.read_file("talk.md");
    assert!(saved.contains("## You") && saved.contains("calculate_account_value"));
    let stored = sessions(&place).await;
    let title = "What is the account value of customer 42?";
    assert_eq!(stored[0]["title"], title);
    assert_eq!(stored[0]["messages"], 4, "{stored}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_is_continued_with_another_model() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(Answer::openai_chat([Say::text("Your name is **Ada**.")]));
    fake.answer(Answer::openai_chat([Say::text("Still Ada.")]));
    let place = Place::new();
    let mut chat = chat_with_model(&place, &fake, &[]);
    chat.wait_for_prompt();
    chat.line("My name is Ada. What is it?");
    chat.answers("Your name is Ada.");
    // Ctrl-D ends the program.
    chat.quit();

    let mut chat = chat_with_model(&place, &fake, &["--resume"]);
    let screen = chat.answers("Your name is Ada.");
    assert!(screen.contains("❯ My name is Ada. What is it?"), "{screen}");
    assert!(screen.contains("Your name is Ada."), "{screen}");
    chat.line("/model openai/gpt-other");
    chat.shows("model: openai/gpt-other");
    chat.line("And now?");
    chat.answers("Still Ada.");
    chat.line("/quit");
    assert_eq!(chat.end(), 0);
    let request = fake.request(1).await;
    assert_eq!(request.json()["model"], "gpt-other");
    let said = texts(&request.json()["messages"], "/content");
    let first = ["My name is Ada. What is it?", "Your name is **Ada**."];
    assert_eq!(said, [&first[..], &["And now?"]].concat());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_are_edited_completed_and_remembered() {
    let fake = FakeModel::start().await.unwrap();
    fake.otherwise(|number, _| Answer::openai_chat([Say::text(format!("Answer {number}."))]));
    let place = Place::new();
    let mut chat = chat_with_model(&place, &fake, &[]);
    chat.wait_for_prompt();
    // Tab completes the command. Alt+Enter, and Enter after a backslash, begin a new line.
    chat.keys("/usa\t");
    chat.shows("❯ /usage");
    chat.keys("\r");
    chat.answers("this session has no questions yet");
    chat.keys("one\u{1b}\rtwo\\\rthree");
    chat.shows("… three");
    chat.keys("\r");
    chat.answers("Answer 0.");
    // Pasted lines are not sent one by one.
    chat.keys("\u{1b}[200~four\nfive\u{1b}[201~");
    chat.shows("… five");
    chat.keys("\r");
    chat.answers("Answer 1.");
    // Ctrl-C clears the line and shows how to quit.
    chat.keys("unfinished");
    chat.shows("❯ unfinished");
    chat.keys("\u{3}");
    chat.answers("press Ctrl-D or type /quit to quit");
    chat.line("/quit");
    assert_eq!(chat.end(), 0);
    for (number, said) in ["one\ntwo\nthree", "four\nfive"].into_iter().enumerate() {
        let request = fake.request(number).await;
        let messages = texts(&request.json()["messages"], "/content");
        assert_eq!(messages.last(), Some(&said), "request {number}");
    }

    // A second start of the program has the history of the first.
    let mut chat = chat_with_model(&place, &fake, &[]);
    chat.wait_for_prompt();
    chat.keys("\u{1b}[A\u{1b}[A");
    chat.shows("… five");
    chat.keys("\u{3}");
    chat.wait_for_prompt();
    chat.quit();
}

const MARKDOWN: &str = "# Result\n\nSome **bold** words and `code`.\n\n| name | value \
                        |\n|---|---|\n| Ada | 12 |\n\n```rust\nfn main() {}\n```\n\n- one\n- two\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn markdown_is_rendered_once_on_a_narrow_screen_without_colours() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(Answer::openai_chat(
        MARKDOWN.split_inclusive(' ').map(Say::text),
    ));
    let place = Place::new();
    let mut chat = colourless_chat(&place, &fake, (40, 24));
    let screen = chat.answers("• two");
    let answer = screen.split("❯ go\n").nth(1).unwrap();
    let answer = answer.rsplit_once("\n❯").unwrap().0.trim_end();
    insta::assert_snapshot!(answer, @r"
    Result

    Some bold words and
    code.

    name │ value
    ─────┼──────
    Ada  │ 12

      fn main() {}

    • one
    • two
    ");
    chat.quit();
    let raw = chat.raw();
    let colour = |raw: &str| {
        let mut rest = raw;
        while let Some((_, after)) = rest.split_once("\u{1b}[") {
            let end = after.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
            let is_colour = after[end..].starts_with('m')
                && after[..end]
                    .split(';')
                    .any(|it| it.len() == 2 && it.starts_with(['3', '9']));
            if is_colour {
                return Some(after[..end].to_owned());
            }
            rest = after;
        }
        None
    };
    assert_eq!(colour(&raw), None, "{raw:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_narrowed_screen_shows_no_text_twice() {
    let fake = FakeModel::start().await.unwrap();
    let gate = Gate::new();
    let answer = Answer::openai_chat([
        Say::text("First paragraph of it.\n\nThe second one is so long that it needs"),
        Say::text(" more than one row when there is little room."),
    ]);
    // The second paragraph arrives after the terminal was resized.
    fake.answer(answer.gate_before(2, &gate));
    let place = Place::new();
    let mut chat = colourless_chat(&place, &fake, (24, 70));
    gate.reached().await;
    chat.shows("The second one");
    chat.resize(24, 30);
    gate.open();
    let screen = chat.answers("\nroom.");
    let lines = ["First paragraph", "The second one", "there is little"];
    for once in lines.into_iter().chain(["room."]) {
        assert_eq!(screen.matches(once).count(), 1, "{once}: {screen}");
    }
    chat.quit();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recipe_and_approvals_are_changed_during_a_conversation() {
    let place =
        Place::new().with_file("switchboard.yaml", "model: offline/planner\napprove: all\n");
    let mut chat = chat_with(&place, &[], [], (40, 100));
    chat.wait_for_prompt();
    chat.line("/approve");
    chat.shows("ask (offline/planner: except read-only tools");
    chat.line("/approve none");
    chat.shows("takes effect with the next question");
    chat.line(TICKET);
    chat.answers("⊘ customer-service · create_support_ticket");
    chat.line("/recipe nothing-like-it");
    chat.shows("unknown recipe `nothing-like-it`");
    chat.line("/servers");
    chat.shows("customer-service  ready");
    chat.line("/model nobody/knows");
    chat.shows("unknown provider `nobody`");
    chat.line("/new");
    chat.shows("a new session");
    chat.line("/resume");
    chat.shows("/resume NUMBER continues a session");
    chat.line("/resume 1");
    chat.shows(&format!("❯ {TICKET}"));
    chat.quit();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ask_renders_markdown_unless_the_terminal_is_dumb() {
    let fake = FakeModel::start().await.unwrap();
    let place = Place::new();
    let args = ["ask", "--no-tools", "--model", "openai/gpt-test", "go"];
    for (term, table, bold) in [
        (TERM, "name │ value", "Some bold words"),
        ("dumb", "| name | value |", "Some **bold** words"),
    ] {
        fake.answer(Answer::openai_chat(
            MARKDOWN.split_inclusive(' ').map(Say::text),
        ));
        let mut variables = of_model(&fake);
        variables.push(("TERM", term.to_owned()));
        let mut ask = start_at_terminal(&place, &args, variables, (40, 80));
        assert_eq!(ask.end(), 0);
        let screen = ask.screen();
        assert!(screen.contains(table) && screen.contains(bold), "{screen}");
    }
}
