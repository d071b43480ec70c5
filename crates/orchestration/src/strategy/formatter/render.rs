//! Rendering of an answer as Markdown.

use std::fmt::Write as _;

use crate::AnswerItem;

/// Title of an artifact for which the model gave no title.
pub(super) const UNTITLED: &str = "Untitled";

/// Renders the items of an answer as Markdown: texts unchanged, artifacts as titled code blocks.
///
/// ```
/// use switchboard_orchestration::{AnswerItem, strategy::formatter::render_markdown};
///
/// let items = [
///     AnswerItem::Text { content: "Two rows:".into() },
///     AnswerItem::Artifact {
///         artifact_type: "table".into(),
///         title: "Rows".into(),
///         content: "a | b".into(),
///         language: None,
///     },
/// ];
/// assert_eq!(render_markdown(&items), "Two rows:\n\n**Rows**\n\n```\na | b\n```");
/// ```
pub fn render_markdown(items: &[AnswerItem]) -> String {
    let mut answer = String::new();
    for item in items {
        // The code fence must be longer than the longest run of backticks in the content.
        let fence = write_answer_item(
            item,
            longest_backtick_run(trimmed_content(item)) + 1,
            &mut answer,
        );
        answer.push_str(&fence);
    }
    answer
}

/// Renders an answer that is still being streamed: its complete `items` and its incomplete last
/// item `open`.
///
/// The code fence of `open` is not closed. All fences have their minimum length, so that later
/// content does not change the rendered text.
pub(super) fn render_partial_answer(items: &[AnswerItem], open: Option<&AnswerItem>) -> String {
    let mut answer = String::new();
    for item in items {
        let fence = write_answer_item(item, 0, &mut answer);
        answer.push_str(&fence);
    }
    if let Some(open) = open {
        write_answer_item(open, 0, &mut answer);
    }
    answer
}

fn trimmed_content(item: &AnswerItem) -> &str {
    match item {
        AnswerItem::Text { content } => content.trim(),
        AnswerItem::Artifact { content, .. } => content.trim_start_matches(['\n', '\r']).trim_end(),
    }
}

/// Writes an item to `answer` without its closing fence, and returns the closing fence. An item
/// without content is omitted. `min_marks` is the minimum number of backticks in a fence.
fn write_answer_item(item: &AnswerItem, min_marks: usize, answer: &mut String) -> String {
    let content = trimmed_content(item);
    if content.is_empty() {
        return String::new();
    }
    if !answer.is_empty() {
        answer.push_str("\n\n");
    }
    let mut end = String::new();
    if let AnswerItem::Artifact {
        artifact_type,
        title,
        language,
        ..
    } = item
    {
        let kind = short_artifact_type(artifact_type);
        // An artifact that is Markdown may contain code blocks with three backticks.
        let marks = if kind == "markdown" { 4 } else { 3 };
        let fence = "`".repeat(min_marks.max(marks));
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        let title = if title.is_empty() { UNTITLED } else { &title };
        let info = code_fence_info_string(&kind, language.as_deref());
        // Writing to a string cannot fail.
        let _ = write!(answer, "**{title}**\n\n{fence}{info}\n");
        end = format!("\n{fence}");
    }
    answer.push_str(content);
    end
}

fn code_fence_info_string(kind: &str, language: Option<&str>) -> String {
    let info = if shows_language_in_fence(kind) {
        language.map_or("", str::trim)
    } else if matches!(kind, "table" | "chart" | "plain") {
        ""
    } else {
        kind
    };
    info.chars()
        .filter(|c| c.is_ascii_alphanumeric() || "+#.-_".contains(*c))
        .take(20)
        .collect()
}

/// Returns whether the word after the opening code fence of an artifact is its programming
/// language. Artifact kinds such as `mermaid` have a fixed word there. `kind` is the result of
/// [`short_artifact_type`].
pub(super) fn shows_language_in_fence(kind: &str) -> bool {
    !matches!(
        kind,
        "markdown" | "mermaid" | "html" | "svg" | "json" | "csv" | "table" | "chart" | "plain"
    )
}

/// Returns the short name of an artifact type: `application/vnd.mermaid` is `mermaid`,
/// `image/svg+xml` is `svg`.
pub(super) fn short_artifact_type(artifact_type: &str) -> String {
    let last = artifact_type.rsplit(['/', '.']).next().unwrap_or_default();
    let word = last.split(['+', ';']).next().unwrap_or_default().trim();
    word.strip_prefix("x-").unwrap_or(word).to_ascii_lowercase()
}

fn longest_backtick_run(text: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    // Runs of one or two backticks count as 0, because they cannot end a code fence.
    if longest < 3 { 0 } else { longest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(artifact_type: &str, content: &str, language: Option<&str>) -> AnswerItem {
        AnswerItem::Artifact {
            artifact_type: artifact_type.into(),
            title: "A  title\n".into(),
            content: content.into(),
            language: language.map(str::to_owned),
        }
    }

    #[test]
    fn artifacts_are_titled_code_blocks() {
        for (item, expected) in [
            (
                artifact("code", "fn main() {}\n", Some("rust")),
                "```rust\nfn main() {}\n```",
            ),
            (artifact("code", "\n  x", None), "```\n  x\n```"),
            (
                artifact("application/vnd.mermaid", "graph TD", None),
                "```mermaid\ngraph TD\n```",
            ),
            (
                artifact("image/svg+xml", "<svg/>", None),
                "```svg\n<svg/>\n```",
            ),
            (
                artifact("text/markdown", "```\nx\n```", None),
                "````markdown\n```\nx\n```\n````",
            ),
            (
                artifact("json", "{}", Some("javascript")),
                "```json\n{}\n```",
            ),
            (artifact("code", "{}", Some(" j`s\non")), "```json\n{}\n```"),
            (artifact("x-new", "{}", Some("c")), "```c\n{}\n```"),
            (artifact("table", "a | b", Some("c")), "```\na | b\n```"),
            (artifact("code", "````", None), "`````\n````\n`````"),
            (
                artifact("code", "a `b` ``c``", None),
                "```\na `b` ``c``\n```",
            ),
        ] {
            assert_eq!(
                render_markdown(&[item]),
                format!("**A title**\n\n{expected}")
            );
        }
    }

    #[test]
    fn items_are_separated_and_empty_items_are_omitted() {
        let text = |text: &str| AnswerItem::Text {
            content: text.into(),
        };
        let items = [
            text(" a\n"),
            text(" "),
            artifact("code", " \n", None),
            text("b"),
        ];
        assert_eq!(render_markdown(&items), "a\n\nb");
        assert_eq!(render_markdown(&[]), "");
    }
}
