//! Formats saved conversations as Markdown.

use std::{collections::HashMap, fmt::Write as _, sync::Arc};

use switchboard_domain::{Message, Part, Role, Session};

/// Formats all messages of a session as Markdown.
pub(crate) fn format_as_markdown(session: &Session, messages: &[Arc<Message>]) -> String {
    let title = session.title.trim();
    let title = if title.is_empty() { "Session" } else { title };
    let title = title.replace('\n', " ");
    let (id, created_at) = (&session.id, &session.created_at);
    let mut text = format!("# {title}\n\n*Session {id}, started {created_at}*\n");
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut speaker = None;
    for message in messages {
        if message.role != Role::Tool && speaker != Some(message.role) {
            let who = match message.role {
                Role::User => "You",
                Role::System => "Instructions",
                _ => "Answer",
            };
            let _ = write!(text, "\n## {who}\n");
            speaker = Some(message.role);
        }
        for part in &message.parts {
            if let Part::ToolUse(tool_use) = part {
                names.insert(&tool_use.id, &tool_use.name);
            }
            write_message_part(&mut text, part, &names);
        }
    }
    text
}

fn write_message_part(text: &mut String, part: &Part, names: &HashMap<&str, &str>) {
    match part {
        Part::Text(part) if !part.text.trim().is_empty() => {
            let _ = write!(text, "\n{}\n", part.text.trim_end());
        }
        Part::ToolUse(tool_use) => {
            let input = tool_use.input.to_display_value();
            let input = serde_json::to_string_pretty(&input).unwrap_or_default();
            let _ = write!(text, "\n**Tool call** `{}`\n", tool_use.name);
            write_code_block(text, "json", &input);
        }
        Part::ToolResult(result) => {
            let name = names.get(result.tool_use_id.as_str());
            let what = if result.is_error { "failed" } else { "result" };
            let name = name.copied().unwrap_or(&result.name);
            let _ = write!(text, "\n**Tool {what}** `{name}`\n");
            write_code_block(text, "", &result.as_text());
        }
        Part::Opaque(opaque) => {
            let _ = write!(text, "\n*{}*\n", opaque.kind);
        }
        Part::Image(_) | Part::Document(_) | Part::Audio(_) => {
            let _ = write!(text, "\n*{}*\n", part.describe_kind());
        }
        // Other parts, such as the reasoning of a model, are not included in the transcript.
        _ => {}
    }
}

/// Writes a code block. Its fence is a sequence of backticks that the content does not contain.
fn write_code_block(text: &mut String, language: &str, content: &str) {
    let sequences = content.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(sequences.max().unwrap_or_default().max(2) + 1);
    let content = content.trim_end();
    let _ = write!(text, "\n{fence}{language}\n{content}\n{fence}\n");
}

/// Returns the index in `messages` of the first of the last `most` questions. Returns 0 if there
/// are fewer questions.
pub(crate) fn find_last_questions_start(messages: &[Arc<Message>], most: usize) -> usize {
    let messages = messages.iter().enumerate();
    let mut questions = messages.filter(|(_, message)| message.role == Role::User);
    let first = questions.nth_back(most - 1);
    first.map_or(0, |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchboard_domain::{SessionId, ToolInput, ToolResult, ToolUse};

    fn talk() -> Vec<Arc<Message>> {
        let call = ToolUse::new("1", "find", ToolInput::parse_input(r#"{"name":"Ada"}"#));
        vec![
            Arc::new(Message::user("Who is Ada?")),
            Arc::new(Message::new(
                Role::Assistant,
                [Part::text("I look."), Part::ToolUse(call)],
            )),
            Arc::new(Message::from_tool_results([ToolResult::text(
                "1",
                "find",
                "a ```b``` c",
            )])),
            Arc::new(Message::assistant("A **customer**.")),
            Arc::new(Message::user("Since when?")),
            Arc::new(Message::assistant("2019.")),
        ]
    }

    #[test]
    fn a_conversation_can_be_read_as_markdown() {
        let session = Session {
            id: SessionId("s1".into()),
            title: "Who is Ada?".into(),
            created_at: "2026-11-21T20:00:00Z".into(),
            messages: 6,
        };
        insta::assert_snapshot!(format_as_markdown(&session, &talk()), @r#"
        # Who is Ada?

        *Session s1, started 2026-11-21T20:00:00Z*

        ## You

        Who is Ada?

        ## Answer

        I look.

        **Tool call** `find`

        ```json
        {
          "name": "Ada"
        }
        ```

        **Tool result** `find`

        ````
        a ```b``` c
        ````

        A **customer**.

        ## You

        Since when?

        ## Answer

        2019.
        "#);
    }
}
